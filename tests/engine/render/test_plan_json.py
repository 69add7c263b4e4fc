import json
import math
from dataclasses import replace

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement.schemas import schema
from kfp_placement_engine.model.node_rules.latency import LatencyTolerance
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.plans.comparison import Bound, Figures, ScheduledStep
from kfp_placement_engine.plans.limits import CriticalPiece, PieceKind, ResourceUse
from kfp_placement_engine.render.plan_json import plan_document, plan_json, plan_yaml
from tests.support.json_schemas import assert_described
from tests.support.plans import (
    a_plan,
    a_step,
    ends_after,
    random_plan,
    renamed,
    stuck_plan,
    taxi_plan,
    unplaced_step,
)

LIMITED = a_plan(
    critical_path=tuple(
        CriticalPiece("train", kind, start, start + 1, None if start else "node-0", "")
        for start, kind in enumerate(PieceKind)
    ),
    binding_resources=(ResourceUse(0, 1, "", 0.0), ResourceUse(1, 2, "cpu", 1.0)),
    baselines={"kube-default": ends_after(70.0)},
    default_schedule=(ScheduledStep("train", "node-0", 0.0, 70.0),),
)

OUTLINE = replace(a_plan(), run=replace(a_plan().run, is_outline=True))

PLANS = {
    "one step": a_plan(),
    "outline": OUTLINE,
    "no steps": a_plan(steps=()),
    "taxi": taxi_plan(),
    "many": random_plan(200, 7),
    "what limits it": LIMITED,
    "unplaced": a_plan(a_step(), unplaced_step()),
    "nothing placed": a_plan(
        unplaced_step(),
        figures=Figures(1, math.inf, math.nan, math.inf),
        lower_bound=Bound(math.inf, "critical-path"),
        baselines={"heft": Figures(1, math.inf, math.nan, math.inf)},
    ),
}
each_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


def test_a_plan_of_an_outline_says_so():
    assert plan_document(OUTLINE)["basis"] == "outline"
    assert "basis" not in plan_document(a_plan())


def test_the_schema_is_one():
    plan_schema = schema("plan")
    jsonschema.Draft202012Validator.check_schema(plan_schema)
    assert plan_schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@each_plan
def test_documents_fit_the_schema_and_hold_nothing_it_does_not_describe(plan):
    assert_described(json.loads(plan_json(plan)), "plan")


@each_plan
def test_json_and_yaml_say_the_same_without_numbers_that_json_lacks(plan):
    assert yaml.safe_load(plan_yaml(plan)) == json.loads(plan_json(plan)) == plan_document(plan)
    assert not {".inf", ".nan"} & set(plan_yaml(plan).split())


def test_the_whole_document(golden):
    step = a_step(
        "train",
        display_name="xgboost",
        iteration=(0, 2),
        requests={"cpu": 1500, "memory": 2 * 2**30, "nvidia.com/gpu": 1},
        duration_source=DurationSource.ASSUMED,
        latency_ms=9.8,
        labels={"typeOfComponent": "Training"},
        depends_on=("fetch",),
        start_seconds=1 / 3,
        type_guessed=True,
    )
    plan = a_plan(
        step,
        unplaced_step(),
        figures=ends_after(60.0, use={"cpu": 0.75, "memory": 0.25, "pods": 0.01}),
        baselines={
            "heft": Figures(0, 1.5, 2.5, 70.0, use={"cpu": 0.25}),
            "kube-default": ends_after(70.0),
        },
        default_schedule=(ScheduledStep("train", "node-0", 0.0, 70.0),),
        weights=ResourceWeights(cpu=3.0),
        critical_path=(CriticalPiece("train", PieceKind.IMAGE, 0, 1 / 3, "node-0", "tool:1"),),
        binding_resources=(ResourceUse(0, 60, "cpu", 2 / 3),),
        ordered_makespan_seconds=49.0,
        notices=(Notice("unmarked", "no mark", "train"),),
        assumptions=("run time 1m for 1 of 1 steps",),
        policy=("objective: packing",),
        latency_tolerance=LatencyTolerance(2.0, 0.07),
    )
    golden(plan_json(plan))


def test_a_run_that_does_not_end_has_no_makespan():
    document = plan_document(stuck_plan())
    assert document["makespanSeconds"] is None
    assert document["baselines"]["kube-default"]["makespanSeconds"] is None
    jsonschema.validate(document, schema("plan"))


@given(name=st.text(min_size=1, max_size=40))
@settings(max_examples=60)
def test_documents_are_plain_ascii_whatever_the_names(name):
    plan = renamed(taxi_plan(), name)
    for text in (plan_json(plan), plan_yaml(plan)):
        assert text.isascii()
        assert all(char.isprintable() or char in "\n\x7f" for char in text)
    assert json.loads(plan_json(plan))["steps"][0]["name"] == name
    assert yaml.safe_load(plan_yaml(plan))["steps"][0]["name"] == name
