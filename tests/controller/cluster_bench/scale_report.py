"""Tables of a large cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.tables import Table, machine
from tests.controller.cluster_bench import process_memory
from tests.controlplane.build import KUBERNETES


@dataclass(frozen=True)
class Sizes:
    """How large.

    Attributes:
        nodes: of the cluster.
        pods: bound ones, of no run of ours.
        runs: submitted one right after the other.
        steps: of each run.
        pairs: of schedulers, one with the extender and one without.
    """

    nodes: int = 1000
    pods: int = 10_000
    runs: int = 100
    steps: int = 50
    pairs: int = 5

    @property
    def waiting(self) -> int:
        """Pods for each scheduler."""
        return self.runs * (self.steps // self.pairs // 2)


@dataclass
class Measured:
    """What there is so far; seconds, bytes.

    Attributes:
        sizes: of what.
        start_up: process -> wall and CPU time until it had seen everything.
        plans: `planned`, `improved` -> time since the submission, median and largest.
        looks: p50 and p99 of the planner's wall time to decide.
        planner_cpu_per_change: of the whole process, for each change that its watches brought.
        answers: p50 and p99 of the extender's CPU time for `filter`.
        outcomes: what decided these answers -> how many.
        memory: by process.
        rates: pods/s with (True) and without the extender, in the order of the pairs.
    """

    sizes: Sizes
    start_up: dict[str, tuple[float, float]] = field(default_factory=dict)
    plans: dict[str, tuple[float, float]] = field(default_factory=dict)
    looks: tuple[float, float] | None = None
    planner_cpu_per_change: float | None = None
    answers: tuple[float, float] | None = None
    outcomes: dict[str, int] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    rates: dict[bool, list[float]] = field(default_factory=dict)


def parts_of(measured: Measured) -> list[Table | Sequence[str]]:
    """What was measured, and where."""
    sizes = measured.sizes
    about = (
        f"{sizes.nodes:,} nodes, {sizes.pods:,} bound pods of 13 kB, {sizes.runs} runs of"
        f" {sizes.steps} steps submitted one right after the other; Kubernetes"
        f" {KUBERNETES.version}; {machine()}. API server, etcd, schedulers and our processes share"
        " these cores."
    )
    return [
        [about],
        _times(measured),
        process_memory.table(measured.memory),
        [
            f"Throughput: a kube-scheduler of the shipped configuration, {sizes.waiting} waiting"
            " pods of planned steps each time, timed by its own log."
        ],
        _throughput(measured),
    ]


def _times(measured: Measured) -> Table:
    rows: list[list[str]] = []
    for name, (wall, cpu) in measured.start_up.items():
        rows.append([f"start of {name} until all is seen", f"{wall:.1f} s", f"{cpu:.1f} s of CPU"])
    for what, (middle, largest) in measured.plans.items():
        rows.append([f"submission until {what}", f"{middle:.1f} s", f"{largest:.1f} s"])
    if measured.looks is not None:
        rows.append(["the planner's look, wall time", *map(_milliseconds, measured.looks)])
    if measured.planner_cpu_per_change is not None:
        cost = _milliseconds(measured.planner_cpu_per_change)
        rows.append(["the planner's CPU time, for each change seen", cost, "(mean)"])
    if measured.answers is not None:
        given = ", ".join(f"{count:,} {what}" for what, count in measured.outcomes.items())
        name = f"the extender's `filter`, CPU time ({given})"
        rows.append([name, *map(_milliseconds, measured.answers)])
    return Table("Times", ["what", "median", "largest, or p99"], rows)


def _throughput(measured: Measured) -> Table:
    without, with_extender = measured.rates.get(False, []), measured.rates.get(True, [])
    rows = [
        [name, *(f"{rate:.0f}" for rate in rates), f"{median(rates):.0f}" if rates else "-"]
        for name, rates in (("without extender", without), ("with extender", with_extender))
    ]
    pairs = list(zip(with_extender, without, strict=False))
    shares = [f"{100 * ours / theirs:.0f}" for ours, theirs in pairs]
    middle = f"{100 * median(ours / theirs for ours, theirs in pairs):.0f}" if pairs else "-"
    rows.append(["with / without, %", *shares, middle])
    count = max(map(len, rows)) - 2
    rows = [[row[0], *row[1:-1], *["-"] * (count + 2 - len(row)), row[-1]] for row in rows]
    headings = ["pods/s", *(f"pair {number + 1}" for number in range(count)), "median"]
    return Table("Pods bound in a second", headings, rows)


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"
