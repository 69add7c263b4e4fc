"""Limits of the time until a step's pod runs, and until it is killed.

Argo's `pendingTimeout` and `timeout` count from the creation of a step's node: through gate, quota,
image pull and init containers. Argo fails a step whose pod does not run by then. `timeout` becomes
the pod's `activeDeadlineSeconds` too, which the kubelet counts from the pod's start on its node.
"""

import re
from collections.abc import Iterator, Mapping

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.run_graph import EndLimit, StartLimit
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS, parse_duration

DEADLINE = "activeDeadlineSeconds"
"""Field of pods, templates and Workflows that limits how long they may take."""

SETTINGS = ("pendingTimeout", "timeout")
"""Fields of Argo's templates that limit the time until a pod runs."""

LEAST_SECONDS = 1.0
"""Shortest limit that a pod can keep; Argo counts from a whole second."""

_WHOLE_SECONDS = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_GO_DURATION = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+", re.ASCII)
_BARE_POINT = re.compile(r"\.(?=[^0-9])")
_MAX_CHARACTERS = 64


def limit_seconds(text: str) -> float | None:
    """Read a duration as Argo does: a whole number of seconds, or Go's form; None = neither.

    What is negative counts as 0, and what is longer than ten years as ten years.
    """
    if len(text) > _MAX_CHARACTERS:
        return None
    if _WHOLE_SECONDS.fullmatch(text):
        return min(max(0.0, float(text)), MAX_DURATION_SECONDS)
    if not _GO_DURATION.fullmatch(text):
        return None
    if text.startswith("-"):
        return 0.0
    try:
        # Go accepts a point without digits after it.
        return parse_duration(_BARE_POINT.sub("", text))
    except QuantityError:
        return MAX_DURATION_SECONDS


def shortest_limit(texts: Mapping[str, str]) -> StartLimit | None:
    """Return the shortest limit that the settings give; None = they give none.

    Args:
        texts: durations by the name of their setting; those that Argo cannot read do not count.
    """
    limits = {setting: limit_seconds(text) for setting, text in texts.items()}
    readable = (StartLimit(seconds, key) for key, seconds in limits.items() if seconds is not None)
    return min(readable, default=None)


def shortest_end(texts: Mapping[str, str]) -> EndLimit | None:
    """Return the shortest limit of how long a pod or run may take; None = there is none.

    Args:
        texts: whole seconds or durations, by the name of their setting; others do not count.
    """
    limits = {setting: limit_seconds(text) for setting, text in texts.items()}
    readable = (EndLimit(seconds, key) for key, seconds in limits.items() if seconds is not None)
    return min(readable, default=None)


def run_limit(holder: Fields) -> EndLimit | None:
    """Return the limit of the time that a whole run may take; None = there is none.

    Args:
        holder: spec of a Workflow, or KFP's config of a pipeline.

    Raises:
        InputError: the limit is a mapping or a list.
    """
    limit = shortest_end({DEADLINE: holder.text(DEADLINE)})
    # KFP terminates a run by a limit of 0.
    return limit if limit and limit.seconds else None


def limit_warnings(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield code and message of each setting with which no pod of the step can run."""
    for setting, text in texts.items():
        seconds = limit_seconds(text)
        if seconds is None:
            problem = f"is not a duration, so Argo fails the step; write for example {setting}: 10m"
        elif setting == "timeout" and _WHOLE_SECONDS.fullmatch(text):
            example = f"{seconds:.0f}s" if seconds >= LEAST_SECONDS else "10m"
            problem = f"has no unit, so Argo refuses the Workflow; write for example {example}"
        elif seconds < LEAST_SECONDS:
            problem = "is over before any pod runs, so Argo fails the step; write for example 10m"
        else:
            continue
        yield "start-limit", f"its {setting} {text!r:.40} {problem}"
