"""RunQueue: what it refuses where no API server has looked at it, and amounts both ways."""

import pytest

from kfp_placement_engine.contract.custom_resources import RunQueue, read_resource
from kfp_placement_engine.contract.run_queue import amounts_of, resources_of
from kfp_placement_engine.exceptions import InputError


def a_queue(**spec):
    return read_resource(RunQueue, {"metadata": {"name": "default"}, "spec": spec})


REFUSED = {
    "no-quantity": (
        {"capacity": [{"name": "cpu", "amount": "four"}]},
        "RunQueue 'default': spec.capacity.0.amount: 'four' is not a quantity; write for example"
        " 4Gi, 500M or 2",
    ),
    "too-much": (
        {"capacity": [{"name": "cpu", "amount": "9e18"}]},
        "RunQueue 'default': spec.capacity.0: cpu: '9e18' is beyond what Kubernetes can hold"
        " (2^63 - 1)",
    ),
    "range": (
        {"priorities": {"min": 2, "max": 1}},
        "RunQueue 'default': spec.priorities: min 2 is greater than max 1",
    ),
    "kueue": (
        {"backend": "kueue"},
        "RunQueue 'default': spec: backend kueue needs localQueue: the LocalQueue of this"
        " namespace",
    ),
    "runs": (
        {"quota": {"runs": -1}},
        "RunQueue 'default': spec.quota.runs: must be greater than or equal to 0, not -1",
    ),
}


@pytest.mark.parametrize(("spec", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_with_its_place(spec, message):
    with pytest.raises(InputError) as refused:
        a_queue(**spec)
    assert str(refused.value) == message


def test_amounts_are_read_and_written_in_the_unit_of_their_resource():
    resources = {"cpu": 1500, "memory": 2**30, "nvidia.com/gpu": 4}
    amounts = amounts_of(resources)
    assert [(each.name, each.amount) for each in amounts] == [
        ("cpu", "1500m"),
        ("memory", "1Gi"),
        ("nvidia.com/gpu", "4"),
    ]
    assert resources_of(amounts) == resources


def test_numbers_are_amounts_too():
    queue = a_queue(quota={"resources": [{"name": "cpu", "amount": 2}]})
    assert resources_of(queue.spec.quota.resources) == {"cpu": 2000}


def test_a_queue_of_kueue_names_its_local_queue():
    assert a_queue(backend="kueue", localQueue="team-a").spec.local_queue == "team-a"
