"""The table of `learning` on memory: what was used of all that was held, and what failed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.learning_runs.memory import METHODS, MemoryCase
from benchmarks.tables import Table, percent


@dataclass(frozen=True)
class MemoryFigures:
    """What a rule is worth.

    Attributes:
        pods: how many.
        maq: used / (used + wasted), in gigabytes times hours.
        failed: share of pods that were given too little at first.
    """

    pods: int
    maq: float
    failed: float


def memory_table(cases: Sequence[MemoryCase]) -> Table:
    """By group and pipeline."""
    rows = []
    for (group, pipeline), by_method in _grouped(cases).items():
        figures = [_figures_of(by_method[method]) for method in METHODS]
        row = [group, pipeline, f"{figures[0].pods:,}"]
        for each in figures:
            row += [f"{each.maq:.3f}", percent(each.failed, 2)]
        rows.append(row)
    headings = ["known", "pipeline", "pods"]
    for method in METHODS:
        headings += [f"{method}, MAQ", f"{method}, failed %"]
    return Table(
        "Memory, from nothing: used of all that was held (MAQ), given too little at first",
        headings,
        rows,
        words=2,
    )


def memory_figures(cases: Sequence[MemoryCase]) -> dict[str, Any]:
    """For JSON: by group and pipeline, and method."""
    return {
        "memory": {
            f"{group}, {pipeline}": {
                method: asdict(_figures_of(found)) for method, found in by_method.items()
            }
            for (group, pipeline), by_method in _grouped(cases).items()
        }
    }


def _grouped(
    cases: Sequence[MemoryCase],
) -> dict[tuple[str, str], dict[str, list[MemoryCase]]]:
    """By group and pipeline, all pipelines of a group last; then by method."""
    groups: dict[tuple[str, str], dict[str, list[MemoryCase]]] = {}
    for group in dict.fromkeys(each.group for each in cases):
        own = [each for each in cases if each.group == group]
        for pipeline, found in [*((each.pipeline, [each]) for each in own), ("all", own)]:
            by_method = groups.setdefault((group, pipeline), {})
            for each in found:
                by_method.setdefault(each.method, []).append(each)
    return groups


def _figures_of(cases: Sequence[MemoryCase]) -> MemoryFigures:
    used, wasted = (
        sum(getattr(each, name) for each in cases) for name in ("used_gbh", "wasted_gbh")
    )
    pods = sum(each.pods for each in cases)
    failed = sum(each.failed for each in cases)
    return MemoryFigures(pods, used / (used + wasted) if used else 0.0, failed / pods)
