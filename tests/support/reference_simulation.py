"""A second simulation of a run, slow and plain, to hold the kernel's against.

Written from the model's description, on the objects of the run and the cluster instead of arrays:
no line of it comes from the kernel or from the lowering. It shares with them the static filters
(`constraints`) and takes kube-scheduler's scores from the scheduler model, both of which have tests
of their own.

What happens at one instant is taken in the order of the pods (drivers of groups, then for every
step its driver and itself), an end before a beginning; nodes are looked at in the order in which
something happened on them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from benchmarks.kube_scheduler import pod as kube
from benchmarks.kube_scheduler.model import KubeScheduler
from benchmarks.kube_scheduler.state import SchedulerState
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState, StepProgress
from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.node_rules.constraints import matches_any_term, objection
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph, Step, StepKind
from kfp_placement_engine.plans.assumptions import Assumptions

MEBIBYTE = 2**20
NO_REQUEST = {"cpu": 100, "memory": 200 * MEBIBYTE}
"""Amounts that kube-scheduler's resource scores count for a container that requests nothing."""

Key = tuple[str, bool]
"""Name of a step or group, and whether its driver is meant."""


@dataclass
class SimulatedPod:
    """One pod; the fields below `after` are what the simulation finds out."""

    key: Key
    step: Step | None
    position: int
    group: str = ""
    entered: str = ""
    is_group_driver: bool = False
    is_instant: bool = False
    over: bool = False
    after: set[int] = field(default_factory=set)
    node: Node | None = None
    start: float = math.inf
    begin: float = math.inf
    end: float = math.inf
    pull_seconds: float = 0.0


def keys_of(low: Lowered) -> list[Key]:
    """Return the key of each activity; one that begins a group without driver has the group's."""
    return [
        (each.name or low.runs[each.run].graph.groups[each.entered_group].name, each.step is None)
        for each in low.activities
    ]


