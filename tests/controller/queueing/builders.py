"""Runs, rules and nodes with only what matters to a test."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kfp_placement_controller.queueing.runs import AdmittedRun, QueueRules, WaitingRun
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
QUEUE = QueueKey("team", "default")
GPU = "nvidia.com/gpu"


BROKEN = {"resources": [{"name": "cpu", "amount": "1e99"}]}
"""A quota that cannot be read."""


def after(hours: float) -> datetime:
    """So long after `START`."""
    return START + timedelta(hours=hours)


def a_demand(*, gang: tuple[int, dict[str, int]] | None = None, **peak: int) -> Demand:
    """A peak in whole CPUs (`cpu`) and GPUs (`gpu`), and pods that work together, one shape."""
    groups = () if gang is None else (PodGroup(gang[0], amounts(**gang[1])),)
    return Demand(peak=amounts(**peak), gangs=groups)


def amounts(cpu: int = 0, gpu: int = 0, **others: int) -> dict[str, int]:
    """Canonical units."""
    named = {"cpu": 1000 * cpu, GPU: gpu, **others}
    return {name: amount for name, amount in named.items() if amount}


def _needs(cpu: int, gpu: int) -> Demand:
    """What a run needs of which so much is said: 1 CPU if nothing is."""
    return a_demand(cpu=cpu or (0 if gpu else 1), gpu=gpu)


def waiting(
    name: str, demand: Demand | None = None, *, cpu: int = 0, gpu: int = 0, **fields: Any
) -> WaitingRun:
    """A run of the queue `default` that was submitted at `START`; it needs 1 CPU unless said."""
    values: dict[str, Any] = {"queue": QUEUE, "priority": 0, "submitted_at": START, **fields}
    key = RunKey(values["queue"].namespace, name)
    return WaitingRun(key=key, demand=demand or _needs(cpu, gpu), **values)


def admitted(
    name: str, demand: Demand | None = None, *, cpu: int = 0, gpu: int = 0, **fields: Any
) -> AdmittedRun:
    """A run of the queue `default` that was admitted at `START`; it needs 1 CPU unless said."""
    values: dict[str, Any] = {"queue": QUEUE, "priority": 0, "admitted_at": START, **fields}
    key = RunKey(values["queue"].namespace, name)
    return AdmittedRun(key=key, demand=demand or _needs(cpu, gpu), **values)


def nodes(count: int = 1, **has: int) -> list[Resources]:
    """So many equal nodes."""
    return [{**amounts(**has), "pods": 110}] * count


def rules(**fields: Any) -> dict[QueueKey, QueueRules]:
    """Those of the queue `default`; as a quota reads them, in canonical units."""
    return {QUEUE: QueueRules(**fields)}
