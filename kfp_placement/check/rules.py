"""Application of all rules of `check` to a run, and the place to add a rule.

A rule is a function that yields findings about a `PreparedRun`. To add one, write it in the module
of its kind and add it to the tuple of rules at the end of that module:

- `past_run_rules`: rules that compare the run with its past runs, if these are given;
- `mark_rules`: rules about the marks that authors set;
- `run_rules`: rules about the rest of the run;
- `cluster_rules`: rules about the plan of the run on a cluster, if one is given.

Reports list findings by level and, within a level, in the order of the rules.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kfp_placement.check.cluster_rules import CLUSTER_RULES
from kfp_placement.check.findings import CheckReport, Rule, Severity
from kfp_placement.check.mark_rules import MARK_RULES
from kfp_placement.check.run_rules import RUN_RULES
from kfp_placement.planning import PlanRequest, prepare
from kfp_placement.prepared_run import PreparedRun
from kfp_placement_engine.plans.progress import Progress, no_progress

_OPTIONS: dict[str, Any] = {"budget_seconds": 0.05, "compare": ()}
"""Options for the plan that the rules of `cluster_rules` read.

A short search is enough: steps that fit no node are known before it begins.
"""


def checked(request: PlanRequest, progress: Progress = no_progress) -> CheckReport:
    """Read and complete the run of a request, and apply every rule to it.

    Args:
        request: run to check, and perhaps a cluster, whose PlacementPolicy then says which types
            of steps follow a location, and which values are assumed for each type.
        progress: callback for the progress of reading.

    Raises:
        EngineError: `prepare` fails, or no plan can be made on the cluster.
        ClusterError: the live cluster refuses, or gives no answer.
    """
    return check_run(prepare(replace(request, options=_OPTIONS), progress))


def check_run(prepared: PreparedRun) -> CheckReport:
    """Apply every rule to a run; a cluster without nodes means that no cluster is given.

    Raises:
        PlanningError: no plan can be made on the cluster.
    """
    findings = dict.fromkeys(each for rule in _rules(prepared) for each in rule(prepared))
    order = list(Severity)
    by_level = sorted(findings, key=lambda finding: order.index(finding.level))
    return CheckReport(prepared.run.name, tuple(by_level))


def _rules(prepared: PreparedRun) -> Iterator[Rule]:
    """Yield the rules whose input is given."""
    if prepared.known_past.past is not None:
        # Imported here, because the import is slow and most checks have no past runs.
        from kfp_placement.check.past_run_rules import PAST_RUN_RULES

        yield from PAST_RUN_RULES
    yield from MARK_RULES
    yield from RUN_RULES
    if prepared.cluster.nodes:
        yield from CLUSTER_RULES
