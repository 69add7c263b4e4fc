"""Steps that were killed for memory: what they had then is less than what they need."""

from collections.abc import Collection

from kfp_placement_engine.readers.text.fields import Fields

_KILLED = "OOMKilled"


def killed_bytes(spec: Fields, status: Fields, names: Collection[str]) -> int | None:
    """How much memory a container of a step was allowed when it was killed for using more.

    Without a limit it was killed because its node had none left, which tells nothing of the step.

    Args:
        spec: of the pod.
        status: likewise.
        names: of the containers that run steps.

    Returns:
        Bytes; None = none was killed for that, or it had no limit.

    Raises:
        InputError: the limit is malformed.
    """
    for container in status.each_flat("containerStatuses"):
        name = container.get("name")
        if name in names and _was_killed(container):
            return _limit(spec, container, name)
    return None


def _was_killed(container: Fields) -> bool:
    # A pod that is not restarted has its end in `state`; one that is, in `lastState`.
    states = (container.flat(key) for key in ("state", "lastState"))
    ends = (state.flat("terminated") for state in states)
    return any(end.get("reason") == _KILLED for end in ends)


def _limit(spec: Fields, container: Fields, name: object) -> int | None:
    """As it is in force, else as the pod asks for it."""
    stated = [each for each in spec.each_flat("containers") if each.get("name") == name]
    for each in (container, *stated):
        limit = each.flat("resources").resources("limits").get("memory")
        if limit:
            return limit
    return None
