"""What a real API server stores of RunQueues, our model reads."""

import random
from typing import Any

import pytest

from kfp_placement_controller.observed.run_queues import observe_queue
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError
from tests.support.custom_resources import installed_crds
from tests.support.manifests import a_queue

SUFFIXES = ("", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e1", "E0", "e9", "e15", "e99")
NUMBERS = ("0", "1", "9", "999", "1.", ".5", "0.000000001", "8.99999", "9007199254740993", "00012")
LARGEST = (9_000_000_000_000_000, 9_223_372_036_854_775_807, "9223372036854775808", "9e18", "8.9E")
DURATIONS = (
    *("1s", "0.9999999999s", "1h", "3600.0000000001s", "59m60s", "3600000.0000001ms", "61m"),
    *("0.5h30m", "1ms", "1s1s", "1.5m", "3599.9999999999s0.0000000019s", "0h1s"),
)


@pytest.fixture(scope="module")
def api(control_plane):
    """The API server with our kinds, which go again."""
    with installed_crds(control_plane.api):
        yield control_plane.api


def an_amount(choice: random.Random) -> Any:
    if choice.random() < 0.1:
        return choice.choice([*LARGEST, -1, 0, 5])
    return choice.choice(NUMBERS) + choice.choice(SUFFIXES)


def amounts(choice: random.Random) -> list[JsonObject]:
    names = choice.sample(["cpu", "memory", "nvidia.com/gpu", "pods"], choice.randint(0, 2))
    return [{"name": name, "amount": an_amount(choice)} for name in names]


def a_spec(choice: random.Random) -> JsonObject:
    """A spec of which every field is allowed by its type, and some values by nothing more."""
    whole: JsonObject = {
        "backend": choice.choice(["builtin", "kueue"]),
        "localQueue": "team",
        "quota": {"runs": choice.choice([0, 1, 100_000]), "resources": amounts(choice)},
        "overcommit": choice.choice([1, 1.5, 100]),
        "capacity": amounts(choice),
        "priorities": {"min": choice.choice([-1_000_000, 0]), "max": choice.choice([0, 1])},
        "agingPerHour": choice.choice([0, 0.1, 1_000_000]),
        "onControllerDown": choice.choice(["run", "hold"]),
        "holdDeadline": choice.choice(DURATIONS),
    }
    return {name: value for name, value in whole.items() if choice.random() < 0.7}


def stored(api: Api, namespace: str, spec: JsonObject) -> JsonObject | None:
    """The RunQueue as the server would store it; None = it refuses it."""
    try:
        return dict(api.create(a_queue(namespace, **spec), dryRun="All"))
    except ApiError as error:
        if error.status != 422:
            raise
        return None


def test_whatever_is_stored_can_be_read(api, namespace):
    choice = random.Random(12)
    accepted = 0
    for _ in range(600):
        spec = a_spec(choice)
        queue = stored(api, namespace, spec)
        if queue is not None:
            accepted += 1
            assert observe_queue(queue).problem == "", spec
    # Else this would say little.
    assert 150 < accepted < 550


@pytest.mark.parametrize("place", ["quota", "capacity"])
@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_amounts_up_to_a_limit_are_stored_and_read(api, namespace, place, name):
    def spec(amount: Any) -> JsonObject:
        listed = [{"name": name, "amount": amount}]
        return {"quota": {"resources": listed}} if place == "quota" else {"capacity": listed}

    largest = "8.99999999P" if name == "cpu" else "8.99999999E"
    for amount in ("0", 0, 1, ".5", "1.", "1e3", "100m", largest):
        queue = stored(api, namespace, spec(amount))
        assert queue is not None, amount
        assert observe_queue(queue).problem == "", amount
    for amount in ("1e99", "1e30", "9E", "8Ei", -1, "99999999999999999999999E"):
        assert stored(api, namespace, spec(amount)) is None, amount


def test_a_demand_that_is_not_written_as_a_list_is_refused(api, namespace):
    """What a client drops of it would count as nothing."""
    assert stored(api, namespace, {"unreadable": {"cpu": 4}}) is None
    assert stored(api, namespace, {"unreadable": {}}) is None
    assert stored(api, namespace, {"unreadable": {"resources": []}}) is not None