@dataclass(frozen=True)
class Reference:
    """A run on a cluster, ready to be simulated."""

    graph: RunGraph
    cluster: Cluster
    assumptions: Assumptions
    ruled_types: tuple[str, ...] = ()
    kube_version: tuple[int, int] = (1, 36)
    marked_only: bool = False
    listed: tuple[str, ...] = ()  # names of the nodes as kube-scheduler lists them; () = as given
    draw: int = 0  # seed of its random ties
    begun: ActiveRun | None = None
    """Progress until now, which is time zero; None = nothing has begun."""

    # What has happened ---------------------------------------------------------------------------

    def progress(self, pod: SimulatedPod) -> StepProgress:
        """Return what happened to a pod: as given, or as what it starts shows."""
        waiting = StepProgress()
        if self.begun is None:
            return waiting
        name, is_driver = pod.key
        if not is_driver:
            return self.begun.progress.get(name, waiting)
        over = StepProgress(ProgressState.DONE)
        if pod.is_group_driver:
            driver_progress = self.begun.group_progress.get(pod.entered, waiting)
            return over if self._begun_inside(pod.entered) else driver_progress
        own = self.begun.progress.get(name, waiting)
        return over if own.state is not ProgressState.WAITING else own.driver or waiting

    def _begun_inside(self, group: str) -> bool:
        """Return whether a pod below the group has started, other than its own driver."""
        return any(
            self.progress(pod).state is not ProgressState.WAITING
            for pod in self.bare_pods()
            if not (pod.is_group_driver and pod.entered == group) and self._is_below(pod, group)
        )

    def _is_below(self, pod: SimulatedPod, group: str) -> bool:
        parents = {each.name: each.parent for each in self.graph.groups}
        name = parents[pod.entered] if pod.is_group_driver and pod.entered else pod.group
        while name != group and name:
            name = parents[name]
        return name == group

    def state(self, pod: SimulatedPod) -> ProgressState:
        """Waiting, running or done."""
        return self.progress(pod).state

    def runs_on(self, pod: SimulatedPod) -> Node | None:
        """The node of a running pod, if the cluster has it."""
        progress = self.progress(pod)
        if progress.state is not ProgressState.RUNNING:
            return None
        return next((node for node in self.cluster.nodes if node.name == progress.node), None)

    # What the pods are ---------------------------------------------------------------------------

    def pods(self) -> list[SimulatedPod]:
        """Return all pods with what each must still wait for; those that have ended are marked."""
        made = self.bare_pods()
        states = [self.state(pod) for pod in made]
        for pod, state in zip(made, states, strict=True):
            pod.over = state is ProgressState.DONE
            pod.after = {each for each in pod.after if states[each] is not ProgressState.DONE}
            if state is not ProgressState.WAITING:
                pod.after = set()
        return made

    def bare_pods(self) -> list[SimulatedPod]:
        """Return all pods with what each waits for if nothing has happened yet."""
        made: list[SimulatedPod] = []
        for group in self.graph.groups:
            driver = SimulatedPod((group.name or "root", True), None, len(made), group.name)
            driver.entered, driver.is_group_driver = group.name, True
            driver.is_instant = not group.has_driver
            made.append(driver)
        for step in self.graph.steps:
            if step.has_driver:
                made.append(SimulatedPod((step.name, True), None, len(made), step.group))
            made.append(SimulatedPod((step.name, False), step, len(made), step.group))
        at = {pod.key: pod.position for pod in made}
        for group in self.graph.groups:
            own = made[at[group.name or "root", True]]
            own.after = {at[name, False] for name in group.depends_on}
            if group.name:
                own.after.add(at[group.parent or "root", True])
        for step in self.graph.steps:
            pod = made[at[step.name, False]]
            first = pod
            if step.has_driver:
                first = made[at[step.name, True]]
                pod.after = {first.position}
            first.after = {at[name, False] for name in step.depends_on}
            if self.graph.groups:
                first.after.add(at[step.group or "root", True])
        return made

    def requests(self, step: Step | None) -> dict[str, int]:
        """Return what the pod of a step reserves."""
        if step is None or step.kind is not StepKind.CONTAINER:
            return {"cpu": 100, "memory": 64 * MEBIBYTE}
        asked = dict(step.requests)
        if self.graph.groups:
            asked["cpu"] = max(100, asked.get("cpu", 0))
            asked["memory"] = max(256 * MEBIBYTE, asked.get("memory", 0))
        return asked

    def kube_pod(self, pod: SimulatedPod) -> kube.Pod:
        """The pod as kube-scheduler sees it."""
        step, requests = pod.step, self.requests(pod.step)
        waits = self.graph.source != "wfformat"
        main = step.requests if step and step.kind is StepKind.CONTAINER else requests
        scored = {
            name: max(main.get(name, default) + (default if waits else 0), requests.get(name, 0))
            for name, default in NO_REQUEST.items()
        }
        common: dict[str, Any] = {
            "name": str(pod.key),
            "requests": requests,
            "scored_requests": scored,
        }
        if step is None or step.kind is not StepKind.CONTAINER:
            return kube.Pod(**common, containers=3)
        containers = 4 if self.graph.groups else 3 if waits else 1
        return kube.Pod(
            **common,
            node_selector=step.node_selector,
            affinity=step.affinity,
            tolerations=step.tolerations,
            images=(step.image,) if step.image else (),
            containers=containers,
        )

    # Where pods may go ---------------------------------------------------------------------------

    def lets_on(self, pod: SimulatedPod, node: Node) -> bool:
        """Static filters, and the nodes that a volume allows."""
        step = pod.step
        if step is None:
            step = Step("", "", StepKind.IMPORTER)
        selector, affinity, tolerations = step.node_selector, step.affinity, step.tolerations
        if step.kind is not StepKind.CONTAINER:
            plain = Step("", "")
            selector, affinity, tolerations = (
                plain.node_selector,
                plain.affinity,
                plain.tolerations,
            )
        if objection(selector, affinity, tolerations, node) is not None:
            return False
        return all(self._volume_allows(claim, node) for claim in step.claims)

    def _volume_allows(self, name: str, node: Node) -> bool:
        users = {
            at.name
            for pod in (self.bare_pods() if self.begun else ())
            if pod.step and name in pod.step.claims
            if (at := self.runs_on(pod)) is not None
        }
        if users and name in self.binding_claims():
            return node.name in users
        claim = next((each for each in self.graph.claims if each.name == name), None)
        if claim is None or claim.created_by or claim.is_workspace:
            return True
        existing = next((each for each in self.cluster.claims if each.name == name), None)
        if existing is None:
            return True
        if existing.required_terms is not None and not matches_any_term(
            existing.required_terms, node
        ):
            return False
        return (
            not existing.used_on
            or name not in self.binding_claims()
            or node.name in existing.used_on
        )

    def binding_claims(self) -> set[str]:
        """Claims whose users must share a node: whatever is not known to be shared."""
        shared = {"ReadWriteMany", "ReadOnlyMany"}
        result = set()
        for claim in self.graph.claims:
            modes = claim.access_modes
            if not modes and not claim.created_by and not claim.is_workspace:
                modes = next(
                    (each.access_modes for each in self.cluster.claims if each.name == claim.name),
                    (),
                )
            if not shared & set(modes):
                result.add(claim.name)
        return result

    def exclusive_claims(self) -> set[str]:
        """Claims that one pod at a time may have."""
        modes = {claim.name: claim.access_modes for claim in self.cluster.claims}
        return {
            claim.name
            for claim in self.graph.claims
            if claim.name in self.binding_claims()
            and "ReadWriteOncePod" in (claim.access_modes or modes.get(claim.name, ()))
        }

    def is_planned(self, step: Step | None) -> bool:
        """Return whether the plan says where the pod goes; else the default scheduler does."""
        if step is None or step.kind is not StepKind.CONTAINER or step.assumed_cached:
            return False
        if self.begun and self.begun.state_of(step.name) is not ProgressState.WAITING:
            return False
        return not self.marked_only or bool(step.scheduler)

    def usable(self, pod: SimulatedPod) -> list[Node]:
        """Nodes that let the pod on and have room for it beside what ran there before the run."""
        asked = {**self.requests(pod.step), "pods": 1}
        return [
            node
            for node in self.cluster.nodes
            if self.lets_on(pod, node)
            and all(
                amount == 0 or amount <= node.allocatable.get(name, 0) - node.used.get(name, 0)
                for name, amount in asked.items()
            )
        ]

    def round_trips(self, step: Step) -> Mapping[str, float] | None:
        """Node name -> milliseconds where latency matters to the step, else None."""
        ruled = step.type.lower() in self.ruled_types or step.max_latency_ms is not None
        if not ruled or not step.location or step.kind is not StepKind.CONTAINER:
            return None
        exact = self.cluster.latencies.get(step.location)
        if exact:
            return exact
        for name, trips in self.cluster.latencies.items():
            if name.lower() == step.location.lower() and trips:
                return trips
        return None

    def own_nodes(self, pod: SimulatedPod) -> list[Node]:
        """Usable nodes within the hard latency limit."""
        assert pod.step is not None
        trips, usable = self.round_trips(pod.step), self.usable(pod)
        if trips is None or pod.step.max_latency_ms is None:
            return usable
        limit = pod.step.max_latency_ms
        return [node for node in usable if trips.get(node.name, math.inf) <= limit]

    def excess_ms(self, pod: SimulatedPod, node: Node) -> float:
        """Round trip beyond the tolerance band, for the types that go near their users."""
        if pod.step is None or pod.step.type.lower() not in self.ruled_types:
            return 0.0
        trips = self.round_trips(pod.step)
        if trips is None:
            return 0.0
        measured = [trips[each.name] for each in self.usable(pod) if each.name in trips]
        if not measured:
            return 0.0
        if node.name not in trips:
            return 1e6
        band = min(measured) + max(0.5, 0.05 * min(measured))
        return max(0.0, trips[node.name] - band)

    def lacks_round_trip(self, pod: SimulatedPod, node: Node) -> bool:
        """Return whether a rule of the pod needs a round trip that nobody states for the node."""
        trips = None if pod.step is None else self.round_trips(pod.step)
        if pod.step is None or trips is None or node.name in trips:
            return False
        if pod.step.max_latency_ms is not None:
            return True
        # Where no usable node states one, none is nearer than another and the rule asks nothing.
        return any(each.name in trips for each in self.usable(pod))

    def unplaceable(self, pod: SimulatedPod) -> bool:
        """Return whether no node can ever take the pod."""
        if self.state(pod) is not ProgressState.WAITING:
            return False
        if pod.is_instant or (pod.step is not None and pod.step.assumed_cached):
            return False
        return not (self.own_nodes(pod) if self.is_planned(pod.step) else self.usable(pod))

    def planned_pods(self) -> Iterator[tuple[Step, SimulatedPod]]:
        """The pods that the plan places, with their steps."""
        for pod in self.pods():
            if pod.step and self.is_planned(pod.step) and not self.unplaceable(pod):
                yield pod.step, pod

    def own_names(self) -> dict[str, frozenset[str]]:
        """Planned step -> names of the usable nodes within its own limits."""
        return {
            step.name: frozenset(node.name for node in self.own_nodes(pod))
            for step, pod in self.planned_pods()
        }

    def companions(self) -> dict[str, frozenset[str]]:
        """Planned step -> planned steps, itself included, that share volumes, hop by hop."""
        binding = self.binding_claims()
        users = {step.name: set(step.claims) & binding for step, _ in self.planned_pods()}
        result = {}
        for name in users:
            together = {name}
            while True:
                claims = set().union(*(users[member] for member in together))
                wider = together | {other for other in users if users[other] & claims}
                if wider == together:
                    break
                together = wider
            result[name] = frozenset(together)
        return result

    def allowed(self) -> dict[str, frozenset[str]]:
        """Planned step -> names of the nodes that the plan may choose from."""
        own = self.own_names()
        result = {}
        for name, together in self.companions().items():
            common = frozenset.intersection(*(own[member] for member in together))
            result[name] = common or own[name]
            keep = together if common else {name}
            kept_nodes = self.begun.held if self.begun else {}
            held = [kept_nodes.get(each.name, "") for each in self.graph.steps if each.name in keep]
            kept = next((node for node in held if node in result[name]), None)
            if kept is not None:
                result[name] = frozenset({kept})
        return result

    def stuck(self) -> set[str]:
        """Planned steps that stay on one node because they share a volume."""
        own = self.own_names()
        return {
            name
            for name, together in self.companions().items()
            if len(together) > 1 and frozenset.intersection(*(own[member] for member in together))
        }

    def simulate(
        self,
        policy: str,
        planned: Mapping[str, str] | None = None,
        order: Mapping[str, float] | None = None,
    ) -> dict[Key, SimulatedPod]:
        """Simulate the run.

        Args:
            policy: `kube-default`, `fifo`, `ready` or `ordered`.
            planned: step -> node name (`ready`, `ordered`).
            order: step -> rank; steps start on each node in this order (`ordered`).
        """
        return _Simulation(self, policy, dict(planned or {}), dict(order or {})).run()


