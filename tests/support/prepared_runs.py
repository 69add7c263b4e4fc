"""Runs made by hand, prepared to be planned or checked as those of a request are."""

from typing import Any

from kfp_placement._input_file import InputFile
from kfp_placement.check import rules
from kfp_placement.check.findings import CheckReport
from kfp_placement.clusters.reading import KnownCluster
from kfp_placement.histories import LoadedPast
from kfp_placement.planning import PlanRequest, completed
from kfp_placement.prepared_run import PreparedRun
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.run_graph import RunGraph


def prepared(
    run: RunGraph,
    cluster: Cluster | None = None,
    *,
    past: Past | None = None,
    default_namespace: str = "",
    **asked: Any,
) -> PreparedRun:
    """The run on a cluster, with these fields of a request."""
    where = None if cluster is None else KnownCluster(cluster, default_namespace)
    return completed(PlanRequest(InputFile("run", b""), where, **asked), run, LoadedPast(past))


def codes(report: CheckReport) -> list[tuple[str, str, str]]:
    """Level, code and step of each finding."""
    return [(str(finding.level), finding.code, finding.step) for finding in report]


def check_run(run: RunGraph, cluster: Cluster | None = None, **asked: Any) -> CheckReport:
    """Return the report of `check` on a run, with arguments as for `prepared`."""
    quick = {"budget_seconds": 0.05, "compare": ()}
    return rules.check_run(prepared(run, cluster, options=quick, **asked))
