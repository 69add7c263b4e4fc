"""Pods, and requests of pods, that a plan does not have although a template says them.

A module of its own because what a queue must not overlook is listed in one place.
"""

from collections.abc import Iterator

from kfp_placement_engine.model.notices import HIDDEN_DEMAND, Notice
from kfp_placement_engine.readers.text.fields import Fields

_DAEMON = "its pod runs on beside what comes after it (daemon); the plan ends it as any other"
_ATTEMPTS = "its podSpecPatch names retries; the plan is of first attempts"
_AGENT = "Argo's agent runs it, whose pod podSpecPatch or executorPlugins of the spec may change"


def hidden_demand(template: Fields, spec: Fields) -> Iterator[Notice]:
    """Yield notices of what a template's pods may take beyond what the plan says.

    Args:
        template: the template with its defaults merged in.
        spec: the Workflow's spec.

    Raises:
        InputError: a patch is not text.
    """
    patches = [each.text("podSpecPatch") for each in (spec, template)]
    is_by_agent = any(template.get(kind) is not None for kind in ("http", "plugin"))
    is_retried = any(each.get("retryStrategy") is not None for each in (spec, template))
    for why, applies in (
        (_DAEMON, bool(template.get("daemon"))),
        (_ATTEMPTS, is_retried and any("retries" in patch for patch in patches)),
        (_AGENT, is_by_agent and bool(patches[0] or spec.get("executorPlugins"))),
    ):
        if applies:
            yield Notice(HIDDEN_DEMAND, f"{template.place.spelled}: {why}")
