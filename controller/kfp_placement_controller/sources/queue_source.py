"""Runs as their queue sees them, and the patches that let one wait, begin, pause and go on.

All runs of a source, with or without our mark: a queue knows nothing of their steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from kfp_placement_controller.sources.source import RunEnd, RunOwner
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.kinds import Kind

JsonPatch = dict[str, Any]
"""A merge patch; it names the version of the object that it was decided by."""

Operations = list[dict[str, Any]]
"""A JSON patch (RFC 6902), as admission answers with."""


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """How far a run is.

    Attributes:
        key: namespace and name.
        owner: the object that it is.
        version: of the object; a write names it.
        submitted_at: when the object was created.
        is_held: it waits for its queue, and the engine does not look at it.
        held_message: what it says of that; "" = nothing yet, or something else.
        is_suspended: it makes no new pods.
        preempted_for: its queue has suspended it: the uid of the run that it makes room for, or a
            word; "" = its queue has not.
        is_terminated: somebody has asked for its end.
        has_begun: the engine has worked on it; with `is_held`, it is tried again after its end.
            What another engine has done does not count.
        end: how it has ended; None = it goes on.
        display_name: what people call it; "" = by its key.
    """

    key: RunKey
    owner: RunOwner
    version: str
    submitted_at: datetime
    is_held: bool = False
    held_message: str = ""
    is_suspended: bool = False
    preempted_for: str = ""
    is_terminated: bool = False
    has_begun: bool = False
    end: RunEnd | None = None
    display_name: str = ""

    @property
    def is_preempted(self) -> bool:
        """Whether it was suspended by its queue, and may have pods that end."""
        return self.is_suspended and bool(self.preempted_for) and not self.is_held

    @property
    def is_active(self) -> bool:
        """Whether it may have pods now, or soon."""
        return not self.is_held and self.end is None


class QueueSource(Protocol):
    """A source whose runs can wait in a queue."""

    @property
    def kind(self) -> Kind:
        """Of its objects."""
        ...

    @property
    def waiting_selectors(self) -> Sequence[str]:
        """Select the objects of runs that are held or preempted, by their labels."""
        ...

    def observe_queued(self, raw: Mapping[str, Any]) -> QueuedRun:
        """Read one of its objects.

        Raises:
            InputError: it has no name, no uid or no time of creation.
        """
        ...

    def hold_operations(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Operations:
        """What lets one of its objects wait while it is admitted; empty = it does not wait.

        Args:
            new: the object as it would be stored.
            old: as it is stored; None = it is being created.

        Raises:
            InputError: one of them is malformed.
        """
        ...

    def held_patch(self, run: QueuedRun, message: str) -> JsonPatch:
        """Let a run that is held say so, to people and to KFP."""
        ...

    def release_patch(self, run: QueuedRun) -> JsonPatch:
        """Let a held run begin; one that was terminated ends without a pod."""
        ...

    def suspend_patch(self, run: QueuedRun, preempted_for: str) -> JsonPatch:
        """Let a run make no new pods; those that it has end as usual.

        Args:
            run: it goes on.
            preempted_for: noted in it: what it makes room for.
        """
        ...

    def resume_patch(self, run: QueuedRun) -> JsonPatch:
        """Let a suspended run make pods again."""
        ...
