"""Retry nodes: whether a failed attempt is followed by another."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tests.controlplane.argo.durations import parse_duration
from tests.controlplane.argo.exceptions import TemplateError
from tests.controlplane.argo.state import UNSUCCESSFUL, Run, is_finished
from tests.controlplane.times import read_time, write_time

Json = dict[str, Any]

POLICIES: Mapping[str, frozenset[str]] = {
    "Always": frozenset({"Failed", "Error"}),
    "OnError": frozenset({"Error"}),
    "OnFailure": frozenset({"Failed"}),
    "OnTransientError": frozenset(),
}
"""Policy -> phases of an attempt that are retried. Messages of transient errors are not judged."""


def policy_of(strategy: Mapping[str, Any]) -> str:
    """The policy in force: without any it is OnFailure, with an expression Always."""
    stated = strategy.get("retryPolicy")
    if stated:
        return str(stated)
    return "Always" if strategy.get("expression") else "OnFailure"


def settle_attempts(run: Run, node: Json, strategy: Mapping[str, Any]) -> bool:
    """End a Retry node if its last attempt ends it; says whether execution goes on now.

    Args:
        run: the run.
        node: the Retry node.
        strategy: its retry strategy, filled.

    Raises:
        TemplateError: the strategy makes no sense.
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
    wait = _seconds_to_wait(run, attempts, strategy)
    if wait > 0:
        run.look_again(wait)
        run.mark(node["name"], node["phase"], f"Backoff for {wait:g} seconds")
        return False
    if strategy.get("backoff"):
        run.mark(node["name"], node["phase"], "")
    return True


def _reason_to_stop(run: Run, attempts: list[Json], strategy: Mapping[str, Any]) -> str | None:
    """Why there is no further attempt, or None."""
    last = attempts[-1]
    policy = policy_of(strategy)
    if policy not in POLICIES:
        raise TemplateError(f"{policy} is not a valid RetryPolicy")
    if run.shutdown:
        return f"Stopped with strategy '{run.shutdown}'"
    if run.is_late and run.deadline is not None:
        return f"retry exceeded workflow deadline {write_time(run.deadline)}"
    futile = _too_long(run, attempts, strategy)
    if futile is not None:
        return futile
    if last["phase"] not in POLICIES[policy]:
        return str(last.get("message", ""))
    limit = strategy.get("limit")
    if limit is not None and len(attempts) > _whole(limit):
        return "No more retries left"
    return None


def _too_long(run: Run, attempts: list[Json], strategy: Mapping[str, Any]) -> str | None:
    end = _latest_end(attempts, strategy)
    if end is None:
        return None
    if run.now > end:
        return "Max duration limit exceeded"
    if _next_start(attempts, strategy) > end:
        return "Backoff would exceed max duration limit"
    return None


def _latest_end(attempts: list[Json], strategy: Mapping[str, Any]) -> datetime | None:
    longest = (strategy.get("backoff") or {}).get("maxDuration")
    if not longest:
        return None
    return read_time(attempts[0]["startedAt"]) + timedelta(seconds=parse_duration(longest))


def _next_start(attempts: list[Json], strategy: Mapping[str, Any]) -> datetime:
    """When the next attempt may start: duration times factor to the number of retries so far."""
    backoff = strategy.get("backoff") or {}
    if not backoff.get("duration"):
        raise TemplateError("no base duration specified for retryStrategy")
    seconds = parse_duration(backoff["duration"])
    factor = _whole(backoff.get("factor") or 0)
    if factor > 0:
        seconds *= float(factor) ** (len(attempts) - 1)
    if backoff.get("cap"):
        seconds = min(seconds, parse_duration(backoff["cap"]))
    return read_time(attempts[-1]["finishedAt"]) + timedelta(seconds=seconds)


def _seconds_to_wait(run: Run, attempts: list[Json], strategy: Mapping[str, Any]) -> float:
    if not strategy.get("backoff") or strategy.get("limit") is None:
        return 0.0
    if len(attempts) > _whole(strategy["limit"]):
        return 0.0
    return (_next_start(attempts, strategy) - run.now).total_seconds()


def _whole(value: Any) -> int:
    try:
        return int(str(value))
    except ValueError as error:
        raise TemplateError(f"{value!r} is no whole number") from error


def attempt_parameters(number: int, last: Mapping[str, Any] | None) -> dict[str, str]:
    """`{{retries}}` and `{{lastRetry...}}` for an attempt."""
    outputs = (last or {}).get("outputs") or {}
    duration = 0.0
    if last is not None and last.get("finishedAt"):
        span = read_time(last["finishedAt"]) - read_time(last["startedAt"])
        duration = span.total_seconds()
    return {
        "retries": str(number),
        "lastRetry.exitCode": str(outputs.get("exitCode", "0")),
        "lastRetry.duration": f"{duration:g}",
        "lastRetry.status": str((last or {}).get("phase", "")),
        "lastRetry.message": str((last or {}).get("message", "")),
    }
