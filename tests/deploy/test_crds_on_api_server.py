"""A real API server takes the CRDs and the examples, completes them, and keeps the rules."""

import copy
import re
from contextlib import suppress

import pytest

from tests.controlplane.exceptions import ApiError
from tests.controlplane.objects import an_object
from tests.support.custom_resources import CRD_VERSION, a_history, a_placement, installed_crds
from tests.support.structural_schemas import MANIFESTS, crds, documents, schema_of, with_defaults

VERSION = "kfp-placement.dev/v1alpha1"


@pytest.fixture(scope="module")
def installed(control_plane):
    """The API server with our kinds, which go again."""
    with installed_crds(control_plane.api):
        yield control_plane.api


@pytest.fixture
def create(installed):
    """Creates objects that go again after the test."""
    made = []

    def created(item):
        made.append(installed.create(item))
        return made[-1]

    yield created
    for item in made:
        with suppress(ApiError):
            installed.delete(item)


GPUS = {"name": "nvidia.com/gpu", "amount": "1"}


def a_policy(**spec):
    return an_object(VERSION, "PlacementPolicy", "default", spec=spec)


@pytest.fixture
def placement(namespace):
    """The example, for a namespace of the test's own."""
    return a_placement(namespace)


@pytest.mark.parametrize("kind", sorted(crds()))
def test_schemas_are_accepted_as_structural(installed, kind):
    crd = installed.get(CRD_VERSION, "CustomResourceDefinition", crds()[kind]["metadata"]["name"])
    assert not [
        each for each in crd["status"]["conditions"] if each["type"] == "NonStructuralSchema"
    ]


@pytest.mark.parametrize("name", ["locations", "policy-default", "policy-gates"])
def test_examples_are_completed_as_we_expect(create, name):
    for example in documents(MANIFESTS / f"{name}.yaml"):
        created = create(example)
        expected = with_defaults(example, schema_of(example["kind"]))
        assert created["spec"] == expected["spec"]


def test_rows_are_kept_as_they_are(installed, create, placement):
    created = create(placement)
    assert created["spec"] == placement["spec"]
    created["status"] = placement["status"]
    updated = installed.replace(created, part="status")
    assert updated["status"]["steps"] == placement["status"]["steps"]
    assert updated["status"]["counts"]["waiting"] == 0


def test_no_range_is_promised_with_a_confidence_of_zero(installed, create, placement):
    with pytest.raises(ApiError, match="a confidence is from"):
        create(placement | {"spec": placement["spec"] | {"confidence": 0}})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"schedulerNames": ["default-scheduler"]}, "cannot be one of our schedulers"),
        ({"gateDeadline": "500ms"}, "gateDeadline lies between 1s and 1h"),
        ({"schedulerStaleAfter": "61m"}, "schedulerStaleAfter lies between 1s and 1h"),
        ({"unboundDeadline": "1d"}, "spec.unboundDeadline"),
        ({"engine": {"budget": "11m"}}, "at most 10m"),
        ({"latencyRules": {"tolerance": "3601s"}}, "at most one hour"),
        ({"latencyRules": {"stepTypes": ["a", "a"]}}, "Duplicate value"),
        ({"defaults": {"byType": [{"type": "Fit"}, {"type": "fit"}]}}, "named once"),
        ({"defaults": {"requests": [GPUS | {"amount": "9E"}]}}, "from 0 to less than 9E"),
        ({"defaults": {"byType": [{"type": "a", "requests": []}]}}, "should have at least 1"),
        ({"makespanWithin": "-3%"}, "makespanWithin is negative; give 0% or more"),
        ({"makespanWithin": "-20m"}, "makespanWithin is negative; give 0% or more"),
        ({"makespanWithin": "1001%"}, "makespanWithin is at most 1000%"),
        ({"makespanWithin": "9000h"}, "makespanWithin is at most a year"),
        ({"weights": {"cpu": 0, "memory": 0}}, "cpu and memory are both 0"),
        ({"history": {"confidence": "30%"}}, "the confidence lies between 50% and 95%"),
        ({"history": {"memory": "prometheus"}}, "prometheusURL is not given"),
    ],
)
def test_policies_that_make_no_sense_are_refused(create, spec, message):
    """By rules; that limits and types are those of the models is seen without a server."""
    with pytest.raises(ApiError, match=message):
        create(a_policy(**spec))


PROMETHEUS = {
    "confidence": "95%",
    "memory": "prometheus",
    "prometheusURL": "http://prometheus:9090",
    "keepDays": 90,
}


