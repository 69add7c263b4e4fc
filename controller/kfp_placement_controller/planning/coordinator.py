"""The heart of `plan`: changes and the time come in, actions go out. Decide, then write.

```
comes in, by kind        is kept in   follows at each tick of the leader, in this order
runs, pods, namespaces   registry     learning   learn from ended runs that had no plan
nodes, claims, places    cluster      plans      evaluate, plan at once, search, promise
PipelineHistories        histories    publishing write PipelinePlacements, warn in events
RunQueues, RunRequests   requests     gates      take gates off, report deviations
RunQueues, Leases        watchdog     watchdog   act for a dead scheduler or queue
PlacementPolicy          policy       requests   write what runs need into RunRequests
plans of a search        plans        histories  build the past of pipelines
answers about histories  histories    learning   learn from ended runs, write histories
packages, templates      joined       joined     ask KFP's API for the next package
```

`Reactions` tell `registry`, `plans` and `requests` which runs a changed object concerns.

One thread owns all of this. It calls no API, starts no thread and reads no clock, so that tests
drive it through whole recordings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from kfp_placement_controller.histories.actions import HistoryAnswer
from kfp_placement_controller.histories.histories import Histories
from kfp_placement_controller.histories.known_pasts import STEPS_AT_ONCE
from kfp_placement_controller.kinds import (
    LOCATIONS,
    PIPELINE_HISTORIES,
    PLACEMENT_METADATA,
    POLICIES,
    RUN_QUEUES,
    RUN_REQUESTS,
)
from kfp_placement_controller.learning.actions import MemoryAnswer
from kfp_placement_controller.learning.ended_pipelines import EndedPipeline
from kfp_placement_controller.learning.run_learning import RunLearning
from kfp_placement_controller.learning.unplanned_runs import UnplannedReader
from kfp_placement_controller.observed.histories import ObservedHistory
from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.observed.namespaces import Namespaces
from kfp_placement_controller.observed.placed_runs import PlacedRun
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.packages.actions import PackageAnswer
from kfp_placement_controller.packages.joined_runs import JoinedRuns
from kfp_placement_controller.packages.run_packages import RunPackages
from kfp_placement_controller.planning.actions import Action, ForgetRun
from kfp_placement_controller.planning.cluster_state import ClusterState
from kfp_placement_controller.planning.gate_controller import GateController
from kfp_placement_controller.planning.needs.run_requests import RunRequests
from kfp_placement_controller.planning.placement_publisher import PlacementPublisher
from kfp_placement_controller.planning.publishing import Publishing
from kfp_placement_controller.planning.reactions import Reactions
from kfp_placement_controller.planning.rounds import RoundFailure, RoundResult
from kfp_placement_controller.planning.run_plans import WITHOUT_PAST_RUNS, RunPlans
from kfp_placement_controller.planning.watchdog import Watchdog
from kfp_placement_controller.runs.kept_contents import KeptContents
from kfp_placement_controller.runs.planner_parameters import PlanningParams
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.runs.turns import Turns
from kfp_placement_controller.sources.load import Load
from kfp_placement_controller.sources.source import ObservedRun, RunSources
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.custom_resources import (
    PipelinePlacement,
    PlacementPolicy,
    StoredPolicy,
)
from kfp_placement_engine.contract.policy import POLICY_NAME, PlacementPolicySpec
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import CLAIMS, EVENTS, NAMESPACES, NODES, PODS, VOLUMES, Kind

T = TypeVar("T")


@dataclass
class Coordinator:
    """Wiring of the planner's parts: those that know the cluster, and those that act on it.

    Attributes:
        sources: kinds of objects that are runs.
        monotonic: monotonic clock, in seconds.
        cpu_seconds: function that returns the CPU time of the thread, which turns count.
        own_namespace: the controller's namespace.
        params: times and thresholds.
        policy: policy in force; its defaults while there is none.
        epoch: epoch of our Lease; None while following.
        may_gate: whether the planner may take gates off, so that pods can be gated at all.
        opt_in: whether only namespaces that ask for it are planned.
        queues: whether queues of runs are installed.
        history: whether runs teach later ones.
        kfp_api: whether KFP's API may be asked for the packages of runs.
    """

    sources: RunSources
    monotonic: Callable[[], float]
    cpu_seconds: Callable[[], float] = lambda: 0.0
    own_namespace: str = ""
    params: PlanningParams = field(default_factory=PlanningParams)
    policy: PlacementPolicy = field(default_factory=PlacementPolicy)
    epoch: int | None = None
    may_gate: bool = True
    opt_in: bool = False
    queues: bool = False
    history: bool = False
    kfp_api: bool = False
    _gone: list[RunKey] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the parts."""
        self._warnings = WarningLog(__name__)
        retry_seconds = self.params.retry_seconds
        # What is known.
        self.histories = Histories(self.history, leads=self.epoch is not None)
        self.histories.use(self.policy.spec.history)
        self.cluster = ClusterState(Load(self.sources))
        self.registry = RunRegistry(
            lambda: self.policy.spec,
            self.sources,
            Namespaces(self.own_namespace, self.opt_in),
            histories=self.histories,
        )
        self.joined = JoinedRuns(RunPackages(self.kfp_api, self.own_namespace))
        # What is done about it.
        self.plans = RunPlans(
            self.registry,
            self.cluster,
            self.params,
            self.joined.awaits_package,
            turns=Turns(self.cpu_seconds),
        )
        self.publisher = PlacementPublisher(self.params)
        self.publishing = Publishing(self.plans, self.publisher)
        self.gates = GateController(self.registry, self.cluster, retry_seconds)
        self.watchdog = Watchdog(retry_seconds, self.sources, self.may_gate)
        self.requests = RunRequests(
            self.registry,
            self.plans.builder,
            retry_seconds,
            self.joined.awaits_package,
            self.plans.turns,
        )
        self.contents = KeptContents(
            lambda: self.policy.spec.namespace_limits.planned_steps, self._needs_content
        )
        reader = UnplannedReader(self.registry, self.params)
        self.learning = RunLearning(self.histories, self.cluster.nodes, reader)
        self._reactions = Reactions(self.registry, self.cluster, self.plans.planner, self.requests)
        self._handlers: Mapping[Kind, Callable[[Change[Any]], None]] = {
            NODES: self._reactions.node_changed,
            PLACEMENT_METADATA: self._placement,
            CLAIMS: self._reactions.claim_changed,
            VOLUMES: self._reactions.volume_changed,
            EVENTS: self.registry.attach_failures.observe,
            LOCATIONS: self._reactions.location_changed,
            NAMESPACES: self._reactions.namespace_changed,
            POLICIES: self._policy,
            PIPELINE_HISTORIES: self._history,
            RUN_QUEUES: self._queue,
            RUN_REQUESTS: self.requests.request_changed,
        }
        self._template_kinds = {kind for source in self.sources for kind in source.template_kinds}

    # What comes in.

    def handle(self, kind: Kind, change: Change[Any], now: datetime) -> None:
        """Take in that an object is new, has changed or is gone; other kinds are those of runs."""
        if kind == PODS:
            self._pod(change, now)
        elif kind in self._template_kinds:
            self._use(self.joined.templates_changed(kind.kind, change), now)
        elif kind in self._handlers:
            self._handlers[kind](change)
        else:
            self._run(change, now)

    def scheduler_lease(self, lease: HeldLease | None) -> None:
        """Take in our scheduler's Lease; None = nobody holds it."""
        self.watchdog.scheduler_lease.observe(lease, self.monotonic())

    def queue_lease(self, lease: HeldLease | None) -> None:
        """Take in the Lease of the process that admits runs; None = nobody holds it."""
        self.watchdog.queue_lease.observe(lease, self.monotonic())

    def round_ended(self, outcome: RoundResult | RoundFailure, now: datetime) -> None:
        """Take in the plans of a search, or the reason why there are none."""
        self.plans.planner.round_ended(outcome, now, self.monotonic())

    def pipeline_ended(self, run: EndedPipeline) -> None:
        """Take in that a run without a plan has ended."""
        self.learning.pipeline_ended(run, self.monotonic())

    def memory_answered(self, answer: MemoryAnswer, _now: datetime) -> None:
        """Take in the peak memory of pods, or the reason why it is not known."""
        self.learning.memory_answered(answer, self.monotonic())

    def package_answered(self, answer: PackageAnswer, now: datetime) -> None:
        """Take in the package of a run, or the reason why there is none: runs are read again."""
        self._use(self.joined.package_answered(answer, now, self.monotonic()), now)

    def history_answered(self, answer: HistoryAnswer, _now: datetime) -> None:
        """Take in that a history has been written, or could not be."""
        self._aside(partial(self.histories.answered, answer, self.monotonic()))

    # Who leads.

    def lead(self, epoch: int, placements: Iterable[PipelinePlacement], now: datetime) -> None:
        """Lead from now on, with this epoch; `placements` are all that the API server has now."""
        self.epoch = epoch
        self.histories.lead()
        self.publisher.take_over(placements)
        self.requests.lead()
        self.watchdog.queue_lease.restart()
        for run in self.registry.runs.values():
            # What this planner has written about the run before no longer counts.
            self.registry.unsettled.add(run)
            if not run.is_unread:
                self._adopt(run, now)
        self.plans.planner.may_gain()

    def follow(self) -> None:
        """Follow another planner from now on."""
        self.epoch = None
        self.plans.planner.rest()
        self.histories.follow()
        self.learning.follow()
        self._gone.clear()

    # What follows.

    def tick(self, now: datetime) -> list[Action]:
        """Return what must be done now; called after changes, and when `next_at` says so."""
        policy, monotonic_seconds = self.policy.spec, self.monotonic()
        self.learning.learn_unplanned(now, monotonic_seconds)
        self.plans.turns.begin(monotonic_seconds)
        self.registry.drop_excluded()
        if self.epoch is None:
            self.plans.read(now, may_be_large=True)
            self.contents.settle()
            return [*self.gates.overdue(policy, now, monotonic_seconds)]
        actions: list[Action] = [ForgetRun(key) for key in self._gone]
        self._gone.clear()
        self._read(now, may_be_large=False)
        update = self.plans.update(now, monotonic_seconds)
        if self.plans.intake.has_backlog:
            self._read(now, may_be_large=True)
        self.contents.settle()
        for run in update.evaluated:
            self.learning.run_evaluated(run, monotonic_seconds)
        if update.next_round is not None:
            actions.append(update.next_round)
        actions += self.publishing.due(self.epoch, now, monotonic_seconds)
        actions += self._others_due(policy, now, monotonic_seconds)
        question = self.joined.question(self._needs_package, monotonic_seconds)
        if question is not None:
            actions.append(question)
        if self.history:
            is_idle = not (update.evaluated or update.planned or actions)
            steps = STEPS_AT_ONCE if is_idle else 1
            self._aside(partial(self.histories.pasts.build, steps))
        actions += self._aside(partial(self.learning.due, now, monotonic_seconds)) or ()
        return actions

    def _read(self, now: datetime, *, may_be_large: bool) -> None:
        """Read the runs whose turn it is, and go on with those that had a plan."""
        for run in self.plans.read(now, may_be_large=may_be_large):
            self._adopt(run, now)

    def next_at(self, now: datetime) -> datetime:
        """Return when to tick again if nothing changes before."""
        monotonic_seconds = self.monotonic()
        has_backlog = (
            self.requests.has_backlog
            or self.publishing.has_backlog
            or self.histories.pasts.is_building
            or self.plans.first_plans.has_backlog(monotonic_seconds)
            or self.plans.has_unevaluated()
        )
        if self.plans.intake.has_backlog:
            return now
        if self.epoch is not None and has_backlog:
            return now
        pauses = (
            self.joined.pause_seconds(monotonic_seconds),
            self.params.evaluation_seconds,
            self.plans.planner.pause_seconds(monotonic_seconds),
            self.learning.unplanned.pause_seconds(monotonic_seconds),
        )
        moment = now + timedelta(seconds=min(pause for pause in pauses if pause is not None))
        return min(moment, self.gates.next_at(self.policy.spec, now) or moment)

    def _others_due(
        self, policy: PlacementPolicySpec, now: datetime, monotonic_seconds: float
    ) -> Iterator[Action]:
        """Yield what must be done beside plans; a defect in one part keeps back no other."""
        turn = partial(self.gates.due, policy, now, monotonic_seconds)
        opening = self._warnings.take_turn("gates come off at their deadline only", turn)
        if opening is None:
            opening = self.gates.overdue(policy, now, monotonic_seconds)
        yield from opening
        yield from self.gates.deviations.noticed()
        marked = self.registry.marked_pods()
        # None of these iterators has begun to work: each does in its own turn.
        parts: Mapping[str, Iterator[Action]] = {
            "nobody sees whether our scheduler works": self.watchdog.scheduler_due(
                policy, self.policy.status, marked, now, monotonic_seconds
            ),
            "nobody sees whether the queue works": self.watchdog.queue_due(
                policy, monotonic_seconds
            ),
            "RunRequests get no answer": self.requests.due(monotonic_seconds),
        }
        for consequence, due in parts.items():
            yield from self._warnings.take_turn(consequence, partial(tuple, due)) or ()

    def _aside(self, turn: Callable[[], T]) -> T | None:
        """Return the result of work that plans can do without, or None after a defect in it."""
        return self._warnings.take_turn(WITHOUT_PAST_RUNS, turn)

    def _adopt(self, run: TrackedRun, now: datetime) -> None:
        """Go on with what another planner has written of a run, if anything."""
        placement = self.publisher.taken_over(run)
        if placement is None:
            return
        self.plans.evaluate_adopted(run, now, self.monotonic())
        self.publisher.adopt(run, placement)
        self.gates.deviations.evaluate_bound(run)
        # A run that ended while no planner led is not evaluated again.
        self.learning.run_evaluated(run, self.monotonic())

    # What comes in, by kind.

    def _run(self, change: Change[ObservedRun], now: datetime) -> None:
        key, observed = RunKey(*change.key), change.new
        if observed is None:
            self.joined.gone(key)
        else:
            observed = self.joined.join(observed, self.monotonic())
        self.contents.run_changed(key, observed)
        if self.queues:
            self.requests.run_changed(Change(change.key, change.old, observed))
        if observed is not None and not observed.is_planned:
            if key not in self.registry.runs:
                return
            # Its namespace does not take part any more, and there was no plan yet.
            observed = None
        if observed is None:
            self._forget(key, now)
        self.registry.run_changed(Change(change.key, change.old, observed), now)

    def _use(self, joined: Iterable[ObservedRun], now: datetime) -> None:
        """Go on with runs that have another package or other templates."""
        for run in joined:
            turn = partial(self._reactions.run_joined, run, now)
            self._warnings.take_turn("runs are planned as they were read before", turn)

    def _needs_content(self, run: ObservedRun) -> bool:
        """Return whether the content of a run is read as it goes on, or will be in its turn."""
        return self.registry.reads(run) or self.requests.needs_content(run)

    def _needs_package(self, run: ObservedRun) -> bool:
        """Return whether a run is planned, or waits in a queue."""
        return run.key in self.registry.runs or self.requests.takes_part(run.key.namespace)

    def _forget(self, key: RunKey, now: datetime) -> None:
        """Forget a run that is gone."""
        run = self.registry.runs.get(key)
        if run is not None:
            self.plans.learned[key.namespace].forget(run.pods)
        self.publisher.forget(key)
        self.learning.run_gone(key, now)
        if self.epoch is not None:
            self._gone.append(key)

    def _pod(self, change: Change[ObservedPod], now: datetime) -> None:
        self.cluster.load.change(change.old, change.new)
        self.registry.pod_changed(change, now)
        leads = self.epoch is not None
        self.gates.deviations.pod_changed(change, self.policy.spec, now, leads=leads)
        self.gates.pod_changed(change)

    def _policy(self, change: Change[StoredPolicy]) -> None:
        """Take in that a PlacementPolicy is new, has changed or is gone; only one counts."""
        if change.key[1] != POLICY_NAME:
            return
        stored = change.new or StoredPolicy(PlacementPolicy())
        before, self.policy = self.policy.spec, stored.policy
        after = self.policy.spec
        self.watchdog.policy_problem = stored.problem
        self._reactions.policy_changed(before, after)
        if before.history != after.history:
            self.learning.memory.use(after.history)
            self._aside(partial(self.histories.use, after.history))

    def _history(self, change: Change[ObservedHistory]) -> None:
        self._aside(partial(self.histories.changed, change))
        self.requests.history_changed(change)

    def _queue(self, change: Change[ObservedQueue]) -> None:
        self.watchdog.queue_changed(change)
        self.requests.queue_changed(change)

    def _placement(self, change: Change[PlacedRun]) -> None:
        """Take in that somebody may have deleted the object of a run."""
        run = self.registry.runs.get(RunKey(*change.key))
        if change.new is None and run is not None:
            self.publisher.lost(run, self.monotonic())
