"""RunRequests: each says what one run needs, in the namespaces that have queues.

They are written for runs with and without our mark. The stored one is compared with what it should
say, so that a new planner continues from any state, and puts right what others have changed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

from kfp_placement_controller.observed.histories import HistoryKey, ObservedHistory
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.actions import DeleteRequest, WriteRequest
from kfp_placement_controller.planning.needs.corrections import (
    RunsInLine,
    correction,
    spec_in_line,
    wanted_spec,
)
from kfp_placement_controller.planning.needs.kept_graphs import KeptGraphs
from kfp_placement_controller.planning.needs.past_news import PastNews
from kfp_placement_controller.planning.needs.run_needs import RunNeed
from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_controller.runs.planner_parameters import PLANS_PER_EVALUATION
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.turns import Slice, Turns, Work, steps_to_read
from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.contract.run_request import RunRequestSpec
from kfp_placement_engine.exceptions import InputError, PlanningError
from kfp_placement_engine.model.keys import ClaimKey, QueueKey, RunKey
from kfp_placement_kube.change import Change


@dataclass
class RunRequests:
    """Needs of all runs, compared with their RunRequests as stored.

    Attributes:
        registry: runs that are planned, all RunRequests, and past runs.
        builder: builder that plans a run as if it were alone.
        retry_seconds: pause between two tries of the same write.
        awaits_package: function that returns whether a run waits for its package at a moment.
        turns: turns of the namespaces.
        has_backlog: whether runs are left that one tick had no time to plan.
    """

    registry: RunRegistry
    builder: RoundBuilder
    retry_seconds: float
    awaits_package: Callable[[RunKey, float], bool]
    turns: Turns = field(default_factory=Turns)
    has_backlog: bool = False
    _needs: dict[RunKey, RunNeed] = field(default_factory=dict)
    _deadlines: dict[str, float] = field(default_factory=dict)
    """Values of `holdDeadline` of the namespaces that have queues."""
    _changed: dict[RunKey, None] = field(default_factory=dict)
    _tried_at: dict[RunKey, float] = field(default_factory=dict)
    _revisions: dict[RunKey, int] = field(default_factory=dict)
    _all_changed: bool = False
    _version: int = 0

    def __post_init__(self) -> None:
        """Start without news of past runs."""
        self._warnings = WarningLog(__name__)
        self._news = PastNews(self._needs, self.registry.histories)
        self._line = RunsInLine()
        self.graphs = KeptGraphs(lambda: self.registry.policy().namespace_limits.planned_steps)

    # What comes in.

    def run_changed(self, change: Change[ObservedRun]) -> None:
        """Take in that a run is new, has changed or is gone."""
        key, observed = RunKey(*change.key), change.new
        need = self._needs.get(key)
        if observed is None or observed.ended or (need and need.observed.uid != observed.uid):
            self.graphs.forget(key)
        if observed is None:
            self._needs.pop(key, None)
            self._revisions.pop(key, None)
        elif need is not None and need.observed.uid == observed.uid:
            need.observe(observed)
        else:
            nodes = self.registry.nodes_of(observed)
            self._needs[key] = RunNeed(observed, nodes=nodes)
        self._changed[key] = None

    def package_changed(self, run: ObservedRun) -> None:
        """Take in that the package of a run has come, or is not kept any more."""
        need = self._needs.get(run.key)
        if need is not None and need.observed.uid == run.uid:
            need.observed, need.planned_for = run, None
            self._changed[run.key] = None

    def queue_changed(self, change: Change[ObservedQueue]) -> None:
        """Take in that a RunQueue is new, has changed or is gone."""
        key = QueueKey(*change.key)
        if key.name != DEFAULT_QUEUE:
            return
        if change.new is None:
            self._deadlines.pop(key.namespace, None)
            return
        self._all_changed |= key.namespace not in self._deadlines
        self._deadlines[key.namespace] = change.new.spec.hold_deadline_seconds

    def request_changed(self, change: Change[ObservedRequest]) -> None:
        """Take in that a RunRequest is new, has changed or is gone."""
        key = RunKey(*change.key)
        self.registry.request_changed(change)
        need = self._needs.get(key)
        if need is not None:
            need.nodes = self.registry.nodes_of(need.observed)
        self._tried_at.pop(key, None)
        self._changed[key] = None

    def history_changed(self, change: Change[ObservedHistory]) -> None:
        """Take in that runs of a pipeline have ended, or that some of them no longer count."""
        key = HistoryKey(*change.key)
        if key.namespace in self._deadlines:
            self._news.history_changed(key)

    def claim_changed(self, claim: ClaimKey) -> None:
        """Plan the runs again that mount a volume claim, as it is new, has changed or is gone."""
        for key, need in self._needs.items():
            if key.namespace == claim.namespace and need.mounts(claim.name):
                need.planned_for, self._changed[key] = None, None

    def conditions_changed(self) -> None:
        """Plan all runs again, in turn, as the cluster, the policy or a namespace has changed."""
        self._version += 1
        self._all_changed = True

    def lead(self) -> None:
        """Compare all RunRequests again, as this planner leads from now on."""
        self._tried_at.clear()
        self._all_changed = True

    # What follows.

    def due(self, monotonic_seconds: float) -> Iterator[WriteRequest | DeleteRequest]:
        """Yield the RunRequests to write or delete now."""
        self.has_backlog = False
        if self._all_changed:
            self._all_changed = False
            self._changed |= dict.fromkeys(self._needs)
        tried = self._tried_at.items()
        to_retry = (
            key for key, at in tried if not lasts(self.retry_seconds, at, monotonic_seconds)
        )
        news = self._news.due(monotonic_seconds)
        self._changed |= dict.fromkeys(chain(to_retry, self._with_new_plans(), news))
        keys = sorted(self._without_awaited(monotonic_seconds), key=self._place)
        plans, now = 0, Slice(self.turns)
        for work in self.turns.order(map(self._work_on, keys)):
            key = work.on
            # Deleted first, so that a defect in one run does not hide the next ones forever.
            del self._changed[key]
            need = self._needs.get(key)
            must_plan = need is not None and self._must_plan(need)
            if must_plan and (plans >= PLANS_PER_EVALUATION or not now.has_room_for(work)):
                self._changed[key], self.has_backlog = None, True
                break
            self._tried_at.pop(key, None)
            if need is None:
                continue
            if must_plan:
                with now.spent_on(work):
                    self._plan(need)
                plans += 1
            if self._awaits_past(need, monotonic_seconds):
                # The stored one was written with the past, which this planner will know soon.
                self._changed[key] = None
                continue
            action = self._action(need)
            if action is not None:
                self._tried_at[key] = monotonic_seconds
                yield action
        if self.has_backlog:
            yield from islice(self._in_line(monotonic_seconds), PLANS_PER_EVALUATION)

    def _in_line(self, monotonic_seconds: float) -> Iterator[WriteRequest | DeleteRequest]:
        """Yield RunRequests without a demand, of runs whose turn has not come for long.

        By them the queue sees that the planner knows these runs, and lets them wait.
        """
        unplanned = [
            key
            for key in self._changed
            if (each := self._needs.get(key)) and each.planned_for is None and self._must_plan(each)
        ]
        for key in self._line.late(unplanned, self._deadlines, monotonic_seconds):
            need, stored = self._needs[key], self.registry.requests.get(key)
            is_tried = lasts(self.retry_seconds, self._tried_at.get(key), monotonic_seconds)
            if is_tried or self._own_request(need):
                continue
            action = correction(need, stored, spec_in_line(need))
            if action is not None:
                self._tried_at[key] = monotonic_seconds
                yield action

    def _work_on(self, key: RunKey) -> Work[RunKey]:
        """Return the work of planning a run alone, by its size before it has been read."""
        need = self._needs.get(key)
        steps = 0 if need is None else steps_to_read(need.steps, need.observed)
        return Work(key.namespace, steps, key)

    def _without_awaited(self, monotonic_seconds: float) -> Iterator[RunKey]:
        """Yield the changed runs but those that wait for their package to be planned first."""
        for key in self._changed:
            if self._was_planned(key) or not self.awaits_package(key, monotonic_seconds):
                yield key

    def takes_part(self, namespace: str) -> bool:
        """Return whether the runs of a namespace wait in a queue."""
        return namespace in self._deadlines and self.registry.namespaces.takes_part(namespace)

    def needs_content(self, run: ObservedRun) -> bool:
        """Return whether a run must be planned alone, or gives back what its object says."""
        need = self._needs.get(run.key)
        if need is None or run.ended or not self.takes_part(run.key.namespace):
            return False
        return need.planned_for is None or need.is_unfolded

    def _place(self, key: RunKey) -> tuple[bool, float]:
        """Return the place of a run in its namespace.

        Runs without a plan come first, as they cannot be admitted until their need is known; then
        the oldest, so that newer ones keep no run waiting.
        """
        need = self._needs.get(key)
        submitted = 0.0 if need is None else need.observed.submitted_at.timestamp()
        return self._was_planned(key), submitted

    def _was_planned(self, key: RunKey) -> bool:
        need = self._needs.get(key)
        return need is not None and need.planned_for is not None

    def _must_plan(self, need: RunNeed) -> bool:
        """Return whether a run must be planned, or planned again."""
        if need.observed.ended or not self.takes_part(need.key.namespace):
            return False
        if need.observed.content.is_forgotten:
            return False
        is_old = need.planned_for != self._version and need.may_fit_later
        if is_old or (need.is_folded and self.graphs.has_room(need)):
            return True
        return need.must_plan(self.registry.policy())

    def _plan(self, need: RunNeed) -> None:
        if not self.builder.has_nodes:
            need.planned_for = self._version
            return
        key = need.key
        consequence = f"the RunRequest of run {key.namespace}/{key.name} does not say what it needs"
        turn = partial(self._plan_alone, need)
        self._warnings.take_turn(consequence, turn, need.refuse)
        self._news.planned(need)

    def _plan_alone(self, need: RunNeed) -> None:
        """Plan a run as if no other were there."""
        own = need.key
        others = (each for each in self._needs.values() if self.takes_part(each.key.namespace))
        together = [each.observed.as_pods_name_it for each in others]
        try:
            find_past = partial(self.registry.histories.past, own.namespace)
            reading = need.read(self.registry.policy(), self._version, find_past)
            if reading is not None:
                need.take(self.builder.plan_alone(own, together, reading.graph), reading)
                self.graphs.keep(need)
        except (InputError, PlanningError) as error:
            need.refuse(str(error))

    def _action(self, need: RunNeed) -> WriteRequest | DeleteRequest | None:
        """Return the action that corrects the RunRequest of a run; None = it is correct."""
        key = need.key
        run, stored, wanted = self.registry.runs.get(key), self.registry.requests.get(key), None
        plan = None if run is None else run.plan
        if plan is not None:
            self._revisions[key] = plan.revision
        is_known = need.planned_for is not None and self.takes_part(need.key.namespace)
        if is_known or need.observed.ended:
            wanted = wanted_spec(need, stored, None if plan is None else plan.makespan_seconds)
        return correction(need, stored, wanted)

    def _own_request(self, need: RunNeed) -> RunRequestSpec | None:
        """Return what the RunRequest of a run says; None = it has none that can be read."""
        stored = self.registry.requests.get(need.key)
        return stored.spec if stored and need.observed.uid in stored.owner_uids else None

    def _awaits_past(self, need: RunNeed, monotonic_seconds: float) -> bool:
        """Return whether a run that has a RunRequest is about to be planned with its past."""
        if self._own_request(need) is None or not self.takes_part(need.key.namespace):
            return False
        if not need.lacks_past or need.has_begun or need.observed.ended:
            return False
        pasts = self.registry.histories.pasts
        return pasts.awaits(need.key.namespace) and need.awaits_past(monotonic_seconds)

    def _with_new_plans(self) -> Iterator[RunKey]:
        """Yield the runs whose plan has changed since their end was written last."""
        for run in self.registry.planned() if self._deadlines else ():
            if run.key.namespace in self._deadlines:
                revision = run.plan.revision
                if self._revisions.get(run.key, revision) != revision:
                    yield run.key
