"""Retry nodes: whether a failed attempt is followed by another."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tests.controlplane.argo.state import UNSUCCESSFUL, Json, Run, is_finished
from tests.controlplane.kubelet.workload import seconds_of
from tests.controlplane.times import read_time, write_time

POLICIES: Mapping[str, frozenset[str]] = {
    "Always": frozenset({"Failed", "Error"}),
    "OnError": frozenset({"Error"}),
    "OnFailure": frozenset({"Failed"}),
}


def phases_to_retry(strategy: Mapping[str, Any]) -> frozenset[str]:
    """Phases of an attempt that is followed by another; without a policy those of OnFailure."""
    return POLICIES[strategy.get("retryPolicy") or "OnFailure"]


def settle_attempts(run: Run, node: Json, strategy: Mapping[str, Any]) -> bool:
    """End a Retry node if its last attempt ends it; says whether execution goes on now.

    Args:
        run: the run.
        node: the Retry node.
        strategy: retry strategy of the step, filled.
    """
    attempts = run.attempts(node)
    if is_finished(node) or not attempts or not is_finished(attempts[-1]):
        return True
    last = attempts[-1]
    if last["phase"] not in UNSUCCESSFUL:
        if "outputs" in last:
            node["outputs"] = last["outputs"]
        run.mark(node["name"], "Succeeded")
        return True
    stop = _reason_to_stop(run, attempts, strategy)
    if stop is not None:
        run.mark(node["name"], last["phase"], stop or None)
        return True
    backoff = strategy.get("backoff")
    if not backoff:
        return True
    wait = (_next_start(attempts, backoff) - run.now).total_seconds()
    if wait > 0:
        run.look_again(wait)
        run.mark(node["name"], node["phase"], f"Backoff for {wait:g} seconds")
        return False
    run.mark(node["name"], node["phase"], "")
    return True


def _reason_to_stop(run: Run, attempts: list[Json], strategy: Mapping[str, Any]) -> str | None:
    """Return why there is no further attempt; None if there is one."""
    last = attempts[-1]
    if run.is_late and run.deadline is not None:
        return f"retry exceeded workflow deadline {write_time(run.deadline)}"
    if last["phase"] not in phases_to_retry(strategy):
        return str(last.get("message", ""))
    limit = strategy.get("limit")
    if limit is not None and len(attempts) > int(limit):
        return "No more retries left"
    backoff = strategy.get("backoff") or {}
    if backoff.get("maxDuration"):
        longest = timedelta(seconds=seconds_of(backoff["maxDuration"]))
        if _next_start(attempts, backoff) > read_time(attempts[0]["startedAt"]) + longest:
            return "Backoff would exceed max duration limit"
    return None


def _next_start(attempts: list[Json], backoff: Mapping[str, Any]) -> datetime:
    """Return when the next attempt may start: duration times factor to the number of retries."""
    seconds = seconds_of(backoff["duration"])
    factor = int(backoff.get("factor") or 0)
    if factor > 0:
        seconds *= float(factor) ** (len(attempts) - 1)
    return read_time(attempts[-1]["finishedAt"]) + timedelta(seconds=seconds)
