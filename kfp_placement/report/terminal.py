"""What every text on a terminal shares: colours, and lines that end before its edge."""

import textwrap
from dataclasses import dataclass

_NARROWEST = 20
"""Columns that a wrapped text takes at least, however narrow the terminal is."""


@dataclass(frozen=True)
class Paint:
    """Escape sequences around text, where they are on."""

    on: bool

    def bold(self, text: str) -> str:
        """Important."""
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        """For those who look for it."""
        return self._wrap("2", text)

    def red(self, text: str) -> str:
        """An error, or what will not happen."""
        return self._wrap("31", text)

    def yellow(self, text: str) -> str:
        """A warning."""
        return self._wrap("33", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on else text


def wrapped(text: str, columns: int | None, *, first: str = "", further: str = "") -> list[str]:
    """Text as lines of at most this many columns; none where it is empty.

    Names, paths and addresses stay whole, and stick out where they are longer than a line.

    Args:
        text: visible text.
        columns: width of the terminal; None = any.
        first: begins the first line.
        further: begins every further one.
    """
    if not text:
        return []
    if columns is None:
        return [first + text]
    return textwrap.wrap(
        text,
        max(columns, _NARROWEST),
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
        break_long_words=False,
    )


def notice_lines(
    text: str, columns: int | None, paint: Paint, *, label: str = "", code: str = ""
) -> list[str]:
    """A warning in a list of them: the step that it is about in bold, its code dim.

    Args:
        text: visible text of the warning.
        columns: width of the terminal; None = any.
        paint: how to colour.
        label: visible name of the step, or "".
        code: stable word for programs, or "".
    """
    head = f"{label}: " if label else ""
    end = f" [{code}]" if code else ""
    lines = wrapped(f"{head}{text}{end}", columns, first="  ", further="    ")
    if label and lines[0].startswith(f"  {label}:"):
        lines[0] = f"  {paint.bold(label)}{lines[0][2 + len(label) :]}"
    if code and lines[-1].endswith(f"[{code}]"):
        lines[-1] = lines[-1].removesuffix(f"[{code}]") + paint.dim(f"[{code}]")
    return lines
