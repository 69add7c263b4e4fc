"""Pods whose step was killed for memory."""

from typing import Any

import pytest

from kfp_placement_controller.sources import DEFAULT_SOURCES

GIB = 2**30


def killed(
    container: str = "main", *, where: str = "state", reason: str = "OOMKilled", **more: Any
):
    """What is known of a pod one of whose containers has ended so."""
    resources = more.pop("resources", {"limits": {"memory": "2Gi"}})
    ended = {"terminated": {"reason": reason, "exitCode": 137}}
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
            "containerStatuses": [{"name": "wait"}, {"name": container, where: ended, **more}],
        },
    }
    return DEFAULT_SOURCES.observe_pod(raw).killed_bytes


def test_a_step_that_was_killed_had_its_limit():
    assert killed() == 2 * GIB


def test_the_limit_in_force_counts():
    assert killed(resources={"limits": {"memory": "8Gi"}}) == 8 * GIB
    resized = {"resources": {"limits": {"memory": "3Gi"}}}
    assert killed(where="lastState", **{"resources": None}) is None
    assert (
        DEFAULT_SOURCES.observe_pod(
            {
                "metadata": {
                    "namespace": "team",
                    "name": "p",
                    "labels": {"workflows.argoproj.io/workflow": "run"},
                },
                "spec": {
                    "containers": [{"name": "main", "resources": {"limits": {"memory": "2Gi"}}}]
                },
                "status": {
                    "containerStatuses": [
                        {
                            "name": "main",
                            "lastState": {"terminated": {"reason": "OOMKilled"}},
                            **resized,
                        }
                    ]
                },
            }
        ).killed_bytes
        == 3 * GIB
    )


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