class DrawOfPod(Random):
    """A random choice that depends on a seed and the pod alone (SplitMix64)."""

    def __init__(self, seed: int, position: int) -> None:
        super().__init__()
        bits, wrap = seed + (position + 1) * 0x9E3779B97F4A7C15, 2**64
        bits %= wrap
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % wrap
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % wrap
        self._bits = bits ^ (bits >> 31)

    def choice(self, seq):
        """One of the sequence, always the same."""
        return seq[self._bits % len(seq)]


def _path(group: str, parents: Mapping[str, str]) -> list[str]:
    """A group and those around it, without the run."""
    path = []
    while group:
        path.append(group)
        group = parents[group]
    return path


@dataclass(frozen=True)
class Holder:
    """Pods that have one place of a limit while any of them is under way."""

    number: int
    limit: str
    most: int
    members: frozenset[int]
    waits_with_place: bool
    has_begun: bool


class _Simulation:
    def __init__(
        self, model: Reference, policy: str, planned: dict[str, str], order: dict[str, float]
    ) -> None:
        self.model, self.policy, self.order = model, policy, order
        self.nodes = {node.name: node for node in model.cluster.nodes}
        self.pods = model.pods()
        self.planned = planned if policy in ("ready", "ordered") else {}
        self.stuck = model.stuck()
        self.allowed = model.allowed()
        self.binding = model.binding_claims()
        self.exclusive = model.exclusive_claims()
        self.nowhere = {pod.position for pod in self.pods if model.unplaceable(pod)}
        self.agenda: list[tuple[float, int, int]] = []  # time, pod, 0 ends / 1 becomes ready
        self.queue: list[SimulatedPod] = []
        self.ready: set[int] = set()
        self.pull_ends: dict[tuple[str, str], float] = {}
        self.holders = list(self.all_holders())
        self.inside: dict[Holder, int] = {}  # those under way -> pods that have not ended
        self.held_back: dict[Holder, list[SimulatedPod]] = {}
        self.stirred: list[str] = []  # nodes where the next step may start now, first come first
        for pod in self.pods:
            at = model.runs_on(pod)
            if at is not None and self.image(pod):
                self.pull_ends[self.image(pod), at.name] = 0.0
        for holder in self.holders:
            if self.left(holder) and holder.has_begun:
                self.inside[holder] = self.left(holder)

    # The clock -----------------------------------------------------------------------------------

    def run(self) -> dict[Key, SimulatedPod]:
        for pod in self.pods:
            if not pod.after and not pod.over:
                self.agenda.append((self.when_ready(pod, 0.0), pod.position, 1))
        now = 0.0
        while True:
            if not self.agenda and not self.force_one(now):
                break
            now = min(self.agenda)[0]
            self.stirred = []
            while self.agenda and min(self.agenda)[0] == now:
                event = min(self.agenda)
                self.agenda.remove(event)
                pod = self.pods[event[1]]
                if event[2] == 0:
                    self.ended(pod, now)
                else:
                    self.becomes_ready(pod, now)
            self.start_in_order(now)
            self.serve_queue(now)
        return {pod.key: pod for pod in self.pods}

    def when_ready(self, pod: SimulatedPod, now: float) -> float:
        """Return when a pod is ready: in the plan's order, once its data has arrived."""
        if self.in_order(pod) and self.model.graph.direct_transfers:
            return max(now, self.arrival(pod, self.nodes[self.planned[pod.key[0]]]))
        return now

    def in_order(self, pod: SimulatedPod) -> bool:
        return self.policy == "ordered" and not pod.key[1] and pod.key[0] in self.planned

    def ended(self, pod: SimulatedPod, now: float) -> None:
        binding = self.claims_of(pod)
        if pod.node is not None:
            self.stirred.append(pod.node.name)
            self.stirred += [
                self.planned[other.key[0]]
                for other in self.pods
                if other.position in self.ready
                and self.in_order(other)
                and self.claims_of(other) & binding & self.exclusive
            ]
        for holder in reversed(self.around(pod)):
            self.inside[holder] -= 1
            if self.inside[holder] == 0:
                self.leave(holder, now)
        if pod.node is not None and binding:
            for other in self.pods:
                if other.node and math.isinf(other.begin) and self.volumes_free(other):
                    self.begin(other, now)
        for other in self.pods:
            if pod.position in other.after and all(
                self.has_ended(self.pods[before], now, pod) for before in other.after
            ):
                self.agenda.append((self.when_ready(other, now), other.position, 1))

    def has_ended(self, pod: SimulatedPod, now: float, latest: SimulatedPod) -> bool:
        """Ended before, or at this instant and already taken off the agenda."""
        return pod is latest or (pod.end <= now and (pod.end, pod.position, 0) not in self.agenda)

    # Limits --------------------------------------------------------------------------------------

    def all_holders(self) -> Iterator["Holder"]:
        """The iterations of limited loops, and the holders of the limits that the run states."""
        groups = self.model.graph.groups
        parents = {group.name: group.parent for group in groups}
        loops = {group.name: group.parallelism for group in groups if group.parallelism > 0}
        for group in groups:
            if group.kind is GroupKind.ITERATION and group.parent in loops:
                members = frozenset(
                    pod.position for pod in self.pods if group.name in _path(pod.group, parents)
                )
                entry = next(pod for pod in self.pods if pod.entered == group.name)
                has_begun = self.model.state(entry) is not ProgressState.WAITING
                name, most = f"loop {group.parent}", loops[group.parent]
                yield Holder(0, name, most, members, True, has_begun)
        for number, limit in enumerate(self.model.graph.limits):
            for at, names in enumerate(limit.holders):
                pods = [pod for pod in self.pods if pod.key[0] in names and not pod.is_group_driver]
                members = frozenset(pod.position for pod in pods)
                has_begun = any(self.model.state(p) is not ProgressState.WAITING for p in pods)
                waits = limit.waits_with_place
                yield Holder(at, f"limit {number}", limit.most, members, waits, has_begun)

    def left(self, holder: "Holder") -> int:
        return sum(not self.pods[position].over for position in holder.members)

    def around(self, pod: SimulatedPod) -> list["Holder"]:
        """The holders that a pod is part of, outermost first; of the same pods, children first."""
        mine = [holder for holder in self.holders if pod.position in holder.members]
        return sorted(mine, key=lambda each: (-self.left(each), not each.waits_with_place))

    def let_in(self, pod: SimulatedPod, now: float) -> bool:
        """Let the pod's holders in, one by one; those of the same pods that are locks together."""
        together: list[Holder] = []
        for holder in self.around(pod):
            is_lock = not holder.waits_with_place
            if not (is_lock and together and self.left(together[-1]) == self.left(holder)):
                together = []
            if holder in self.inside:
                continue
            if sum(each.limit == holder.limit for each in self.inside) >= holder.most:
                self.held_back.setdefault(holder, []).append(pod)
                for other in reversed(together):
                    self.leave(other, now)
                return False
            self.inside[holder] = self.left(holder)
            if is_lock:
                together.append(holder)
        return True

    def leave(self, holder: "Holder", now: float) -> None:
        """Give the place to the first holder that waits for one."""
        del self.inside[holder]
        waiting = [each for each in self.holders if each in self.held_back]
        waiting = [each for each in waiting if each.limit == holder.limit]
        if waiting and sum(each.limit == holder.limit for each in self.inside) < holder.most:
            for pod in self.held_back.pop(waiting[0]):
                self.agenda.append((now, pod.position, 1))

    def becomes_ready(self, pod: SimulatedPod, now: float) -> None:
        if not self.let_in(pod, now):
            return
        if self.model.state(pod) is ProgressState.RUNNING:
            self.go_on(pod)
            return
        is_instant = pod.is_instant or (pod.step and pod.step.assumed_cached)
        if is_instant or pod.position in self.nowhere:
            pod.start = pod.begin = now
            pod.end = now + (self.seconds(pod, None) if pod.position in self.nowhere else 0.0)
            self.agenda.append((pod.end, pod.position, 0))
            return
        self.ready.add(pod.position)
        if self.in_order(pod):
            self.stirred.append(self.planned[pod.key[0]])
        else:
            self.queue.append(pod)

    def go_on(self, pod: SimulatedPod) -> None:
        """Continue a pod that runs already: what is left of its time counts from now."""
        progress, share = self.model.progress(pod), self.model.assumptions.overrun_share
        pod.node = self.model.runs_on(pod)
        pod.start = pod.begin = 0.0
        expected = self.seconds(pod, pod.node)
        image = self.image(pod)
        if pod.node is not None and image and image not in pod.node.images:
            expected += self.pull_seconds(image, pod.node)
        left = expected - progress.seconds_since_start
        pod.end = left if left > 0 else share * progress.seconds_since_start
        self.agenda.append((pod.end, pod.position, 0))

    # Node choice ---------------------------------------------------------------------------------

    def serve_queue(self, now: float) -> None:
        """Pods in order of creation; one that fits nowhere is skipped, or blocks (fifo)."""
        for pod in list(self.queue):
            node = self.choose(pod, now)
            if node is not None:
                self.queue.remove(pod)
                self.bind(pod, node, now)
            elif self.policy == "fifo":
                return

    def start_in_order(self, now: float) -> None:
        """Start the next steps of each node, while they are ready and there is room."""
        for name in dict.fromkeys(self.stirred):
            steps = [
                pod for pod in self.pods if self.in_order(pod) and self.planned[pod.key[0]] == name
            ]
            for pod in sorted(steps, key=lambda pod: self.order[pod.key[0]]):
                if pod.node is not None:
                    continue
                if pod.position not in self.ready or not self.fits(pod, self.nodes[name]):
                    break
                self.bind(pod, self.nodes[name], now)

    def force_one(self, now: float) -> bool:
        """Start the most urgent step that can, where nothing runs and the order keeps all back."""
        waiting = [
            self.pods[position]
            for position in self.ready
            if self.in_order(self.pods[position]) and self.pods[position].node is None
        ]
        for pod in sorted(waiting, key=lambda pod: (self.order[pod.key[0]], pod.position)):
            node = self.nodes[self.planned[pod.key[0]]]
            if self.fits(pod, node):
                self.bind(pod, node, now)
                return True
        return False

    def fits(self, pod: SimulatedPod, node: Node) -> bool:
        if not self.model.lets_on(pod, node) or self.awaits_claim(pod):
            return False
        taken = dict(node.used)
        for other in self.pods:
            if other.node is node and not self.gone(other):
                for name, amount in {**self.model.requests(other.step), "pods": 1}.items():
                    taken[name] = taken.get(name, 0) + amount
        return all(
            amount == 0 or amount <= node.allocatable.get(name, 0) - taken.get(name, 0)
            for name, amount in {**self.model.requests(pod.step), "pods": 1}.items()
        )

    def awaits_claim(self, pod: SimulatedPod) -> bool:
        """A pod on any node has a claim that only one may have."""
        wanted = self.claims_of(pod) & self.exclusive
        return any(
            other.node is not None and not self.gone(other) and self.claims_of(other) & wanted
            for other in self.pods
            if wanted
        )

    def gone(self, pod: SimulatedPod) -> bool:
        """Bound and ended."""
        return not math.isinf(pod.end) and (pod.end, pod.position, 0) not in self.agenda

    def choose(self, pod: SimulatedPod, now: float) -> Node | None:
        name = pod.key[0]
        if pod.key[1] or name not in self.planned:
            return self.by_kube(pod, now)
        first = self.nodes[self.planned[name]]
        if self.fits(pod, first):
            return first
        if name in self.stuck:
            return None
        others = [
            node
            for node in self.model.cluster.nodes
            if node.name in self.allowed[name] and self.fits(pod, node)
        ]
        asked = self.model.requests(pod.step).get("cpu", 0)

        def rank(node: Node) -> tuple[float, float, float]:
            left = self.cpu_left(node) - asked
            return (
                self.model.excess_ms(pod, node),
                self.end_on(pod, node, now),
                left / max(1, node.allocatable.get("cpu", 0)),
            )

        return min(others, key=rank, default=None)

    def cpu_left(self, node: Node) -> int:
        taken = sum(
            self.model.requests(other.step).get("cpu", 0)
            for other in self.pods
            if other.node is node and not self.gone(other)
        )
        return node.allocatable.get("cpu", 0) - node.used.get("cpu", 0) - taken

    def nodes_with_pulled(self, now: float) -> list[Node]:
        """The nodes with the images whose pulls have ended."""
        images = {node.name: dict(node.images) for node in self.model.cluster.nodes}
        for (image, name), end in self.pull_ends.items():
            if end <= now:
                images[name].setdefault(image, self.image_bytes(image))
        return [replace(node, images=images[node.name]) for node in self.model.cluster.nodes]

    def by_kube(self, pod: SimulatedPod, now: float) -> Node | None:
        bound = [
            self._bound(other)
            for other in self.pods
            if other.node is not None and not self.gone(other)
        ]
        state = SchedulerState(self.nodes_with_pulled(now), bound)
        ties = "heap" if self.model.kube_version >= (1, 35) else "random"
        scheduler = KubeScheduler(self.model.kube_version, ties=ties)
        seen = self.model.kube_pod(pod)
        fitting = set(scheduler.fitting(seen, state))
        names = [
            name
            for name in self.model.listed or [node.name for node in self.model.cluster.nodes]
            if name in fitting and self.model.lets_on(pod, self.nodes[name])
        ]
        if self.awaits_claim(pod):
            names = []
        if len(names) < 2:
            return self.nodes[names[0]] if names else None
        totals = {
            name: sum(row.values()) for name, row in scheduler.scores(seen, state, names).items()
        }
        return self.nodes[scheduler.choose(names, totals, DrawOfPod(self.model.draw, pod.position))]

    def _bound(self, pod: SimulatedPod) -> kube.Pod:
        assert pod.node is not None
        seen = self.model.kube_pod(pod)
        return kube.Pod(
            name=seen.name,
            requests=seen.requests,
            scored_requests=seen.scored_requests,
            node_name=pod.node.name,
        )

    # On the node ---------------------------------------------------------------------------------

    def bind(self, pod: SimulatedPod, node: Node, now: float) -> None:
        pod.node, pod.start = node, now
        self.ready.discard(pod.position)
        if self.volumes_free(pod):
            self.begin(pod, now)

    def claims_of(self, pod: SimulatedPod) -> set[str]:
        return set(pod.step.claims) & self.binding if pod.step else set()

    def volumes_free(self, pod: SimulatedPod) -> bool:
        """Return whether no pod on another node has one of the pod's volumes attached."""
        return not any(
            other.node is not pod.node
            and not math.isinf(other.begin)
            and not self.gone(other)
            and self.claims_of(other) & self.claims_of(pod)
            for other in self.pods
            if other.node is not None
        )

    def begin(self, pod: SimulatedPod, now: float) -> None:
        assert pod.node is not None
        pod.begin = now
        image = self.image(pod)
        runs_from = now
        if image:
            runs_from = self.pulled(image, pod.node, now)
            self.pull_ends.setdefault((image, pod.node.name), runs_from)
        pod.pull_seconds = runs_from - now
        if self.model.graph.direct_transfers:
            runs_from = max(runs_from, self.arrival(pod, pod.node))
        pod.end = runs_from + self.seconds(pod, pod.node)
        self.agenda.append((pod.end, pod.position, 0))

    def end_on(self, pod: SimulatedPod, node: Node, now: float) -> float:
        image = self.image(pod)
        runs_from = self.pulled(image, node, now) if image else now
        if self.model.graph.direct_transfers:
            runs_from = max(runs_from, self.arrival(pod, node))
        return runs_from + self.seconds(pod, node)

    def image(self, pod: SimulatedPod) -> str:
        if pod.step is None or pod.step.kind is not StepKind.CONTAINER or not pod.step.image:
            return ""
        name = pod.step.image
        return name if ":" in name.rsplit("/", 1)[-1] else name + ":latest"

    def pulled(self, image: str, node: Node, now: float) -> float:
        """Return when the image is on the node if a pod asks for it now; one pull serves all."""
        if image in node.images:
            return now
        pull_end = self.pull_ends.get((image, node.name))
        if pull_end is not None:
            return max(now, pull_end)
        return now + self.pull_seconds(image, node)

    def pull_seconds(self, image: str, node: Node) -> float:
        rate = node.pull_bytes_per_second or self.model.assumptions.pull_bytes_per_second
        return self.image_bytes(image) / rate

    def image_bytes(self, image: str) -> int:
        sizes = [each.images[image] for each in self.model.cluster.nodes if image in each.images]
        assumed = self.model.assumptions.image_bytes
        return sizes[0] if sizes else 400 * 2**20 if assumed is None else assumed

    def arrival(self, pod: SimulatedPod, node: Node) -> float:
        """Return when the inputs are on the node if they move there from where they were made."""
        latest = 0.0
        if pod.step is None:
            return latest
        for name in pod.step.depends_on:
            producer = next(other for other in self.pods if other.key == (name, False))
            if producer.over:
                continue
            moved = sum(
                self.size(each.size_bytes) for each in pod.step.inputs if each.producer == name
            )
            apart = producer.node is not node
            rate = self.model.assumptions.link_bytes_per_second
            latest = max(latest, producer.end + (moved / rate if apart else 0.0))
        return latest

    def size(self, nbytes: int | None) -> int:
        return self.model.assumptions.output_bytes if nbytes is None else nbytes

    def seconds(self, pod: SimulatedPod, node: Node | None) -> float:
        """Download, run and upload; without a node the run time on the reference node."""
        step, assumptions = pod.step, self.model.assumptions
        if step is None:
            return assumptions.driver_seconds
        run = step.duration_seconds
        if run is None:
            is_container = step.kind is StepKind.CONTAINER
            run = assumptions.duration_seconds if is_container else assumptions.driver_seconds
        if node is None:
            return run
        if step.kind is StepKind.CONTAINER:
            run = run / node.speed
        if self.model.graph.direct_transfers:
            return run
        moved = sum(self.size(each.size_bytes) for each in step.inputs)
        moved += sum(step.output_bytes.values())
        return run + moved / (node.store_bytes_per_second or assumptions.store_bytes_per_second)
