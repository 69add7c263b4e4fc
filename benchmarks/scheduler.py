"""`python -m benchmarks.scheduler`: does our kube-scheduler decide as the real one did?

Each pod of a recording is decided on the state made by the recorded nodes of the pods before it, so
one difference does not cause others. What the planner's default-scheduler baseline scores with is
checked here, as both call the same functions.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import DATA_HELP, Echo, exit_code_of, parser_of
from benchmarks.data import data_file
from benchmarks.kube_scheduler.model import KubeScheduler
from benchmarks.kube_scheduler.state import SchedulerState
from benchmarks.recording import RecordedPod, Recording, read_recording
from benchmarks.tables import Page, Table

_SHOWN_DIFFERENCES = 20


@dataclass(frozen=True)
class Agreement:
    """Number of equal decisions out of a total."""

    equal: int = 0
    total: int = 0

    @property
    def text(self) -> str:
        """Text for a column of figures."""
        return f"{self.equal:>7,} of {self.total:,}"


@dataclass(frozen=True)
class Report:
    """Comparison of a recording with what the model decides.

    Attributes:
        source: the recording's file.
        kubernetes: version of the scheduler that was recorded.
        clusters: number of clusters.
        pods: number of decisions.
        feasible: pods with the same feasible nodes.
        scores: pod-node pairs on which every plugin's score and the total are equal.
        single_best: pods with one best node that go there.
        ties: pods with several best nodes that went to one of these.
        ties_in_heap_order: pods of these whose very node our tie-break names.
        batched: pods without scores, though several nodes fit, that went to
            one of the best.
        differences: one line for each thing that is not equal.
    """

    source: str
    kubernetes: str
    clusters: int
    pods: int
    feasible: Agreement
    scores: Agreement
    single_best: Agreement
    ties: Agreement
    ties_in_heap_order: int
    batched: Agreement
    differences: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """True if something was scored and nothing differs."""
        return self.scores.total > 0 and not self.differences

    def lines(self) -> list[str]:
        """Return the report for people."""
        lines = [
            f"kube-scheduler {self.kubernetes}, stock profile: {self.clusters:,} clusters, "
            f"{self.pods:,} pods ({self.source})",
            f"  same feasible nodes                 {self.feasible.text} pods",
            f"  every plugin's score equal          {self.scores.text} pod-node pairs",
            f"  same node where one is best         {self.single_best.text} pods",
            f"  a best node where several are equal {self.ties.text} pods"
            f" ({self.ties_in_heap_order:,} of them as our tie-break has it)",
        ]
        if self.batched.total:
            lines.append(
                f"  a best node, unscored (batching)    {self.batched.text} pods"
                " (without scores though several nodes fit)"
            )
        if not self.scores.total:
            lines.append(
                "NOTHING WAS SCORED: the recording holds no scores, so it says nothing about how"
                " nodes are chosen"
            )
        lines += [f"different: {text}" for text in self.differences[:_SHOWN_DIFFERENCES]]
        left = len(self.differences) - _SHOWN_DIFFERENCES
        if left > 0:
            lines.append(f"and {left:,} more differences")
        return lines

    def page(self) -> Page:
        """Return the report as a page, with all differences."""
        rows = [
            ("same feasible nodes", "pods", self.feasible),
            ("every plugin's score equal", "pod-node pairs", self.scores),
            ("same node where one is best", "pods", self.single_best),
            ("a best node where several are equal", "pods", self.ties),
            ("a best node, unscored (batching)", "pods", self.batched),
        ]
        headings = ["compared", "of", "equal", "total"]
        cells = [[what, of, f"{each.equal:,}", f"{each.total:,}"] for what, of, each in rows]
        about = f"kube-scheduler {self.kubernetes}, stock profile: {self.clusters:,} clusters, "
        parts: list[Table | Sequence[str]] = [
            [f"{about}{self.pods:,} pods."],
            Table("Decisions as recorded", headings, cells, words=2),
        ]
        if self.differences:
            parts.append([f"- {text}" for text in self.differences])
        return Page("Decisions of kube-scheduler", parts, self._figures())

    def _figures(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "kubernetes": self.kubernetes,
            "clusters": self.clusters,
            "pods": self.pods,
            "agrees": self.agrees,
            "feasible": asdict(self.feasible),
            "scores": asdict(self.scores),
            "singleBest": asdict(self.single_best),
            "ties": asdict(self.ties),
            "tiesInHeapOrder": self.ties_in_heap_order,
            "batched": asdict(self.batched),
            "differences": list(self.differences),
        }


def main(data: Path | None, echo: Echo, form: str = "table") -> int:
    """Decide a recording again and print what agrees.

    Returns the exit code: 1 if anything differs, or if the recording holds no scores to compare.

    Args:
        data: the recording, or a folder with it; None looks for the data folder.
        echo: function that prints a line.
        form: one of `FORMATS`.

    Raises:
        InputNotFoundError: the recording is not there.
        InputError: it is malformed.
    """
    report = run(data_file(data, "kube-scheduler-1.36.3", "default-profile.json"))
    for line in report.lines() if form == "table" else report.page().lines(form):
        echo(line)
    return 0 if report.agrees else 1


def run(path: Path) -> Report:
    """Compare a recording with what the model decides.

    Raises:
        InputNotFoundError: it is not there.
        InputError: it is malformed.
    """
    return compare_recording(read_recording(path), source=str(path))


def compare_recording(recording: Recording, *, source: str = "") -> Report:
    """Decide every pod of a recording again and compare."""
    comparison = _Comparison(KubeScheduler(recording.version))
    for case in recording.cases:
        state = SchedulerState(case.nodes)
        for entry in case.pods:
            comparison.compare(f"{case.name}/{entry.pod.name}", entry, state)
            if entry.node is not None:
                state.bind(entry.pod, entry.node)
    return Report(
        source=source,
        kubernetes=recording.kubernetes,
        clusters=len(recording.cases),
        pods=sum(len(case.pods) for case in recording.cases),
        feasible=comparison.agreement("feasible"),
        scores=comparison.agreement("scores"),
        single_best=comparison.agreement("single best"),
        ties=comparison.agreement("ties"),
        ties_in_heap_order=comparison.counts["heap"],
        batched=comparison.agreement("batched"),
        differences=tuple(comparison.differences),
    )


class _Comparison:
    """Counts what is equal and collects what is not."""

    def __init__(self, scheduler: KubeScheduler) -> None:
        self.scheduler = scheduler
        self.counts: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        self.differences: list[str] = []

    def agreement(self, what: str) -> Agreement:
        return Agreement(self.counts[what], self.totals[what])

    def compare(self, name: str, entry: RecordedPod, state: SchedulerState) -> None:
        """Compare one decision, in the order in which one error would explain the next."""
        fitting = self.scheduler.fitting(entry.pod, state)
        batched = not entry.scores and entry.node in fitting and len(fitting) > 1
        if batched:
            self._count("feasible", True, "")
            self._compare_unscored(name, entry, state, fitting)
            return
        recorded = set(entry.scores) or ({entry.node} if entry.node is not None else set())
        self._count(
            "feasible",
            self._same_nodes(recorded, fitting, state),
            _feasible_text(name, recorded, fitting),
        )
        if entry.scores:
            self._compare_scores(name, entry, state, [node for node in fitting if node in recorded])

    def _same_nodes(
        self, recorded: set[str], fitting: tuple[str, ...], state: SchedulerState
    ) -> bool:
        """Return whether nodes agree; from 100 on, the real scheduler takes an unknown sample."""
        wanted = self.scheduler.nodes_to_find(len(state.nodes))
        if len(fitting) <= wanted:
            return recorded == set(fitting)
        return recorded <= set(fitting) and len(recorded) == wanted

    def _compare_scores(
        self, name: str, entry: RecordedPod, state: SchedulerState, nodes: list[str]
    ) -> None:
        scores = self.scheduler.scores(entry.pod, state, nodes)
        for node, recorded in entry.scores.items():
            ours = scores.get(node, {})
            # A plugin that was skipped and one that gives 0 are the same to the total.
            equal = _not_zero(recorded) == _not_zero(ours)
            equal = equal and entry.totals[node] == sum(ours.values())
            self._count(
                "scores", equal, f"{name} on {node}: recorded {dict(recorded)}, ours {ours}"
            )
        if not nodes:
            # None of the recorded nodes fits, which has been counted as a difference already.
            return
        totals = {node: sum(row.values()) for node, row in scores.items()}
        most = max(totals.values())
        best = [node for node in nodes if totals[node] == most]
        text = f"{name}: went to {entry.node}, ours {', '.join(best)}"
        if len(best) == 1:
            self._count("single best", best == [entry.node], text)
        else:
            self._count("ties", entry.node in best, text)
            self.counts["heap"] += self.scheduler.choose(nodes, totals) == entry.node

    def _compare_unscored(
        self, name: str, entry: RecordedPod, state: SchedulerState, fitting: tuple[str, ...]
    ) -> None:
        if len(fitting) > self.scheduler.nodes_to_find(len(state.nodes)):
            # The scores it was chosen by belong to a sample that is not known.
            self._count("batched", True, "")
            return
        totals = {
            node: sum(row.values())
            for node, row in self.scheduler.scores(entry.pod, state, fitting).items()
        }
        best = [node for node in fitting if totals[node] == max(totals.values())]
        self._count(
            "batched",
            entry.node in best,
            f"{name}: went to {entry.node} without scores, ours {', '.join(best)}",
        )

    def _count(self, what: str, equal: bool, difference: str) -> None:
        self.totals[what] += 1
        self.counts[what] += equal
        if not equal:
            self.differences.append(difference)


def _not_zero(scores: Mapping[str, int]) -> dict[str, int]:
    return {plugin: value for plugin, value in scores.items() if value}


def _feasible_text(name: str, recorded: set[str], fitting: tuple[str, ...]) -> str:
    missing = ", ".join(sorted(recorded - set(fitting)))
    extra = ", ".join(sorted(set(fitting) - recorded))
    return f"{name}: feasible only as recorded: {missing or 'none'}; only ours: {extra or 'none'}"


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "scheduler",
        "Compare what the real kube-scheduler chose with the model: nodes, scores, choice.",
        examples=["", "--data recording.json.gz", "-o json"],
        exit_codes="0 all equal, 1 differences or nothing was scored, 3 no data.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help=f"the recording, or the folder it is in {DATA_HELP}",
    )
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.scheduler` and return the exit code."""
    asked = _parser().parse_args(arguments)
    return exit_code_of(lambda: main(asked.data, print, asked.form))


if __name__ == "__main__":
    sys.exit(command())
