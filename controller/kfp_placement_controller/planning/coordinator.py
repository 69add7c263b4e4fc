"""The heart of `plan`: changes and the time in, decisions out. Decide, then write.

One thread owns all of this. It calls no API, starts no thread and reads no clock, so that tests
drive it through whole recordings.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from kfp_placement_controller.histories.actions import HistoryAnswer
from kfp_placement_controller.histories.histories import Histories
from kfp_placement_controller.histories.known_pasts import STEPS_AT_ONCE, KnownPast
from kfp_placement_controller.kinds import (
    LOCATIONS,
    PIPELINE_HISTORIES,
    PLACEMENT_METADATA,
    POLICIES,
    RUN_QUEUES,
    RUN_REQUESTS,
)
from kfp_placement_controller.learning.run_learning import RunLearning
from kfp_placement_controller.learning.unplanned_runs import UnplannedRuns
from kfp_placement_controller.observed.histories import ObservedHistory
from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.observed.placed_runs import PlacedRun
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.planning.actions import Action, Announce, ForgetRun, WritePlacement
from kfp_placement_controller.planning.cluster_state import ClusterState
from kfp_placement_controller.planning.deviations import DeviationWatch
from kfp_placement_controller.planning.evaluations import Evaluations, FirstPlans
from kfp_placement_controller.planning.gate_controller import GateController
from kfp_placement_controller.planning.guard import Guard, QueueGuard
from kfp_placement_controller.planning.placement_publisher import PlacementPublisher
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.promising import Promising
from kfp_placement_controller.planning.reactions import Reactions
from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_controller.planning.run_requests import RunRequests
from kfp_placement_controller.runs.overheads import LearnedOverheads
from kfp_placement_controller.runs.parameters import PlanningParams
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources.load import Load
from kfp_placement_controller.sources.source import ObservedRun, RunSources
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.policy import POLICY_NAME, PlacementPolicySpec
from kfp_placement_engine.contract.resources import PipelinePlacement, PlacementPolicy
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import CLAIMS, EVENTS, NAMESPACES, NODES, PODS, VOLUMES, Kind

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass
class Coordinator:
    """All that is known, and what follows from it.

    Attributes:
        sources: where runs come from.
        own_namespace: the controller's.
        params: times and thresholds.
        policy: in force; its defaults while there is none.
        epoch: of our Lease while we lead; None = we only follow.
        learned: overheads seen.
        may_gate: whether we may take gates off, so that pods may be gated at all.
        opt_in: whether only namespaces that ask for it are planned.
        queues: whether queues of runs are installed.
        history: whether runs teach later ones.
    """

    sources: RunSources
    own_namespace: str = ""
    params: PlanningParams = field(default_factory=PlanningParams)
    policy: PlacementPolicy = field(default_factory=PlacementPolicy)
    epoch: int | None = None
    learned: LearnedOverheads = field(default_factory=LearnedOverheads)
    may_gate: bool = True
    opt_in: bool = False
    queues: bool = False
    history: bool = False

    def __post_init__(self) -> None:
        """Make the parts."""
        self.histories = Histories(self.history, self.policy.spec.history.keep_days)
        self.cluster = ClusterState(Load(self.sources))
        self.registry = RunRegistry(
            lambda: self.policy.spec,
            self.sources,
            self.own_namespace,
            self.opt_in,
            past=self._past,
        )
        builder = RoundBuilder(self.registry, self.cluster, self.learned, self.params)
        self.planner = Planner(self.registry, builder, self.params)
        self.requests = RunRequests(
            self.registry, builder, self.histories, self.params.retry_seconds
        )
        self.reactions = Reactions(self.registry, self.cluster, self.planner, self.requests)
        self.evaluations = Evaluations(self.registry, self.planner, self.learned, self.params)
        self.first_plans = FirstPlans(
            self.registry, self.planner.problems, self.params.evaluation_seconds
        )
        self.deviations = DeviationWatch(self.registry, self.cluster)
        self.gates = GateController(
            self.registry, self.cluster, self.deviations, self.params.retry_seconds
        )
        self.publisher = PlacementPublisher(self.params)
        self.promising = Promising(self.registry, builder, self.planner, self.histories)
        self.guard = Guard(self.params.retry_seconds, self.sources, self.may_gate)
        self.queue_guard = QueueGuard(self.params.retry_seconds)
        unplanned = UnplannedRuns(
            self.sources, self.registry, lambda: self.policy.spec, self.params
        )
        self.learning = RunLearning(self.histories, self.cluster.nodes, unplanned)
        self._warnings = WarningLog(_LOG)
        self._gone: list[RunKey] = []
        self._handlers: Mapping[Kind, Callable[[Change[Any], datetime], None]] = {
            NODES: self.reactions.node,
            PLACEMENT_METADATA: self._placement,
            PODS: self._pod,
            CLAIMS: self.reactions.claim,
            VOLUMES: self.reactions.volume,
            EVENTS: lambda change, _now: self.registry.attach_failures.change(change),
            LOCATIONS: self.reactions.location,
            NAMESPACES: self.reactions.namespace,
            POLICIES: self._policy,
            PIPELINE_HISTORIES: self._history,
            RUN_QUEUES: self._queue,
            RUN_REQUESTS: lambda change, _now: self.requests.request_changed(change),
            **{source.kind: self._run for source in self.sources},
        }

    # What comes in.

    def handle(self, kind: Kind, change: Change[Any], now: datetime) -> None:
        """An object is new, has changed or is gone."""
        self._handlers[kind](change, now)

    def lead(self, epoch: int, placements: Iterable[PipelinePlacement], now: datetime) -> None:
        """We lead from now on.

        Args:
            epoch: of our Lease.
            placements: all there are, as the API server has them now.
            now: the time.
        """
        self.epoch = epoch
        self.publisher.take_over(placements)
        self.requests.lead()
        # The previous leader may have written since our last look.
        self.histories.pasts.outdated()
        for run in self.registry.runs.values():
            # What has been said of it no longer counts.
            self.registry.open.add(run)
            self._adopt(run, now)
        self.planner.may_gain(now)

    def follow(self) -> None:
        """Another leads from now on."""
        self.epoch = None
        self.planner.rest()
        self.learning.follow()
        self._gone.clear()

    def scheduler_lease(self, lease: HeldLease | None, now: datetime) -> None:
        """Our scheduler's Lease has changed."""
        self.guard.lease.observe(lease, now)

    def queue_lease(self, lease: HeldLease | None, now: datetime) -> None:
        """The Lease of the queue has changed."""
        self.queue_guard.lease.observe(lease, now)

    def clock_set(self, step: timedelta) -> None:
        """Somebody has set our clock.

        Args:
            step: by how much.
        """
        self.planner.clock_set(step)
        self.guard.lease.clock_set(step)
        self.queue_guard.lease.clock_set(step)

    def history_answered(self, answer: HistoryAnswer, now: datetime) -> None:
        """A history has been written, or could not be."""
        self._aside(partial(self.histories.answered, answer, now))

    # What follows.

    def tick(self, now: datetime) -> list[Action]:
        """What must be done now; call it after changes, and when `next_at` says so."""
        policy = self.policy.spec
        self.learning.learn_unplanned(now)
        if self.epoch is None:
            return [*self.gates.overdue(policy, now)]
        actions: list[Action] = [ForgetRun(key) for key in self._gone]
        self._gone.clear()
        self.registry.leave_alone()
        changed = self.evaluations.due(now)
        for run in changed:
            self._plan(run, partial(self.evaluations.evaluate, run, policy, now))
            self.learning.run_evaluated(run, now)
        new = self.first_plans.due(now)
        for each in new:
            self._plan(each.run, partial(self.planner.plan_at_once, each, policy, now))
        asked = self.planner.next_round(policy, now)
        if asked is not None:
            actions.append(asked)
        self._aside(partial(self.promising.promise, policy, now))
        # An object without a plan would tell nobody anything, and be written again at once.
        awaited = self.first_plans.awaited()
        for run in [run for run in self.registry.open.ordered() if run.key not in awaited]:
            actions += self._to_publish(run, self.epoch, now)
            if self.publisher.is_done(run):
                self.registry.open.discard(run.key)
        actions += self._others_due(policy, now)
        if self.history:
            self._aside(
                partial(
                    self.histories.pasts.build, 1 if changed or new or actions else STEPS_AT_ONCE
                )
            )
        actions += self._aside(partial(self.learning.due, now)) or ()
        return actions

    def next_at(self, now: datetime) -> datetime:
        """When to tick again if nothing changes before."""
        has_backlog = self.requests.has_backlog or self.histories.pasts.is_building
        if self.epoch is not None and (has_backlog or self.first_plans.awaited()):
            return now
        moments = [now + timedelta(seconds=self.params.evaluation_seconds)]
        others = (self.planner.due_at(), self.learning.unplanned.next_at(now))
        moments += [moment for moment in others if moment is not None]
        deadline = self.gates.next_deadline(self.policy.spec)
        if deadline is not None:
            moments.append(max(deadline, now + timedelta(milliseconds=100)))
        return min(moments)

    def _adopt(self, run: TrackedRun, now: datetime) -> None:
        """Go on with what another planner has written of a run, if anything."""
        placement = self.publisher.taken_over(run)
        if placement is None:
            return
        self._plan(run, partial(run.evaluate, self.policy.spec, now, self.params))
        self.publisher.adopt(run, placement)
        self.deviations.evaluate_bound(run)
        # What ended while no planner led is not evaluated again.
        self.learning.run_evaluated(run, now)

    def _plan(self, run: TrackedRun, turn: Callable[[], object]) -> None:
        """Do something about the plan of a run, which anybody may have written."""
        consequence = f"run {run.key.namespace}/{run.key.name} is not planned"
        self._warnings.take_turn(consequence, turn, run.refuse)

    def _to_publish(
        self, run: TrackedRun, epoch: int, now: datetime
    ) -> Sequence[WritePlacement | Announce]:
        """What must be written of a run; a defect in that must not hide the others."""
        problem = self.planner.problems.get(run.key, "")
        consequence = f"run {run.key.namespace}/{run.key.name} is not written"
        turn = partial(self.publisher.due, run, epoch, problem, now)
        return self._warnings.take_turn(consequence, turn) or ()

    def _aside(self, do: Callable[[], T]) -> T | None:
        """Do what plans can do without; a defect in that must hold up none of them."""
        return self._warnings.take_turn("past runs do not count for some plans", do)

    def _others_due(self, policy: PlacementPolicySpec, now: datetime) -> Iterator[Action]:
        """What must be done beside plans; a defect in one part keeps back no other."""
        opening = self._warnings.take_turn(
            "gates come off at their deadline only", partial(self.gates.due, policy, now)
        )
        yield from self.gates.overdue(policy, now) if opening is None else opening
        yield from self.deviations.noticed()
        # None of these iterators has begun to work: each does in its own turn.
        marked = self.registry.marked_pods()
        parts: Mapping[str, Iterator[Action]] = {
            "nobody sees whether our scheduler works": self.guard.due(
                policy, self.policy.status, marked, now
            ),
            "nobody sees whether the queue works": self.queue_guard.due(policy, now),
            "RunRequests get no answer": self.requests.due(policy, now),
        }
        for consequence, due in parts.items():
            yield from self._warnings.take_turn(consequence, partial(tuple, due)) or ()

    def _past(self, namespace: str, pipeline: str) -> KnownPast | None:
        """What is known of a pipeline: only who leads has seen all there is at the start."""
        return None if self.epoch is None else self.histories.past(namespace, pipeline)

    # What comes in, by kind.

    def _run(self, change: Change[ObservedRun], now: datetime) -> None:
        if self.queues:
            self.requests.run_changed(change)
        key, observed = RunKey(*change.key), change.new
        if observed is not None and not observed.is_planned:
            if key not in self.registry.runs:
                return
            # Its namespace has changed its mind before there was a plan.
            observed = None
        if observed is None:
            self._forget(key, now)
        new = self.registry.run_changed(Change(change.key, change.old, observed), now)
        if new is not None and self.epoch is not None:
            self._adopt(new, now)

    def _forget(self, key: RunKey, now: datetime) -> None:
        """A run is gone."""
        gone = self.registry.runs.get(key)
        if gone is not None:
            self.learned.forget(gone.pods)
        self.publisher.forget(key)
        self.planner.problems.pop(key, None)
        self.learning.run_gone(key, now)
        if self.epoch is not None:
            self._gone.append(key)

    def _pod(self, change: Change[ObservedPod], now: datetime) -> None:
        self.cluster.load.change(change.old, change.new)
        self.registry.pod_changed(change, now)
        self.gates.pod_changed(change)
        leads = self.epoch is not None
        self.deviations.pod_changed(change, self.policy.spec, now, leads=leads)

    def _policy(self, change: Change[PlacementPolicy], now: datetime) -> None:
        """A PlacementPolicy is new, has changed or is gone; only one counts."""
        if change.key[1] != POLICY_NAME:
            return
        before, self.policy = self.policy.spec, change.new or PlacementPolicy()
        after = self.policy.spec
        self.reactions.policy(before, after, now)
        if before.history != after.history:
            self.learning.memory.use(after.history)
            self._aside(partial(self.histories.use, after.history))

    def _history(self, change: Change[ObservedHistory], _now: datetime) -> None:
        self._aside(partial(self.histories.changed, change))
        self.requests.history_changed(change)

    def _queue(self, change: Change[ObservedQueue], _now: datetime) -> None:
        self.queue_guard.queue_changed(change)
        self.requests.queue_changed(change)

    def _placement(self, change: Change[PlacedRun], now: datetime) -> None:
        """Somebody may have deleted the object of a run."""
        run = self.registry.runs.get(RunKey(*change.key))
        if change.new is None and run is not None:
            self.publisher.lost(run, now)
