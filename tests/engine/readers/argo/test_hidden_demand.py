"""What pods take beyond the plan of a run, which its queue must not overlook."""

import json
from typing import Any

import pytest

from kfp_placement_engine.model.notices import HIDDEN_DEMAND
from tests.controlplane.argo.small_workflows import task
from tests.engine.readers.argo.test_patches import patch
from tests.engine.readers.argo.test_plain_workflows import dag, read
from tests.support.packages import Fields

POD: Fields = {"name": "work", "container": {"image": "work:1"}}
HTTP: Fields = {"name": "work", "http": {"url": "http://x"}}
RETRIES = {"retryStrategy": {"limit": 2}}
BY_RETRIES = patch({"cpu": "{{=asInt(retries) < 1 ? '1' : '9'}}"})
WITHOUT_REQUESTS = json.dumps({"containers": [{"name": "main", "resources": {"requests": None}}]})


def hidden(template: Fields, **spec: Any) -> list[str]:
    """Messages of a run of one task that hide what it takes."""
    notices = read([dag(task("a")), template], **spec).notices
    assert {each.code for each in notices if each.hides_demand} <= {HIDDEN_DEMAND}
    return [each.message for each in notices if each.hides_demand]


@pytest.mark.parametrize(
    ("template", "spec", "part"),
    [
        ({**POD, "daemon": True}, {}, "daemon"),
        (POD, {"templateDefaults": {"daemon": True}}, "daemon"),
        ({**POD, **RETRIES, "podSpecPatch": BY_RETRIES}, {}, "retries"),
        ({**POD, "podSpecPatch": BY_RETRIES}, RETRIES, "retries"),
        (HTTP, {"podSpecPatch": patch({"cpu": "9"})}, "agent"),
        (HTTP, {"executorPlugins": [{}]}, "agent"),
        ({**POD, "podSpecPatch": WITHOUT_REQUESTS}, {}, "null"),
        ({**POD, "podSpecPatch": "containers: [{name: main, $patch: replace}]"}, {}, "null"),
        (POD, {"podSpecPatch": "containers: [{name: main, resources: }]"}, "null"),
        ({**POD, "synchronization": {"mutex": {"name": "m"}}}, {}, "Argo 4 ignores"),
    ],
)
def test_what_a_plan_does_not_have_hides_demand(template, spec, part):
    messages = hidden(template, **spec)
    assert messages
    assert all(part in each for each in messages)


@pytest.mark.parametrize(
    ("template", "spec"),
    [
        ({**POD, "podSpecPatch": BY_RETRIES}, {}),
        ({**POD, **RETRIES, "podSpecPatch": patch({"cpu": "9"})}, {}),
        (HTTP, {}),
        ({**POD, "daemon": False}, {}),
    ],
)
def test_what_a_plan_has_hides_nothing(template, spec):
    assert hidden(template, **spec) == []


def test_a_config_map_wins_over_the_value_of_an_input():
    from_config_map = {"configMapKeyRef": {"name": "c", "key": "k"}}
    inputs = {"parameters": [{"name": "n", "value": "1", "valueFrom": from_config_map}]}
    template = {**POD, "inputs": inputs, "podSpecPatch": patch({"cpu": "{{inputs.parameters.n}}"})}
    (notice,) = read([dag(task("a")), template]).notices
    assert (notice.code, notice.hides_demand) == ("unknown-resources", True)
    given = {"parameters": [{"name": "n", "value": "2"}]}
    graph = read([dag(task("a", arguments=given)), template])
    assert graph.step("a").requests == {"cpu": 2000}
