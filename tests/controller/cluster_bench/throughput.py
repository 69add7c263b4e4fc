"""How fast a kube-scheduler binds pods, with our extender and without."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from kfp_placement_kube.kinds import JsonObject
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import wait_until

QPS = 500
_BOUND = re.compile(r"^I(\d{4} [\d:.]+) .*Successfully bound pod to node", re.MULTILINE)
_TIMEOUT_SECONDS = 180.0


def configuration(shipped: JsonObject, name: str, *, with_extender: bool) -> dict[str, Any]:
    """The shipped configuration for a measurement: another name, no Lease, more requests."""
    changed: dict[str, Any] = {
        **shipped,
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": QPS, "burst": 2 * QPS},
        "profiles": [{**profile, "schedulerName": name} for profile in shipped["profiles"]],
    }
    if not with_extender:
        del changed["extenders"]
    return changed


def pods_per_second(
    plane: ControlPlane, name: str, configuration: dict[str, Any], waiting: int
) -> float:
    """Start a scheduler for pods that wait for it, and time its bindings by its own log.

    Args:
        plane: the control plane.
        name: of the scheduler that the pods ask for.
        configuration: its KubeSchedulerConfiguration.
        waiting: how many pods there are.
    """
    process = plane.add_scheduler(name, configuration, flags=("--v=2",))
    try:
        wait_until(
            lambda: len(list(bindings(process.log))) >= waiting,
            f"{name} to bind {waiting} pods",
            _TIMEOUT_SECONDS,
        )
    finally:
        plane.remove(name)
    moments = list(bindings(process.log))
    return (len(moments) - 1) / (max(moments) - min(moments)).total_seconds()


def bindings(log: Path) -> Iterator[datetime]:
    """When pods were bound, as a scheduler's log tells."""
    for moment in _BOUND.findall(log.read_text(errors="replace")):
        yield datetime.strptime(f"2000{moment}", "%Y%m%d %H:%M:%S.%f")
