"""Findings of `check`, and how they are shown; needs no kfp, so that the command line is fast."""

import html
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from typing_extensions import override

from kfp_placement_engine.render.terminal import Paint, wrapped
from kfp_placement_engine.views.formatting import counted, shown, visible

if TYPE_CHECKING:
    from kfp_placement.prepared_run import PreparedRun

_MAX_HTML_ROWS = 200
_MAX_HTML_TEXT = 500


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    """Severity of what makes the run fail, wait forever, or do something else than asked for."""

    WARNING = "warning"
    """Severity of what may surprise about the plan or the run."""

    NOTE = "note"
    """Severity of what is good to know."""


@dataclass(frozen=True)
class Finding:
    """One thing that would surprise about a run.

    Attributes:
        level: severity.
        code: stable word such as `unmarked`.
        message: message that says what is wrong, which value, and what to do.
        step: task that the finding is about (`for-loop-1[*].work`), or "" for the run.
        steps: tasks that a finding on the run is about, if these are only some.
    """

    level: Severity
    code: str
    message: str
    step: str = ""
    steps: tuple[str, ...] = ()

    @override
    def __str__(self) -> str:
        where = f"{visible(self.step)}: " if self.step else ""
        return f"{self.level}: {where}{visible(self.message)} [{self.code}]"


Rule = Callable[["PreparedRun"], Iterator[Finding]]
"""Rule of `check`: a function that yields findings on a run; `rules` says where to add one."""


@dataclass(frozen=True)
class CheckReport:
    """Report of all findings on one run, the gravest first.

    Attributes:
        run_name: name of the run.
        findings: findings, errors before warnings before notes.
    """

    run_name: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True if there are neither errors nor warnings."""
        return all(finding.level is Severity.NOTE for finding in self.findings)

    def of(self, code: str) -> tuple[Finding, ...]:
        """Return the findings with a code."""
        return tuple(finding for finding in self.findings if finding.code == code)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        # `if check(...)` must not depend on whether there are notes: ask `.ok`.
        return True

    @override
    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, columns: int | None = None, *, colour: bool = False) -> list[str]:
        """Return the report as lines for a terminal.

        Args:
            columns: width of the terminal; None = unlimited.
            colour: whether levels are coloured.
        """
        paint = Paint(colour)
        levels = {
            Severity.ERROR: paint.red,
            Severity.WARNING: paint.yellow,
            Severity.NOTE: paint.dim,
        }
        lines = [self._headline()]
        for finding in self.findings:
            first, *further = wrapped(str(finding), columns, first="  ", further="    ")
            level = str(finding.level)
            painted = levels[finding.level](level)
            lines += [first.replace(level, painted, 1), *further]
        return lines

    @override
    def __repr__(self) -> str:
        return f"<CheckReport {self._headline()}>"

    def _repr_html_(self) -> str:
        rows = "".join(_row(finding) for finding in self.findings[:_MAX_HTML_ROWS])
        hidden = len(self.findings) - _MAX_HTML_ROWS
        more = f"<p>{hidden:,} more; print the report to see all.</p>" if hidden > 0 else ""
        head = "<tr><th>level</th><th>step</th><th>finding</th><th>code</th></tr>"
        table = f"<table>{head}{rows}</table>" if rows else ""
        return f"<div><p>{html.escape(self._headline())}</p>{table}{more}</div>"

    def _headline(self) -> str:
        counts = Counter(finding.level for finding in self.findings)
        parts = [counted(counts[level], level) for level in Severity if counts[level]]
        return f"{shown(self.run_name, 100)}: {', '.join(parts) or 'nothing to report'}"


def _row(finding: Finding) -> str:
    cells = (finding.level, finding.step, finding.message, finding.code)
    texts = (html.escape(shown(str(cell), _MAX_HTML_TEXT)) for cell in cells)
    return "<tr>" + "".join(f'<td style="text-align:left">{text}</td>' for text in texts) + "</tr>"
