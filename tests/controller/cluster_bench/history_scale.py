"""What histories of many pipelines cost a planner: memory, time to start, and how long ticks take.

A planner in memory with stored histories beside one without, each in a process of its own.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace

from benchmarks.processes import run_apart
from benchmarks.tables import Table
from tests.controller.cluster_bench.measuring_command import measure_by_command
from tests.controller.cluster_bench.planner_with_pasts import Found, HistorySizes

_PLANNER = "tests.controller.cluster_bench.planner_with_pasts"


def main() -> int:
    """Measure; returns the exit code."""
    return measure_by_command(__doc__, HistorySizes, HistoryScale, "Histories of many pipelines")


class HistoryScale:
    """Both planners, one after the other."""

    def __init__(self, sizes: HistorySizes) -> None:
        self._sizes = sizes
        self._found: dict[str, Found] = {}

    def measure(self) -> None:
        """Both of them."""
        for name, sizes in (("without", replace(self._sizes, runs=0)), ("with", self._sizes)):
            print(f"{name} histories", file=sys.stderr, flush=True)
            printed = run_apart("a planner", [_PLANNER, json.dumps(asdict(sizes))])
            self._found[name] = Found(**json.loads(printed))

    def parts(self) -> Sequence[Table | Sequence[str]]:
        """What was measured by now, for the page."""
        sizes, found = self._sizes, self._found.values()
        about = (
            f"{sizes.namespaces * sizes.pipelines:,} pipelines of {sizes.steps} steps in"
            f" {sizes.namespaces} namespaces, {sizes.runs} runs of each stored; {sizes.active} runs"
            f" go on, looked at for {sizes.seconds} s. Times are of CPU."
        )
        rows = [
            ["objects", *(f"{each.objects:,}" for each in found)],
            ["as JSON, MB", *(_mega(each.json_bytes) for each in found)],
            ["kept of that as text, MB", *(_mega(each.kept_bytes) for each in found)],
            ["until all are known, s", *(f"{each.start_seconds:.2f}" for each in found)],
            ["active runs planned with their past", *(f"{each.forecast_runs}" for each in found)],
            ["all of them after, s", *(_seconds(each.built_after_seconds) for each in found)],
            ["ticks", *(f"{each.ticks:,}" for each in found)],
            *(
                [f"{name} of ticks, ms", *(f"{1e3 * each.tick_seconds[at]:.1f}" for each in found)]
                for at, name in enumerate(("p50", "p99", "longest"))
            ),
            ["memory at the end, MB", *(_mega(each.memory) for each in found)],
            ["most memory, MB", *(_mega(each.most_memory) for each in found)],
        ]
        return [[about], Table("A planner", ["what", *self._found], rows, words=1)]


def _mega(size: int) -> str:
    return f"{size / 1e6:.0f}"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f}"


if __name__ == "__main__":
    sys.exit(main())
