"""A run that is ready to be planned on a cluster, once as it is and again after changes."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kfp_placement.histories import LoadedPast
from kfp_placement.remedies import with_remedies
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_run
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.progress import Progress, no_progress

# What plans again after changes is imported when somebody asks for it: most plans are made once.
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kfp_placement_engine.planning.past_runs.learned_times import RunForecast
    from kfp_placement_engine.plans.what_if import ChangedPlan, Suggestions
    from kfp_placement_engine.plans.what_if_changes import Change


@dataclass(frozen=True)
class PreparedRun:
    """A run, ready to be planned on a cluster.

    Attributes:
        as_read: the run before past runs and the policy change its run times.
        run: the run as it is planned.
        cluster: the cluster.
        options: options of the planner: as asked for, else by the cluster's policy, else as usual.
        policy: settings taken from the policy: `objective: packing`.
        known_past: knowledge of past runs.
        forecast: forecast of this run by its past runs; None = no past runs are known.
    """

    as_read: RunGraph
    run: RunGraph
    cluster: Cluster
    options: PlanOptions
    policy: tuple[str, ...]
    known_past: LoadedPast
    forecast: "RunForecast | None"

    def plan(self, progress: Progress = no_progress, *, limits: bool = True) -> Plan:
        """Make the plan; it says what it took from the policy, and what lets steps onto a node.

        Args:
            progress: callback for the progress of planning.
            limits: whether the plan says what limits the run.

        Raises:
            PlanningError: a run without steps, or a cluster without nodes.
        """
        options = replace(self.options, limits=limits)
        return _completed(plan_run(self.run, self.cluster, options, progress), self)

    def after(self, changes: "Iterable[Change]") -> "PreparedRun":
        """Return the run as it is after changes.

        Raises:
            ChangeError: a node, image or claim that is not there; or no node is left.
            UnknownLoopError: a loop that the run does not have.
            UnknownStepError: a step that the run does not have.
        """
        from kfp_placement_engine.planning.what_if.applied_changes import with_changes

        run, cluster = with_changes(self.run, self.cluster, changes)
        return replace(self, run=run, cluster=cluster)

    def what_if(
        self, present: Plan, changes: "Sequence[Change]", progress: Progress = no_progress
    ) -> "ChangedPlan":
        """Plan the run as it is after changes, all of them together.

        Args:
            present: the plan that `plan` has made.
            changes: changes, all of them together.
            progress: callback for the progress of planning.

        Raises:
            EngineError: as for `after`.
        """
        from kfp_placement_engine.planning.what_if.changed_plan import plan_with_changes

        options = replace(self.options, limits=True)
        answer = plan_with_changes(self.run, self.cluster, present, changes, options, progress)
        if answer.plan is present:
            return answer
        return replace(answer, plan=_completed(answer.plan, self.after(changes)))

    def best_changes(self, present: Plan, progress: Progress = no_progress) -> "Suggestions":
        """Return the single changes that make the run shorter.

        Args:
            present: the plan that `plan` has made.
            progress: callback for the progress of planning.
        """
        from kfp_placement_engine.planning.what_if.best_changes import best_changes

        return best_changes(self.run, self.cluster, present, self.options, progress)


def _completed(plan: Plan, prepared: PreparedRun) -> Plan:
    """Return the plan with its promise, the policy's part, and what lets steps onto a node."""
    if prepared.forecast is not None:
        from kfp_placement_engine.planning.past_runs.outlook import outlook_of, promise_of

        promise = promise_of(outlook_of(plan), prepared.run, prepared.forecast)
        plan = replace(plan, promise=promise)
    plan = replace(plan, grounds=replace(plan.grounds, policy=prepared.policy))
    return with_remedies(plan, prepared.run, prepared.cluster)
