"""The placement problem: the arrays that the simulation and the search work on.

A run's pods become *activities*: every step and every KFP driver pod. `lowering` makes problems;
nothing changes them afterwards. In the axes below A = activities, N = nodes, R = resources, K =
classes of activities that look alike to a node, G = genes, I = images, V = volume claims, L =
holders, M = limits of how many holders are under way at once, E = edges, U = uses of claims, H =
uses of holders, B = branches, C = choices.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from kfp_placement_engine.model.objective import ENDS_EARLIEST

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

ScalarT = TypeVar("ScalarT", bound=np.generic)


LONG_QUEUE = 50
"""Number of activities from which on each takes longer, since many pods wait at a time."""


class ProblemArrays(NamedTuple):
    """The numeric part of a problem; the kernel's `Problem` has the same fields in the same order.

    Attributes:
        requests: [A, R] amounts reserved from bind to end; resource 0 is CPU (milli-CPU), 1 memory
            (bytes), 2 pods.
        scored_requests: [A, 2] CPU and memory as kube-scheduler's resource scores count them.
        duration_seconds: [A] run time on a node of speed 1.
        scales: [A] whether the run time is divided by the node's speed (drivers are not).
        virtual: [A] whether it takes no room: a step assumed cached, or one that no node can take.
        gene: [A] gene that decides its node; -1 = the default scheduler decides.
        class_of: [A] row in the class tables.
        image: [A] image to pull, -1 = none.
        download_bytes: [A] bytes read from the object store before the run.
        upload_bytes: [A] bytes written to the object store after the run.
        release_seconds: [A] earliest time at which it is ready.
        run: [A] index of its run.
        fixed_node: [A] the only node that it goes to, once it is ready and has room there: a pod
            that runs, or room reserved for another run; -1 = not fixed. Fixed activities have
            neither predecessors nor a gene.
        is_running: [A] whether it has been on its fixed node since before time zero, so that it
            takes its room at once, even if none seems to be left.
        predecessors_start, predecessors: [A + 1], [E] activities that must have ended, by activity.
        successors_start, successors: [A + 1], [E] the same edges from the other end.
        transfer_bytes: [E] bytes on the edge `predecessors[e]` -> activity for direct transfers.
        claims_start, claims: [A + 1], [U] volume claims that it mounts.
        exclusive: [V] whether one pod at a time may have the claim (ReadWriteOncePod).
        holders_start, holders: [A + 1], [H] holders that it is part of, outermost first. A holder
            has a place of its limit from when the first of its activities is ready to the end of
            the last.
        held_together: [H] whether the holder takes its place only together with the one before.
        holder_limit: [L] limit of the holder; the holders of a limit are next to each other.
        holder_size: [L] number of its activities.
        holder_started: [L] whether it has had its place since before time zero.
        limit_start: [M + 1] first holder of each limit.
        limit_most: [M] number of holders that may be under way at once.
        branch: [A] innermost branch around it, -1 = none. A run takes at most one branch of each
            choice, so that pods of different branches may have the same room at the same time.
        branch_choice: [B] choice that the branch belongs to.
        choice_around: [C] branch that the choice is in, -1 = none.
        choice_aside: [C] whether pods inside take no room of those outside: they run only after a
            failure.
        after_failure: [A] whether it runs only after a failure, so that the end of its run does not
            wait for it.
        free: [N, R] room at time zero.
        allocatable: [N, R] size of the node.
        scored_used: [N, 2] room taken, as the resource scores count it.
        speed: [N] speed of the node, by which run times are divided.
        store_rate: [N] bytes per second to the object store.
        pull_rate: [N] bytes per second of image pulls.
        feasible: [K, N] whether Kubernetes' own static filters pass.
        preferred_taints: [K, N] number of untolerated PreferNoSchedule taints.
        preferred_weight: [K, N] weight of matching preferred affinity terms.
        containers: [K] number of containers, by which ImageLocality scales.
        scores_affinity, scores_balance: [K] whether those plugins score the pod at all.
        latency_excess_ms: [K, N] round trip beyond the tolerance band or the hard limit; 0 without
            a rule.
        assignment_gain: [K, N] terms of the assignment in the paper's Eq. (1).
        allowed: [G, N] whether the gene may take the node.
        sticky: [G] whether its activities never go to another node (they share a volume).
        image_bytes: [I] size of the image.
        image_present: [I, N] whether the node holds the image at time zero.
        image_scored: [K, N] whether a node that holds the image reports it under the pod's name.
        run_weight: [runs] weight of a run's completion.
    """

    requests: Annotated[Integers, "A", "R"]
    scored_requests: Annotated[Integers, "A", "2"]
    duration_seconds: Annotated[Floats, "A"]
    scales: Annotated[Booleans, "A"]
    virtual: Annotated[Booleans, "A"]
    gene: Annotated[Integers, "A"]
    class_of: Annotated[Integers, "A"]
    image: Annotated[Integers, "A"]
    download_bytes: Annotated[Floats, "A"]
    upload_bytes: Annotated[Floats, "A"]
    release_seconds: Annotated[Floats, "A"]
    run: Annotated[Integers, "A"]
    fixed_node: Annotated[Integers, "A"]
    is_running: Annotated[Booleans, "A"]
    predecessors_start: Annotated[Integers, "A + 1"]
    predecessors: Annotated[Integers, "E"]
    transfer_bytes: Annotated[Floats, "E"]
    successors_start: Annotated[Integers, "A + 1"]
    successors: Annotated[Integers, "E"]
    claims_start: Annotated[Integers, "A + 1"]
    claims: Annotated[Integers, "U"]
    exclusive: Annotated[Booleans, "V"]
    holders_start: Annotated[Integers, "A + 1"]
    holders: Annotated[Integers, "H"]
    held_together: Annotated[Booleans, "H"]
    holder_limit: Annotated[Integers, "L"]
    holder_size: Annotated[Integers, "L"]
    holder_started: Annotated[Booleans, "L"]
    limit_start: Annotated[Integers, "M + 1"]
    limit_most: Annotated[Integers, "M"]
    branch: Annotated[Integers, "A"]
    branch_choice: Annotated[Integers, "B"]
    choice_around: Annotated[Integers, "C"]
    choice_aside: Annotated[Booleans, "C"]
    after_failure: Annotated[Booleans, "A"]
    free: Annotated[Integers, "N", "R"]
    allocatable: Annotated[Integers, "N", "R"]
    scored_used: Annotated[Integers, "N", "2"]
    speed: Annotated[Floats, "N"]
    store_rate: Annotated[Floats, "N"]
    pull_rate: Annotated[Floats, "N"]
    feasible: Annotated[Booleans, "K", "N"]
    preferred_taints: Annotated[Integers, "K", "N"]
    preferred_weight: Annotated[Integers, "K", "N"]
    containers: Annotated[Integers, "K"]
    scores_affinity: Annotated[Booleans, "K"]
    scores_balance: Annotated[Booleans, "K"]
    latency_excess_ms: Annotated[Floats, "K", "N"]
    assignment_gain: Annotated[Floats, "K", "N"]
    allowed: Annotated[Booleans, "G", "N"]
    sticky: Annotated[Booleans, "G"]
    image_bytes: Annotated[Floats, "I"]
    image_present: Annotated[Booleans, "I", "N"]
    image_scored: Annotated[Booleans, "K", "N"]
    run_weight: Annotated[Floats, "runs"]

    def before(self, activity: int) -> Integers:
        """Return the activities that must have ended before an activity."""
        first, last = self.predecessors_start[activity : activity + 2]
        return self.predecessors[first:last]


FLOAT, INTEGER, BOOLEAN = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)

_ELEMENTS: Mapping[object, np.dtype[Any]] = {Floats: FLOAT, Integers: INTEGER, Booleans: BOOLEAN}
_HINTS = get_type_hints(ProblemArrays, include_extras=True)

AXES: Mapping[str, tuple[str, ...]] = {name: hint.__metadata__ for name, hint in _HINTS.items()}
"""Axes of each array of a problem, as its docstring names them."""

ELEMENTS: Mapping[str, np.dtype[Any]] = {
    name: _ELEMENTS[hint.__origin__] for name, hint in _HINTS.items()
}
"""Element type of each array of a problem."""


def distinct(values: NDArray[ScalarT]) -> NDArray[ScalarT]:
    """Return the sorted values, each once, as `numpy.unique` does.

    That imports masked arrays, a tenth of what it takes to import numpy.
    """
    ordered = np.sort(values, axis=None)
    is_first = np.ones(ordered.shape, np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def owners(starts: Integers) -> Integers:
    """Return [values] the row that each value is in, given where the rows start."""
    return np.repeat(np.arange(starts.size - 1), np.diff(starts))


def shares_of(amounts: Floats, room: Floats) -> Floats:
    """Return amounts as shares of the room; 0 where there is no room at all."""
    return np.divide(amounts, room, out=np.zeros_like(amounts), where=room > 0)


def occupied_seconds(
    arrays: ProblemArrays, activities: slice | Sequence[int] | Integers, nodes: slice | Integers
) -> Floats:
    """Return [activities, nodes] the seconds of download, run and upload of activities on nodes."""
    speed = np.where(arrays.scales[activities, None], arrays.speed[nodes], 1.0)
    moved = (arrays.download_bytes[activities] + arrays.upload_bytes[activities])[:, None]
    run = arrays.duration_seconds[activities, None] / speed
    return np.asarray(run + moved / arrays.store_rate[nodes])


def check_arrays(arrays: ProblemArrays) -> None:
    """Check types and axes of the arrays as `ProblemArrays` declares them.

    Raises:
        TypeError: an array has other elements or axes, or two differ in the size of an axis.
    """
    sizes = {"2": 2, "A + 1": arrays.class_of.size + 1}
    for name, axes in AXES.items():
        array = getattr(arrays, name)
        for axis, size in zip(axes, array.shape, strict=False):
            sizes.setdefault(axis, size)
        shape = tuple(sizes.get(axis) for axis in axes)
        if array.dtype != ELEMENTS[name] or array.shape != shape:
            raise TypeError(
                f"{name} must be {ELEMENTS[name]} [{', '.join(axes)}] = {list(shape)}, is"
                f" {array.dtype.name} {list(array.shape)}"
            )


@dataclass(frozen=True, eq=False)
class PlacementProblem:
    """A placement problem: the arrays, and the names that make a plan of its solution.

    Attributes:
        arrays: numeric part of the problem.
        activity_names: [A] step names; for a driver, the name of its group or step.
        is_driver: [A] whether it is a KFP driver pod.
        is_step: [A] whether it is a step of the run graph (not a driver, not virtual).
        unplaceable: [A] whether no node can ever take the step; the simulation lets its reference
            duration pass without a node, so that the rest of the plan can still be shown.
        node_names: [N] names of the nodes.
        resource_names: [R] names of the resources.
        latency_ms: [K, N] round trip to the step's location; NaN = irrelevant or unknown.
        ruled: [K] whether the class goes to the node of least round trip.
        gene_activities: activities of each gene.
        topological: [A] activities, predecessors first.
        direct_transfers: whether data moves from node to node instead of through the object store.
        link_bytes_per_second: bandwidth between two nodes for direct transfers.
        kube_version: (major, minor) of the simulated kube-scheduler.
        ties: way to choose among the best nodes, if not that of the version: `heap`, `random`, or
            `first` of the list, as in published simulations; "" = that of the version.
        objective: `completion`, `makespan`, `packing` or `paper`.
        makespan_limit_seconds: limit of the latest end of several runs, with `completion`; plans
            within it are better, whatever their completions. Infinite = no limit.
        dispatch: `ready` or `ordered`.
    """

    arrays: ProblemArrays
    activity_names: tuple[str, ...]
    is_driver: Booleans
    is_step: Booleans
    unplaceable: Booleans
    node_names: tuple[str, ...]
    resource_names: tuple[str, ...]
    latency_ms: Floats
    ruled: Booleans
    gene_activities: tuple[tuple[int, ...], ...]
    topological: Integers
    direct_transfers: bool
    link_bytes_per_second: float
    kube_version: tuple[int, int]
    ties: str = ""
    objective: str = "completion"
    makespan_limit_seconds: float = math.inf
    dispatch: str = "ready"

    @property
    def activities(self) -> int:
        """Number of activities (A)."""
        return len(self.activity_names)

    @property
    def nodes(self) -> int:
        """Number of nodes (N)."""
        return len(self.node_names)

    @property
    def tie_rule(self) -> str:
        """Way in which kube-scheduler takes one of the best nodes: `heap`, `random` or `first`."""
        return self.ties or ("heap" if self.kube_version >= (1, 35) else "random")

    @property
    def end_limit_seconds(self) -> float:
        """Limit of the latest end: the seconds beyond it count before all completions.

        It is infinite where it cannot decide, since a single run completes at its latest end.
        """
        is_single = self.arrays.run_weight.size == 1 and self.arrays.run_weight[0] > 0
        if is_single or self.objective not in ENDS_EARLIEST:
            return math.inf
        return 0.0 if self.objective == "makespan" else self.makespan_limit_seconds

    @property
    def is_completion_first(self) -> bool:
        """True if completions come first in the objective, after placed steps and latency rules."""
        return self.objective in ENDS_EARLIEST and math.isinf(self.end_limit_seconds)

    @property
    def simulation_work(self) -> int:
        """Relative cost of one simulation, by the problem's size, so that no clock is needed.

        Every activity that is not fixed looks at the nodes; where pods wait in a queue, a long
        queue is walked often.
        """
        fixed = int((self.arrays.fixed_node >= 0).sum())
        moving = self.activities - fixed
        queue = 0 if self.dispatch == "ordered" else moving // LONG_QUEUE
        return max(1, moving * (10 + self.nodes + queue) + fixed * 10)

    @property
    def places(self) -> Integers:
        """[A] place of each activity in the topological order."""
        places = np.empty(self.activities, np.int64)
        places[self.topological] = np.arange(self.activities)
        return places

    @property
    def genes(self) -> int:
        """Number of genes (G)."""
        return len(self.gene_activities)
