"""Rules of `check` about a run on a given cluster, which is planned for them.

A module of its own because each subject of rules has one; a further rule about the plan goes here.
"""

from collections.abc import Iterator
from dataclasses import replace

from kfp_placement.check.findings import Finding, Rule, Severity
from kfp_placement.check.run_rules import of_notices
from kfp_placement.check.tasks import container_tasks
from kfp_placement.prepared_run import PreparedRun
from kfp_placement_engine.lowering.pods import is_kfp
from kfp_placement_engine.model.node_rules.constraints import objections
from kfp_placement_engine.model.run_graph import Step
from kfp_placement_engine.units.resources import fits, with_pod
from kfp_placement_engine.views.formatting import counted

_GIVEN_BY_OTHER_RULES = frozenset(
    {"location-unused", "near-scheduler", "near-type", "no-location", "unmarked-steps"}
)
"""Codes of notices that rules without a cluster already report."""


def planner_notices(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield steps that fit no node, then the planner's notices.

    A location that the cluster does not know is an error if a step has a hard limit to it.
    """
    plan, run = prepared.plan(limits=False), prepared.run
    tasks = {step.name: step.task for step in run.steps}
    for name, reason in plan.unschedulable:
        yield Finding(Severity.ERROR, "unschedulable", reason, tasks.get(name, name))
    limited = {step.task for step in run.steps if step.max_latency_ms is not None}
    for finding in of_notices(plan.notices):
        is_lost = finding.code == "unknown-location" and finding.step in limited
        if finding.code not in _GIVEN_BY_OTHER_RULES:
            yield replace(finding, level=Severity.ERROR) if is_lost else finding


def retries_without_nodes(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield steps of which each attempt wants a node of its own, with more attempts than nodes."""
    for step in container_tasks(prepared.run):
        if step.retry.on_other_nodes and step.attempt_limit > 1:
            nodes = _fitting_nodes(step, prepared)
            if 0 < nodes < step.attempt_limit:
                yield Finding(
                    Severity.WARNING,
                    "retry-nodes",
                    f"may be tried {step.attempt_limit:,} times, each time on another node"
                    f" (nodeAntiAffinity), but {counted(nodes, 'node')} can take it: after"
                    f" {counted(nodes, 'failure')} its pod waits forever; set limit:"
                    f' "{nodes - 1}", or leave nodeAntiAffinity out',
                    step.task,
                )


def _fitting_nodes(step: Step, prepared: PreparedRun) -> int:
    """Return the number of nodes that can take a step when nothing else runs there."""
    nodes, needs = prepared.cluster.nodes, with_pod(step.requests)
    filtered = objections(
        step.node_selector,
        step.affinity,
        step.tolerations,
        nodes,
        linux_only=is_kfp(prepared.run),
    )
    pairs = zip(nodes, filtered, strict=True)
    return sum(each is None and fits(needs, node.allocatable) for node, each in pairs)


CLUSTER_RULES: tuple[Rule, ...] = (planner_notices, retries_without_nodes)
