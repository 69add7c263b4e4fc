"""Tables of many runs that wait, and of what it costs to hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.tables import Table, machine
from tests.controller.cluster_bench import process_memory
from tests.controlplane.build import KUBERNETES

AT_ONCE, IN_TURN = "eight at a time", "one after another"
"""Names of the two ways in which Workflows are created."""

MOST_DECIDED_SECONDS = 5.0
MOST_MEMORY_BYTES = 150e6
MOST_EVENT_SECONDS = 0.003
MOST_CREATION_SECONDS = 0.005


@dataclass(frozen=True)
class QueueSizes:
    """How large.

    Attributes:
        runs: that wait.
        nodes: of the cluster.
        batch: Workflows created at once, and released at once.
        pairs: of batches, one held and one not.
        events: changes of objects while all wait.
        rate: of these changes, in a second.
        idle: seconds in which nothing changes.
    """

    runs: int = 1000
    nodes: int = 20
    batch: int = 500
    pairs: int = 5
    events: int = 1500
    rate: int = 60
    idle: int = 60


@dataclass(frozen=True)
class Creation:
    """What one Workflow of a batch took to be created, in seconds.

    Attributes:
        wall: as its author sees it, as a share of the batch.
        server_cpu: of the API server.
    """

    wall: float
    server_cpu: float


@dataclass(frozen=True)
class Work:
    """What `queue` did in a while.

    Attributes:
        wall: how long it was, in seconds.
        cpu: seconds that the process computed.
        events: changes of objects that it heard of.
        writes: by kind of object.
        decisions: how many.
        decision_seconds: wall time of all of them.
    """

    wall: float
    cpu: float
    events: int
    writes: Mapping[str, int]
    decisions: int
    decision_seconds: float


@dataclass
class QueueMeasured:
    """What there is so far; seconds, bytes.

    Attributes:
        sizes: of what.
        creations: by how they were created and whether they were held, in the order of the pairs.
        at_work: how they were created -> wall time of one while all processes work.
        work: in what -> what `queue` did.
        moments: of what -> how long it took.
        memory: by process.
    """

    sizes: QueueSizes
    creations: dict[tuple[str, bool], list[Creation]] = field(default_factory=dict)
    at_work: dict[str, float] = field(default_factory=dict)
    work: dict[str, Work] = field(default_factory=dict)
    moments: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)


DECIDED = "from the Lease until all runs are decided about"
FILLING, IDLE, EVENTS = "all runs are created", "nothing changes", "objects change"
TAKING_OVER, RELEASING = "it has begun to lead", "runs are released"


def parts_of(measured: QueueMeasured) -> list[Table | Sequence[str]]:
    """What was measured, and where."""
    sizes = measured.sizes
    about = (
        f"{sizes.runs:,} Workflows of 10 kB that wait behind one that their RunQueue has admitted,"
        f" each with a RunRequest with a demand, on {sizes.nodes} nodes; processes `plan`, and"
        f" `queue` twice; Kubernetes {KUBERNETES.version}; {machine()}. API server, etcd and our"
        " processes share these cores, so CPU time says more than wall time."
    )
    return [
        [about],
        _goals(measured),
        _work(measured),
        _moments(measured),
        process_memory.table(measured.memory),
        [
            f"Creation: batches of {sizes.batch} Workflows in two namespaces, one of them with a"
            " RunQueue, in alternating order, while `queue` and `plan` do not run; medians of"
            f" {sizes.pairs} pairs."
        ],
        _creations(measured),
    ]


def _goals(measured: QueueMeasured) -> Table:
    memory = max((size for name, size in measured.memory.items() if "queue" in name), default=None)
    rows = [
        _goal("known after leading", MOST_DECIDED_SECONDS, measured.moments.get(DECIDED), 1.0, "s"),
        _goal("memory of `queue`", MOST_MEMORY_BYTES, memory, 1e-6, "MB"),
    ]
    for what in (FILLING, EVENTS, TAKING_OVER, RELEASING):
        name = f"CPU of `queue` an event, while {what}"
        rows.append(_goal(name, MOST_EVENT_SECONDS, _event_cost(measured, what), 1e3, "ms"))
    for how in (AT_ONCE, IN_TURN):
        whole = _middle(measured.creations.get((how, True), ()))
        share = _middle(_differences(measured, how))
        name = f"creation of a held run, {how}"
        rows.append(_goal(name, MOST_CREATION_SECONDS, whole, 1e3, "ms"))
        rows.append(_goal(f"{name}: what the hold adds", MOST_CREATION_SECONDS, share, 1e3, "ms"))
    return Table("Goals", ["what", "at most", "measured"], rows)


def _goal(what: str, most: float, value: float | None, scale: float, unit: str) -> list[str]:
    return [what, f"{most * scale:g} {unit}", _scaled(value, scale, unit)]


def _work(measured: QueueMeasured) -> Table:
    headings = ["while", "wall", "CPU", "events", "an event", "writes", "decisions", "a decision"]
    rows = []
    for what, work in measured.work.items():
        writes = ", ".join(f"{count} {kind}" for kind, count in sorted(work.writes.items()))
        decision = work.decision_seconds / work.decisions if work.decisions else None
        rows.append(
            [
                what,
                f"{work.wall:.1f} s",
                f"{work.cpu:.2f} s",
                str(work.events),
                _scaled(_event_cost(measured, what), 1e3, "ms"),
                writes or "-",
                str(work.decisions),
                _scaled(decision, 1e3, "ms"),
            ]
        )
    return Table("What the leading `queue` computed; a decision is wall time", headings, rows)


def _moments(measured: QueueMeasured) -> Table:
    rows = [[what, f"{seconds:.1f} s"] for what, seconds in measured.moments.items()]
    return Table("Times", ["what", "wall"], rows)


def _creations(measured: QueueMeasured) -> Table:
    rows = []
    for how in (AT_ONCE, IN_TURN):
        held = measured.creations.get((how, True), [])
        free = measured.creations.get((how, False), [])
        differences = _differences(measured, how)
        batches = (("held", held), ("not held", free), ("difference", differences))
        for name, batch in batches:
            server = median(each.server_cpu for each in batch) if batch else None
            wall = _scaled(_middle(batch), 1e3, "ms")
            rows.append([how, name, wall, _scaled(server, 1e3, "ms")])
        if how in measured.at_work:
            rows.append([how, "held, all at work", f"{1e3 * measured.at_work[how]:.1f} ms", "-"])
    headings = ["created", "run", "wall", "CPU of the API server"]
    return Table("Creation of one Workflow", headings, rows, words=2)


def _differences(measured: QueueMeasured, how: str) -> list[Creation]:
    """What the hold adds, pair by pair."""
    held = measured.creations.get((how, True), [])
    free = measured.creations.get((how, False), [])
    return [
        Creation(one.wall - other.wall, one.server_cpu - other.server_cpu)
        for one, other in zip(held, free, strict=False)
    ]


def _event_cost(measured: QueueMeasured, what: str) -> float | None:
    work = measured.work.get(what)
    return work.cpu / work.events if work is not None and work.events else None


def _middle(creations: Sequence[Creation]) -> float | None:
    return median(each.wall for each in creations) if creations else None


def _scaled(value: float | None, scale: float, unit: str) -> str:
    return "-" if value is None else f"{value * scale:.1f} {unit}"
