"""Our custom resources as models: numbers inside, text outside, and nothing that crashes."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine import GeneticParams
from kfp_placement_engine.contract.custom_resources import (
    Location,
    PipelinePlacement,
    PlacementPolicy,
    read_resource,
    read_stored_policy,
)
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.contract.planned_policy import PLANNED_BY, planning_policy, policy_spec
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.rows import PlannedRow, StateRow
from kfp_placement_engine.contract.run_queue import resources_of
from kfp_placement_engine.contract.shared_parts import Resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.policy import Actuator, MemorySource, Objective, Search
from kfp_placement_engine.model.reasons import reason
from kfp_placement_engine.search.fitness import OBJECTIVES
from tests.support.json_values import JSON_VALUES
from tests.support.placements import planned_nodes
from tests.support.structural_schemas import MANIFESTS, documents


def a_placement(**changes):
    (taxi,) = documents(MANIFESTS / "pipelineplacement-taxi.yaml")
    for path, value in changes.items():
        part, _, field = path.partition("_")
        taxi[part][field] = value
    return taxi


def a_policy(**spec):
    """A policy as it is read."""
    resource = {"kind": "PlacementPolicy", "metadata": {"name": "default"}, "spec": spec}
    return read_resource(PlacementPolicy, resource)


def shipped_policy():
    (document,) = documents(MANIFESTS / "policy-gates.yaml")
    return read_resource(PlacementPolicy, document)


def test_values_are_numbers_inside_and_text_outside():
    policy = shipped_policy()
    spec = policy.spec
    assert spec.actuator is Actuator.GATES
    assert spec.gate_deadline_seconds == 30
    assert spec.engine.budget_seconds == 1
    assert spec.latency_rules.tolerance_ms == 1
    assert spec.headroom.cpu_milli == 500
    assert spec.headroom.memory_bytes == 256 * 2**20
    assert planning_policy(spec).assumed_values() == {
        "duration_seconds": 120,
        "image_bytes": 500 * 2**20,
        "store_bytes_per_second": 250_000_000,
    }
    written = policy.to_object()["spec"]
    assert written["gateDeadline"] == "30s"
    assert written["headroom"] == {"cpu": "500m", "memory": "256Mi"}
    assert written["defaults"]["duration"] == "2m"
    assert "output" not in written["defaults"]


def test_defaults_by_type_are_found_in_any_case():
    defaults = shipped_policy().spec.defaults
    training, nothing = defaults.of_type("TRAINING"), defaults.of_type("Fetch")
    assert training is not None
    assert training.duration_seconds == 1200
    assert training.output_bytes == 50 * 2**20
    assert resources_of(training.requests or ()) == {"cpu": 2000, "memory": 4 * 2**30}
    assert nothing is None


def test_the_policy_without_wishes_is_the_planner_s_own():
    spec = a_policy().spec
    assert spec.objective in OBJECTIVES
    assert spec.engine.population_size == GeneticParams().population_size
    assert spec.engine.islands == GeneticParams().islands
    assert spec.engine.search == GeneticParams().variant
    assert spec.latency_rules.step_types == LATENCY_RULED_TYPES
    assert planning_policy(spec).assumed_values() == {}


def test_words_of_the_policy_are_the_planner_s():
    assert {str(word) for word in Objective} == set(OBJECTIVES)
    for word in Search:
        assert GeneticParams(variant=word).variant == word


def test_a_bare_number_of_cpu_is_whole_cpus():
    """As in Kubernetes, whatever unit the model keeps."""
    assert a_policy(headroom={"cpu": 2}).spec.headroom.cpu_milli == 2000


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"actuator": "prayer"}, "'default': spec.actuator"),
        ({"gateDeadline": "soon"}, "spec.gateDeadline: 'soon' is not a duration"),
        ({"gateDeadline": "0s"}, "spec.gateDeadline"),
        ({"gateDeadline": "2h"}, "spec.gateDeadline"),
        ({"engine": {"budget": "1h"}}, "spec.engine.budget"),
        ({"schedulerNames": ["default-scheduler"]}, "cannot be one of our schedulers"),
        ({"schedulerNames": []}, "spec.schedulerNames"),
        ({"makespanWithin": "-3%"}, "spec.makespanWithin: '-3%' is negative; give 0% or more"),
        ({"makespanWithin": "2000%"}, "spec.makespanWithin: makespanWithin 2000% is out of range"),
        ({"weights": {"cpu": -1}}, "spec.weights.cpu"),
        ({"weights": {"cpu": 0, "memory": 0}}, "spec.weights: cpu and memory are both 0"),
        ({"headroom": {"cpu": "much"}}, "spec.headroom.cpu: 'much' is not a quantity"),
        ({"defaults": {"requests": []}}, "spec.defaults.requests"),
        ({"defaults": {"requests": [{"name": "cpu", "amount": "-1"}]}}, "requests.0.amount"),
        ({"defaults": {"requests": [{"name": "a b", "amount": 1}]}}, "requests.0.name"),
        ({"defaults": {"requests": {"cpu": 1}}}, "spec.defaults.requests"),
        ({"defaults": {"byType": [{}, {}]}}, "spec.defaults.byType.0.type: .*and 1 more"),
    ],
)
def test_what_is_wrong_is_named(spec, message):
    with pytest.raises(InputError, match=message):
        a_policy(**spec)


def test_a_location_knows_the_first_entry_that_matches():
    home, plant = (
        read_resource(Location, each).stated() for each in documents(MANIFESTS / "locations.yaml")
    )
    assert (home.lookup_name, plant.lookup_name) == ("home-edge", "plant-3")
    labels = {"kubernetes.io/hostname": "home-edge-node", "topology.kubernetes.io/region": "cloud"}
    assert home.latency_ms(labels) == 9.8
    assert home.latency_ms({"topology.kubernetes.io/region": "cloud"}) == 89.67
    assert home.latency_ms({"topology.kubernetes.io/region": "moon"}) is None
    assert plant.latency_ms({"topology.kubernetes.io/zone": "eu-de-1"}) == 0.8


def test_a_placement_says_where_each_step_goes():
    placement = read_resource(PipelinePlacement, a_placement())
    assert planned_nodes(placement) == {
        "fetch": "nitos-cloud-node",
        "train": "nitos-cloud-node",
        "predict": "home-edge-node",
    }
    assert placement.planned_rows().rows[1] == PlannedRow(
        "train",
        0,
        47,
        1249,
        reason("run-later", seconds=1200, node=1),
        placement_alternatives(placement),
    )
    assert placement.state_rows().rows[1:] == (StateRow("running", 0, 49), StateRow("pending"))
    assert placement.spec.makespan_seconds == 1375
    assert placement.spec.submitted_at == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert placement.node_name(2) == "home-edge-node"
    assert placement.node_name(3) is None
    assert placement.node_name(None) is None
    assert placement.status is not None
    planned = placement.status.condition("Planned")
    assert planned is not None
    assert planned.reason == "Replanned"
    assert placement.status.condition("Finished") is None


def placement_alternatives(placement):
    row = placement.planned_rows().rows[1]
    assert [(each.node, each.loss_seconds) for each in row.alternatives] == [(1, 1200), (2, 2400)]
    return row.alternatives


def test_makespans_are_written_to_a_tenth_of_a_second():
    raw = a_placement()
    raw["spec"] |= {"makespan": "23.782361159s", "firstMakespan": "22m5.25s"}
    spec = read_resource(PipelinePlacement, raw).spec
    assert spec.makespan_seconds == 23.782361159
    written = spec.model_dump(by_alias=True)
    assert (written["makespan"], written["firstMakespan"]) == ("23.8s", "22m5.2s")


def test_rows_of_another_revision_are_not_mixed_up():
    """Plan and status are written one after the other."""
    placement = read_resource(PipelinePlacement, a_placement(spec_revision=3))
    assert placement.state_rows().rows == ()
    assert (
        read_resource(PipelinePlacement, {**a_placement(), "status": None}).state_rows().rows == ()
    )


def test_a_newer_revision_can_be_read():
    newer = a_placement(spec_dispatch="psychic", spec_moon={"phase": 1}, status_phase="Dreaming")
    newer["spec"]["steps"][0].append("new")
    placement = read_resource(PipelinePlacement, newer)
    assert placement.spec.dispatch == "psychic"
    assert placement.status is not None
    assert placement.status.phase == "Dreaming"
    assert len(planned_nodes(placement)) == 3


def deep(levels):
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("kind", Resource.__subclasses__())
@pytest.mark.parametrize(
    "document",
    [
        None,
        7,
        "text",
        [],
        {"metadata": 7},
        {"spec": []},
        {"metadata": {"name": "\x1b[2J" * 99}, "spec": 1},
    ],
)
def test_what_is_no_resource_is_refused(kind, document):
    with pytest.raises(InputError) as refused:
        read_resource(kind, document)
    assert len(str(refused.value)) < 400
    assert str(refused.value).isprintable()


def test_deep_rows_are_refused_not_followed():
    placement = read_resource(
        PipelinePlacement, a_placement(spec_steps=[["a", 0, 0, 1, ["x", deep(50_000)]]])
    )
    assert "nested too deeply" in placement.planned_rows().problems[0]


@given(st.sampled_from(["spec", "status", "metadata"]), st.data())
def test_reading_fails_with_our_own_error_only(part, data):
    document = a_placement()
    field = data.draw(st.sampled_from(sorted(document[part])))
    document[part][field] = data.draw(JSON_VALUES)
    try:
        placement = read_resource(PipelinePlacement, document)
    except InputError:
        return
    planned_nodes(placement)
    placement.state_rows()


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"actuator": "gates", "paused": True},
        {"engine": {}, "latencyRules": {}, "defaults": {}},
        {"objective": "paper", "engine": {"search": "paper", "budget": "500ms"}},
        {"makespanWithin": "3%", "weights": {"cpu": 2.0, "memory": 0.0}},
        {"objective": "makespan", "makespanWithin": "20m"},
        {"latencyRules": {"stepTypes": [], "tolerance": "0.3ms", "tolerancePercent": 0}},
        {"defaults": {"duration": "2m", "image": "500Mi", "byType": []}},
        {"defaults": {"driver": None, "byType": [{"type": "Fit"}, {"type": "b", "priority": 0}]}},
        {"defaults": {"byType": [{"type": "a", "maxLatency": "1.5ms", "output": "5M"}]}},
        {"defaults": {"requests": [{"name": "cpu", "amount": "500m"}], "byType": []}},
        {"defaults": {"byType": [{"type": "a", "requests": [{"name": "x.y/gpu", "amount": "2"}]}]}},
        {"history": {}},
        {"history": {"confidence": "80%", "keepDays": 7}},
    ],
)
def test_what_a_policy_says_of_plans_comes_back(spec):
    wire = a_policy(**spec).spec
    again = policy_spec(planning_policy(wire))
    assert as_set(again) == as_set(wire)
    assert planning_policy(again) == planning_policy(wire)


def as_set(spec):
    return spec.model_dump(
        mode="json", by_alias=True, exclude_unset=True, exclude_none=True, include=set(PLANNED_BY)
    )


def test_of_two_assumptions_for_one_type_the_first_counts():
    entries = [{"type": "Fit", "priority": 1}, {"type": "FIT", "priority": 2}]
    wire = a_policy(defaults={"byType": entries}).spec
    assumed = planning_policy(wire).assumed_by_type()
    assert list(assumed) == ["fit"]
    assert assumed["fit"].priority == 1


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ({"confidence": "30%"}, "'30%' is not a confidence from 50% to 95%"),
        ({"confidence": "often"}, "'often' is not a confidence"),
        ({"keepDays": 0}, "keepDays"),
        ({"keepDays": 4000}, "keepDays"),
        ({"memory": "gossip"}, "memory"),
        ({"memory": "prometheus"}, "prometheusURL is not given; give the server's address"),
        ({"prometheusURL": "file:///etc/passwd"}, "prometheusURL"),
        ({"memory": "metrics"}, "memory"),
    ],
)
def test_settings_of_histories_that_make_no_sense_are_refused(history, message):
    with pytest.raises(InputError, match=message):
        a_policy(history=history)


def test_settings_of_histories_are_read():
    usual = a_policy().spec.history
    assert (usual.confidence, usual.keep_days) == (0.9, 90)
    assert (usual.memory, usual.prometheus_url) == (MemorySource.OFF, None)
    given = {"memory": "prometheus", "prometheusURL": "http://prometheus:9090"}
    policy = a_policy(history=given)
    assert policy.spec.history.memory is MemorySource.PROMETHEUS
    written = policy.to_object()["spec"]["history"]
    assert written == given | {"confidence": "90%", "keepDays": 90}
    assert policy.spec.history.asked_url == "http://prometheus:9090"
    assert a_policy(history=given | {"memory": "off"}).spec.history.asked_url == ""


@pytest.mark.parametrize("rest", ["name:password@prometheus:9090", "prometheus?a=b", "p/#a", "@"])
def test_a_stored_server_that_is_not_asked_makes_no_policy_unreadable(rest):
    history = {"memory": "prometheus", "prometheusURL": f"http://{rest}"}
    policy, problem = read_stored_policy({"spec": {"paused": True, "history": history}})
    assert policy.spec.paused
    assert policy.spec.history.asked_url == ""
    assert "peak memory is not learned" in problem
    assert f"//{rest}" not in problem
    history["memory"] = "off"
    assert read_stored_policy({"spec": {"history": history}}).problem == ""


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"spec": {"namespaceLimits": {"plannedSteps": 0}}}, "spec.namespaceLimits.plannedSteps"),
        ({"spec": {"namespaceLimits": {"plannedSteps": "many"}}}, "'many'"),
        ({"spec": {"history": {"memory": "prometheus"}, "engine": 7}}, "and 1 more problem"),
        ({"status": {"conditions": 7}}, "status.conditions: must be a list"),
    ],
    ids=str,
)
def test_of_a_stored_policy_all_that_can_be_read_is_used(bad, named):
    """A pause must not end because an older kind let something in."""
    stored = {"metadata": {"name": "default"}, "status": {"schedulerReady": True}, "spec": {}}
    stored = {**stored, **bad, "spec": {"paused": True, **bad.get("spec", {})}}
    policy, problem = read_stored_policy(stored)
    assert policy == PlacementPolicy.model_validate(
        {"metadata": {"name": "default"}, "spec": {"paused": True}, "status": policy.status}
    )
    assert named in problem
    assert policy.status is not None
    assert policy.status.scheduler_ready is ("status" not in bad or None)


@pytest.mark.parametrize("spec", [7, ["paused"], "paused"])
def test_a_stored_policy_without_a_readable_spec_has_its_defaults(spec):
    policy, problem = read_stored_policy({"spec": spec})
    assert policy.spec == PlacementPolicySpec()
    assert "spec: must be an object" in problem
