"""Registry of the runs that get a plan, and of the pods of all runs, whichever is seen first."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from kfp_placement_controller.histories.histories import Histories
from kfp_placement_controller.observed.namespaces import Namespaces
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.runs.attach_failures import AttachFailures
from kfp_placement_controller.runs.open_runs import OpenRun, PlannedRun
from kfp_placement_controller.runs.run_reading import no_past
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources.source import ObservedRun, PodRun, RunSources
from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change


@dataclass
class UnsettledRuns:
    """Runs of which something may be left to plan or to write, oldest first.

    Runs stay for days after their end: only these are looked at in each tick.
    """

    _runs: dict[RunKey, TrackedRun] = field(default_factory=dict)
    _ordered: tuple[TrackedRun, ...] | None = ()

    def add(self, run: TrackedRun) -> None:
        """Add a run that is new or has changed."""
        if self._runs.get(run.key) is not run:
            self._runs[run.key] = run
            self._ordered = None

    def discard(self, key: RunKey) -> None:
        """Remove a run that is gone, or of which nothing is left to do."""
        if self._runs.pop(key, None) is not None:
            self._ordered = None

    def __contains__(self, key: RunKey) -> bool:
        return key in self._runs

    def ordered(self) -> Sequence[TrackedRun]:
        """Return these runs, the oldest first."""
        if self._ordered is None:
            self._ordered = tuple(
                sorted(self._runs.values(), key=lambda run: (run.observed.submitted_at, run.key))
            )
        return self._ordered


@dataclass
class RunRegistry:
    """Registry of runs and their pods.

    Attributes:
        policy: function that returns the policy in force, which says what is assumed of loops.
        sources: kinds of runs, which say which run a pod belongs to.
        namespaces: the namespaces, some of which take no part.
        runs: runs that get a plan, by namespace and name.
        unsettled: runs that are not over and done with.
        attach_failures: volumes that could not be attached.
        requests: RunRequests, with the nodes that queues have assigned to runs.
        histories: past runs of all namespaces.
    """

    policy: Callable[[], PlacementPolicySpec]
    sources: RunSources
    namespaces: Namespaces = field(default_factory=Namespaces)
    runs: dict[RunKey, TrackedRun] = field(default_factory=dict)
    unsettled: UnsettledRuns = field(default_factory=UnsettledRuns)
    attach_failures: AttachFailures = field(default_factory=AttachFailures)
    requests: dict[RunKey, ObservedRequest] = field(default_factory=dict)
    histories: Histories = field(default_factory=Histories)
    _pods: dict[PodRun, dict[str, ObservedPod]] = field(default_factory=dict)
    _planned: dict[TrackedRun, PlannedRun] = field(default_factory=dict)

    def run_changed(self, change: Change[ObservedRun], now: datetime) -> None:
        """Take in a change of a run that gets a plan; one that is new is read in its turn."""
        observed, key = change.new, RunKey(*change.key)
        if observed is None:
            self._drop(key)
            return
        run = self.runs.get(key)
        if run is not None and run.observed.uid == observed.uid:
            run.observe(observed)
            self.unsettled.add(run)
            return
        # Where the namespace is seen late, `drop_excluded` follows.
        if not self.namespaces.takes_part(key.namespace):
            return
        self._track(observed, now)

    def read(self, run: TrackedRun) -> None:
        """Read the graph of a run, or why it cannot be read; drop the run if no step is marked."""
        namespace, is_new = run.key.namespace, run.reading is None
        find_past = no_past if run.observed.ended else partial(self.histories.past, namespace)
        run.read(self.policy(), find_past)
        if is_new and run.reading is not None and not run.reading.is_marked:
            self._drop(run.key)

    def reads(self, observed: ObservedRun) -> bool:
        """Return whether the content of a run is read, now or in its turn."""
        run = self.runs.get(observed.key)
        if run is None or run.left_out or run.observed.uid != observed.uid:
            return False
        return run.reading is not None or not observed.ended

    def leave_out(self, run: TrackedRun, why: str) -> TrackedRun:
        """Forget all of a run but that it is there; `take_in` begins with it again."""
        return self._put(
            TrackedRun(
                run.observed,
                None,
                run.nodes,
                self.attach_failures,
                steps=run.steps,
                left_out=why,
                announced=run.announced,
            )
        )

    def take_in(self, run: TrackedRun, now: datetime) -> None:
        """Read a run that was left out when its turn comes."""
        announced, steps = run.announced, run.steps
        new = self._track(run.observed, now)
        new.announced, new.steps = announced, steps

    def pod_changed(self, change: Change[ObservedPod], now: datetime) -> None:
        """Take in that a pod is new, has changed or is gone."""
        versions = [pod for pod in (change.old, change.new) if pod is not None]
        for pod in versions:
            self._keep(pod, change.new)
        run = self.run_of(versions[-1])
        if run is not None:
            run.observe_pod(change.old, change.new, now)
            self.unsettled.add(run)

    def request_changed(self, change: Change[ObservedRequest]) -> None:
        """Take in that a RunRequest is new, has changed or is gone."""
        key = RunKey(*change.key)
        change.apply_to(self.requests, key)
        run = self.runs.get(key)
        if run is not None:
            run.assign(self.nodes_of(run.observed))
            self.unsettled.add(run)

    def nodes_of(self, run: ObservedRun) -> NodeGroups:
        """Return the groups of nodes that its queue has assigned to a run; () = any."""
        request = self.requests.get(run.key)
        if request is None or run.uid not in request.owner_uids:
            return ()
        return request.status.assigned_nodes

    def run_of(self, pod: ObservedPod) -> TrackedRun | None:
        """Return the run that a pod belongs to; None = to none that gets a plan."""
        named = self.sources.run_of(pod)
        run = None if named is None else self.runs.get(named.key)
        return run if run is not None and run.observed.as_pods_name_it == named else None

    def pods_of(self, run: ObservedRun) -> list[ObservedPod]:
        """Return the pods of a run, whether it is planned or not."""
        return list(self._pods.get(run.as_pods_name_it, {}).values())

    def drop_excluded(self) -> None:
        """Drop runs whose namespace takes no part by now, unless they have a plan."""
        for run in self.unsettled.ordered():
            if run.plan is None and not self.namespaces.takes_part(run.key.namespace):
                self._drop(run.key)

    def active(self) -> Iterator[OpenRun]:
        """Return the runs in which something is left to plan, oldest first."""
        open_runs = (self._opened(run) for run in self.unsettled.ordered())
        return (run for run in open_runs if run is not None)

    def planned(self) -> Iterator[PlannedRun]:
        """Return the runs with a plan in which something is left to plan, oldest first."""
        return (run for run in self.active() if isinstance(run, PlannedRun))

    def open_run(self, key: RunKey) -> OpenRun | None:
        """Return a run in which something is left to plan; None = there is none of that key."""
        run = self.runs.get(key)
        return None if run is None else self._opened(run)

    def marked_pods(self) -> Iterator[ObservedPod]:
        """Yield the pods of all runs that ask for our scheduler."""
        for pods in self._pods.values():
            yield from (pod for pod in pods.values() if self.mark_of(pod))

    def mark_of(self, pod: ObservedPod) -> str:
        """Return the scheduler that a pod of a run asks for; "" = none. Admission does the same."""
        if not pod.unmarked_step:
            return pod.scheduler_mark
        namespace, run = self.namespaces.seen.get(pod.namespace), self.run_of(pod)
        # A run that was planned so goes on, whatever its namespace says by now.
        all_marked = run is not None and run.observed.all_marked
        counts = all_marked or (namespace is not None and namespace.all_pipelines)
        return DEFAULT_SCHEDULER if counts else ""

    def _opened(self, run: TrackedRun) -> OpenRun | None:
        """Return a run as it can be planned; None = nothing of it is left to plan, or can be.

        It is the same object until the graph or the plan changes.
        """
        planned = self._planned.get(run)
        if planned is not None and planned.is_current:
            return planned
        self._planned.pop(run, None)
        if run.reading is None or not run.is_open:
            return None
        if run.plan is None:
            return OpenRun(run, run.reading)
        planned = self._planned[run] = PlannedRun(run, run.reading, run.plan)
        return planned

    def _track(self, observed: ObservedRun, now: datetime) -> TrackedRun:
        nodes = self.nodes_of(observed)
        run = TrackedRun(observed, None, nodes, self.attach_failures, stale=True)
        for pod in self.pods_of(observed):
            run.observe_pod(None, pod, now)
        return self._put(run)

    def _put(self, run: TrackedRun) -> TrackedRun:
        """Replace what is known of a run."""
        self._drop(run.key)
        self.runs[run.key] = run
        self.unsettled.add(run)
        return run

    def _drop(self, key: RunKey) -> None:
        run = self.runs.pop(key, None)
        if run is not None:
            self._planned.pop(run, None)
        self.unsettled.discard(key)

    def _keep(self, pod: ObservedPod, newest: ObservedPod | None) -> None:
        run = self.sources.run_of(pod)
        if run is None:
            return
        pods = self._pods.setdefault(run, {})
        if newest is not None and newest.uid == pod.uid:
            pods[pod.uid] = newest
        else:
            pods.pop(pod.uid, None)
        if not pods:
            del self._pods[run]
