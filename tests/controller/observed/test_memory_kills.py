"""Pods whose step was killed for memory."""

from typing import Any

import pytest

from kfp_placement_controller.sources import DEFAULT_SOURCES

GIB = 2**30


def killed(
    container: str = "main",
    *,
    where: str = "state",
    reason: str = "OOMKilled",
    resources: Any = {"limits": {"memory": "2Gi"}},  # noqa: B006  it is not changed
    in_force: Any = None,
) -> int | None:
    """What is known of a pod one of whose containers has ended so."""
    ended = {where: {"terminated": {"reason": reason, "exitCode": 137}}, "resources": in_force}
    raw = {
        "metadata": {
            "namespace": "team",
            "name": "p",
            "labels": {"workflows.argoproj.io/workflow": "run"},
        },
        "spec": {
            "containers": [
                {"name": "wait", "resources": {"limits": {"memory": "1Gi"}}},
                {"name": "main", "resources": resources},
            ]
        },
        "status": {
            "phase": "Failed",
            "containerStatuses": [{"name": "init"}, {"name": container, **ended}],
        },
    }
    return DEFAULT_SOURCES.observe_pod(raw).killed_bytes


def test_a_step_that_was_killed_had_its_limit():
    assert killed() == 2 * GIB
    assert killed(where="lastState") == 2 * GIB


def test_the_limit_in_force_counts():
    assert killed(resources={"limits": {"memory": "8Gi"}}) == 8 * GIB
    assert killed(in_force={"limits": {"memory": "3Gi"}}) == 3 * GIB


@pytest.mark.parametrize(
    "pod",
    [
        {"reason": "Error"},
        {"container": "wait"},
        {"resources": {}},
        {"resources": {"requests": {"memory": "2Gi"}}},
        {"resources": {"limits": {"memory": "0"}}},
    ],
    ids=["another reason", "another container", "no limit", "a request alone", "zero"],
)
def test_nothing_else_tells_of_a_kill(pod):
    assert killed(**pod) is None
