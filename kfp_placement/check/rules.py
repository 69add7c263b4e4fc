"""Application of all rules of `check` to a run, and the place to add a rule.

A rule is a function that yields findings about a `PreparedRun`. To add one, write it in the module
of what it reads and add it to the tuple of rules at the end of that module:

- `mark_rules`: what authors say with our marks;
- `run_rules`: everything else that the run says;
- `past_run_rules`: the run beside its past runs, where these are given;
- `cluster_rules`: the run planned on a cluster, where one is given.

Reports list findings by level and, within a level, in the order of the rules.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kfp_placement.check.cluster_rules import CLUSTER_RULES
from kfp_placement.check.findings import CheckReport, Level, Rule
from kfp_placement.check.mark_rules import MARK_RULES
from kfp_placement.check.run_rules import RUN_RULES
from kfp_placement.planning import PlanRequest, PreparedRun, prepare
from kfp_placement_engine.plans.progress import Progress, no_progress

# What fits nowhere is known before the search begins.
_OPTIONS: dict[str, Any] = {"budget_seconds": 0.05, "compare": ()}
"""Options of the plan that `cluster_rules` read."""


def checked(request: PlanRequest, progress: Progress = no_progress) -> CheckReport:
    """Read and complete the run of a request, and apply every rule to it.

    Args:
        request: run to check; where it names a cluster, the cluster's PlacementPolicy says which
            types follow a location and what is assumed of steps by their type.
        progress: receiver of reports on how far reading is.

    Raises:
        EngineError: `prepare` fails, or the cluster cannot be planned with.
        ClusterError: the live cluster refuses, or gives no answer.
    """
    return check_run(prepare(replace(request, options=_OPTIONS), progress))


def check_run(prepared: PreparedRun) -> CheckReport:
    """Apply every rule to a run; a cluster without nodes stands for no cluster.

    Raises:
        PlanningError: the cluster cannot be planned with.
    """
    findings = dict.fromkeys(each for rule in _rules(prepared) for each in rule(prepared))
    order = list(Level)
    by_level = sorted(findings, key=lambda finding: order.index(finding.level))
    return CheckReport(prepared.run.name, tuple(by_level))


def _rules(prepared: PreparedRun) -> Iterator[Rule]:
    """Yield the rules that have something to read."""
    if prepared.known.past is not None:
        # Here and not above: most checks are made without, and it takes long to import.
        from kfp_placement.check.past_run_rules import PAST_RUN_RULES

        yield from PAST_RUN_RULES
    yield from MARK_RULES
    yield from RUN_RULES
    if prepared.cluster.nodes:
        yield from CLUSTER_RULES
