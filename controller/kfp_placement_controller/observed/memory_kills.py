"""Memory limits of steps that were killed for memory: such a step needs more than its limit.

A module of its own because `pods`, its importer, is the longest module of the room already.
"""

from collections.abc import Collection

from kfp_placement_engine.readers.text.fields import Fields

_KILLED = "OOMKilled"


def killed_bytes(spec: Fields, status: Fields, names: Collection[str]) -> int | None:
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
            return _limit(spec, container, name)
    return None


def _was_killed(container: Fields) -> bool:
    # The end of a container is in `state`, or in `lastState` once it has been restarted.
    ends = (container.flat(state).flat("terminated") for state in ("state", "lastState"))
    return any(end.get("reason") == _KILLED for end in ends)


def _limit(spec: Fields, container: Fields, name: object) -> int | None:
    """Return the memory limit in force, else the one in the pod's spec; None = there is none."""
    stated = [each for each in spec.each_flat("containers") if each.get("name") == name]
    for each in (container, *stated):
        limit = each.flat("resources").resources("limits").get("memory")
        if limit:
            return limit
    return None
