"""Rules of `check` about a run on a given cluster, which is planned for them.

A module of its own because each subject of rules has one; a further rule about the plan goes here.
"""

from collections.abc import Iterator
from dataclasses import replace

from kfp_placement.check.findings import Finding, Rule, Severity
from kfp_placement.check.run_rules import of_notices
from kfp_placement.prepared_run import PreparedRun

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


CLUSTER_RULES: tuple[Rule, ...] = (planner_notices,)
