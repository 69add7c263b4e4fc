"""Containers of a pod: the state, the image and the memory of those that run its step."""

from collections.abc import Iterable, Iterator, Sequence
from sys import intern

from kfp_placement_controller.observed.limited_fields import text_of
from kfp_placement_engine.model.history import MAX_IMAGE_CHARACTERS
from kfp_placement_engine.readers.text.fields import Fields

_STARTING = ("PodInitializing", "ContainerCreating")
_KILLED = "OOMKilled"


def containers(status: Fields) -> Iterator[Fields]:
    """Yield the statuses of a pod's containers, those that prepare it first."""
    yield from status.each_flat("initContainerStatuses")
    yield from status.each_flat("containerStatuses")


def main_state(status: Fields, names: Sequence[str]) -> Fields:
    """Return the state, with its times, of the container that runs the step; empty = none ran."""
    for container in containers(status):
        if container.get("name") in names:
            state = container.flat("state")
            for kind in ("terminated", "running"):
                if state.get(kind) is not None:
                    return state.flat(kind)
    return Fields({}, status.place)


def image(spec: Fields, names: Sequence[str]) -> str:
    """Return the image of the container that runs the step, or "" if it is unknown or too long."""
    for container in spec.each_flat("containers"):
        if container.get("name") in names:
            reference = text_of(container, "image", MAX_IMAGE_CHARACTERS + 1)
            return intern(reference) if len(reference) <= MAX_IMAGE_CHARACTERS else ""
    return ""


def waiting_reason(states: Iterable[Fields]) -> str:
    """Return the first reason that is not a usual one of a starting pod, else the first one."""
    reasons = [text_of(state.flat("waiting"), "reason") for state in states if state.get("waiting")]
    telling = [reason for reason in reasons if reason not in _STARTING]
    return intern((telling or reasons or [""])[0])


def killed_bytes(spec: Fields, status: Fields, names: Sequence[str]) -> int | None:
    """Return the memory limit of a step's container that was killed for exceeding it.

    A container without a limit was killed because its node had no memory left, which tells nothing
    about the step.

    Args:
        spec: spec of the pod.
        status: status of the pod.
        names: names of the containers that run steps.

    Returns:
        Bytes; None = no container was killed for memory, or the killed one had no limit.

    Raises:
        InputError: the limit is malformed.
    """
    for container in status.each_flat("containerStatuses"):
        name = container.get("name")
        if name in names and _was_killed(container):
            return _memory_limit(spec, container, name)
    return None


def _was_killed(container: Fields) -> bool:
    # The end of a container is in `state`, or in `lastState` once it has been restarted.
    ends = (container.flat(state).flat("terminated") for state in ("state", "lastState"))
    return any(end.get("reason") == _KILLED for end in ends)


def _memory_limit(spec: Fields, container: Fields, name: object) -> int | None:
    """Return the memory limit in force, else the one in the pod's spec; None = there is none."""
    stated = [each for each in spec.each_flat("containers") if each.get("name") == name]
    for each in (container, *stated):
        limit = each.flat("resources").stored_resources("limits").get("memory")
        if limit:
            return limit
    return None