@pytest.mark.parametrize(
    "spec",
    [
        *({"makespanWithin": within} for within in ("0%", "2.5%", "20m", "1h30m", "0s")),
        {"weights": {"cpu": 0.5, "memory": 0}},
        {"history": PROMETHEUS},
        {"defaults": {"requests": [GPUS], "byType": [{"type": "fit", "requests": [GPUS]}]}},
    ],
    ids=str,
)
def test_policies_that_make_sense_are_taken(create, spec):
    assert spec.items() <= create(a_policy(**spec))["spec"].items()


def test_there_is_one_policy(create):
    other = a_policy()
    other["metadata"]["name"] = "other"
    with pytest.raises(ApiError, match="the only PlacementPolicy is named default"):
        create(other)


def test_a_location_is_within_an_hour(create):
    static = [{"topologyKey": "zone", "value": "a", "rtt": "3601s"}]
    with pytest.raises(ApiError, match="at most one hour"):
        create(an_object(VERSION, "Location", "far", spec={"static": static}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workflowUID": "other"}, "belongs to one Workflow"),
        ({"submittedAt": "2026-11-20T10:00:01Z"}, "never changes"),
        ({"epoch": 0}, "higher epoch is never overwritten"),
        ({"revision": 1}, "revisions only grow"),
        ({"firstMakespan": "1m"}, "kept through replans"),
        ({"firstMakespan": None}, "kept through replans"),
    ],
)
def test_a_plan_is_not_taken_back(installed, create, placement, changes, message):
    changed = copy.deepcopy(create(placement))
    changed["spec"].update(changes)
    changed["spec"] = {key: value for key, value in changed["spec"].items() if value is not None}
    with pytest.raises(ApiError, match=message):
        installed.replace(changed)


def test_a_plan_goes_on(installed, create, placement):
    changed = create(placement)
    changed["spec"].update(revision=3, epoch=2, makespan="23m")
    assert installed.replace(changed)["spec"]["revision"] == 3


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def table(api, plural, namespace=None):
    """What `kubectl get -o wide` prints of a kind: columns -> cells, of the only object."""
    place = "" if namespace is None else f"/namespaces/{namespace}"
    answer = api.request("GET", f"/apis/{VERSION}{place}/{plural}", accept=TABLE)
    (row,) = answer["rows"]
    columns = [column["name"] for column in answer["columnDefinitions"]]
    brief = [column["name"] for column in answer["columnDefinitions"] if not column["priority"]]
    return dict(zip(columns, row["cells"], strict=True)), brief


def test_kubectl_prints_placements(installed, create, placement, namespace):
    created = create(placement)
    created["status"] = placement["status"]
    installed.replace(created, part="status")
    cells, brief = table(installed, "pipelineplacements", namespace)
    age = cells.pop("Age")
    spec, status = placement["spec"], placement["status"]
    assert cells == {
        "Name": placement["metadata"]["name"],
        "Phase": status["phase"],
        "Steps": status["progress"],
        "Planned makespan": spec["makespan"],
        "First plan": spec["firstMakespan"],
        "Actual": None,
        "Dispatch": spec["dispatch"],
        "Revision": spec["revision"],
        "Reason": "Replanned",
    }
    assert re.fullmatch(r"\d+s", age)
    assert brief == ["Name", "Phase", "Steps", "Planned makespan", "Age"]


def test_kubectl_prints_histories(installed, create, namespace):
    history = a_history(namespace)
    status = history["status"]
    installed.patch(create(history), {"status": status}, part="status")
    cells, brief = table(installed, "pipelinehistories", namespace)
    for column in ("Last", "Age"):
        assert re.fullmatch(r"<invalid>|\d+\w+", cells.pop(column)), column
    assert cells == {
        "Name": history["metadata"]["name"],
        "Pipeline": history["spec"]["pipeline"],
        "Runs": status["runsSeen"],
        "Typical": status["typical"],
        "Range": status["range"],
    }
    assert brief == ["Name", "Pipeline", "Runs", "Typical", "Last"]


def test_kubectl_prints_the_policy_and_locations(installed, create):
    create(a_policy(paused=True))
    cells, _ = table(installed, "placementpolicies")
    assert {"extender", True} <= set(cells.values())
    (home, *_) = documents(MANIFESTS / "locations.yaml")
    create(home)
    cells, _ = table(installed, "locations")
    assert home["spec"]["name"] in cells.values()
