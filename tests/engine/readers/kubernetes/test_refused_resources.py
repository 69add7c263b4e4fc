"""Requests and limits that the API server refuses, and accelerators that KFP drops."""

import pytest

from tests.engine.readers.argo.test_plain_workflows import ONE_TASK
from tests.engine.readers.argo.test_plain_workflows import read as read_workflow
from tests.support.packages import a_package, read_as_workflow, read_package

GPU = "nvidia.com/gpu"


def resources_of(**resources):
    """What is noticed about a plain Workflow of one container with these resources."""
    container = {"image": "alpine:3.20", "resources": resources}
    return noticed({"container": container})


def noticed(template):
    run = read_workflow([ONE_TASK[0], {"name": "work", **template}])
    return [(notice.code, notice.message) for notice in run.notices]


REFUSED = {
    "half": ({"limits": {GPU: "0.5"}}, "'0.5' must be an integer"),
    "half a unit": ({"limits": {GPU: "1500m"}}, "'1500m' must be an integer"),
    "request alone": (
        {"requests": {GPU: 1}},
        "Limit must be set for non overcommitable resources",
    ),
    "other request": (
        {"requests": {GPU: 1}, "limits": {GPU: 2}},
        f"must be equal to {GPU} limit '2'",
    ),
    "huge pages alone": (
        {"requests": {"hugepages-2Mi": "4Mi", "cpu": 1}},
        "Limit must be set for non overcommitable resources",
    ),
    "huge pages without memory": (
        {"limits": {"hugepages-2Mi": "4Mi"}},
        "HugePages require cpu or memory",
    ),
    "name of a quota": (
        {"limits": {f"requests.{GPU}": 1}},
        "doesn't follow extended resource name standard: Kubernetes will refuse its pod; write "
        + GPU,
    ),
    "part of a huge page": (
        {"limits": {"hugepages-2Mi": "3Mi", "cpu": 1}},
        "multiple of the page size 2Mi",
    ),
}


@pytest.mark.parametrize(("resources", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_the_api_server_refuses_is_noticed(resources, reason):
    ((code, message),) = resources_of(**resources)
    assert code == "invalid-resource"
    assert reason in message


ACCEPTED = {
    "limit alone": {"limits": {GPU: 2}},
    "equal": {"requests": {GPU: "2"}, "limits": {GPU: 2}},
    "large": {"limits": {"example.com/dongle": "1k"}},
    "huge pages": {"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}},
    "half a CPU without limit": {"requests": {"cpu": "0.5", "memory": "1Gi"}},
    "disk without limit": {"requests": {"ephemeral-storage": "1Gi"}},
    "prefix of Kubernetes": {"requests": {"x.kubernetes.io/y": 1}},
}


@pytest.mark.parametrize("resources", ACCEPTED.values(), ids=ACCEPTED)
def test_what_the_api_server_takes_is_not_noticed(resources):
    assert resources_of(**resources) == []


def test_init_containers_are_held_to_the_same_rules():
    init = {"name": "a", "image": "b:1", "resources": {"requests": {GPU: 1}}}
    ((code, _),) = noticed({"container": {"image": "alpine:3.20"}, "initContainers": [init]})
    assert code == "invalid-resource"


DROPPED = {
    "number": ({"resourceCount": "2"}, 'set_accelerator_type("nvidia.com/gpu")'),
    "old number": ({"count": "2"}, 'set_accelerator_type("nvidia.com/gpu")'),
    "type": ({"resourceType": GPU}, "set_accelerator_limit(1)"),
    "old type": ({"type": GPU}, "set_accelerator_limit(1)"),
}


@pytest.mark.parametrize("read", [read_package, read_as_workflow])
@pytest.mark.parametrize(("accelerator", "line"), DROPPED.values(), ids=DROPPED)
def test_half_of_what_kfp_needs_for_accelerators_is_noticed(read, accelerator, line):
    run = read(a_package(container={"resources": {"accelerator": accelerator}}))
    (notice,) = run.notices
    assert notice.code == "accelerator-dropped"
    assert line in notice.message
    assert not run.steps[0].requests
