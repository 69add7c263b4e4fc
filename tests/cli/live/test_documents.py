"""The JSON of `list` and `explain` is what its published schema says."""

import json

import jsonschema
import pytest

from kfp_placement.live.kinds import PLACEMENTS, PODS
from kfp_placement.schemas import schema
from tests.cli.live.conftest import condition, placement
from tests.support.fake_cluster import executor_pod
from tests.support.json_schemas import closed

HOSTILE = "\x1b[31mred\u202e\nnew line"
WAITING = [["waiting", -1, -1, -1, ["volume", 49, 109, "Multi-Attach error"]], ["pending"]]

PLACED = {
    "as usual": placement(),
    "waiting": placement(status={"steps": WAITING}),
    "nothing has happened": placement(status={"steps": [], "counts": None, "progress": None}),
    "another revision": placement(status={"revision": 1}),
    "not readable": placement(spec={"submittedAt": "yesterday"}),
    "rows not readable": placement(spec={"steps": [[], ["a", "b"]]}, status={"steps": [[1]]}),
    "hostile": placement(
        status={"phase": HOSTILE, "conditions": [condition("Schedulable", message=HOSTILE)]}
    ),
}


def test_the_schema_is_one():
    found = schema("runs")
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("raw", PLACED.values(), ids=PLACED)
@pytest.mark.parametrize(
    ("kind", "command"),
    [("RunList", ["list"]), ("RunExplanation", ["explain", "taxi-x7k2p"])],
)
def test_documents_fit_the_schema_and_hold_nothing_it_does_not_describe(
    live, cluster, raw, kind, command
):
    cluster.put(PLACEMENTS, raw)
    cluster.put(PODS, executor_pod("train", node="home-edge-node", phase="Running"))
    document = json.loads(live(*command, "-o", "json").stdout)
    assert document["kind"] == kind
    jsonschema.Draft202012Validator(closed(schema("runs"))).validate(document)
    shown = document["items"][0] if kind == "RunList" else document["run"]
    assert shown["name"] == "taxi-x7k2p"


def test_a_waiting_step_is_described_in_full(live, cluster):
    cluster.put(PLACEMENTS, PLACED["waiting"])
    document = json.loads(live("explain", "taxi-x7k2p", "-o", "json").stdout)
    (waiting,) = document["run"]["waiting"]
    assert (waiting["for"], waiting["detail"]) == ("volume", "Multi-Attach error")
    assert waiting in [step["waiting"] for step in document["steps"]]


def test_a_document_without_a_field_does_not_fit(live):
    document = json.loads(live("list", "-o", "json").stdout)
    del document["items"][0]["phase"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema("runs"))
