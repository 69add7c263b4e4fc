"""Plans without a search that say what limits them."""

from dataclasses import replace
from typing import Any

from kfp_placement_engine import Cluster, Plan, PlanOptions, RunGraph, plan_run
from tests.support.builders import ONE_NODE, ROUND_NUMBERS

WITH_LIMITS = PlanOptions(quick=True, limits=True, compare=(), assumptions=ROUND_NUMBERS)


def limited_plan(run: RunGraph, cluster: Cluster = ONE_NODE, **options: Any) -> Plan:
    """A plan of a run; options are those of `WITH_LIMITS` unless others are given."""
    return plan_run(run, cluster, replace(WITH_LIMITS, **options))
