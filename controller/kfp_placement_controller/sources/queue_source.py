"""Runs as a queue sees them, and the patches that make one wait, start, pause and continue.

A queue admits every run of a source, with or without our mark: it does not read their steps.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from kfp_placement_controller.sources.source import RunEnd, RunOwner
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.kinds import JsonObject, Kind

MergePatch = JsonObject
"""A merge patch (RFC 7386) that names the version of the object on which it was decided."""

JsonPatch = list[JsonObject]
"""Operations on an object (RFC 6902), the form of an admission webhook's answer."""


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """Progress of a run, as far as a queue needs it.

    Attributes:
        key: namespace and name.
        owner: object of the run in the cluster.
        version: resource version of the object; each write names it.
        submitted_at: creation time of the object.
        is_held: whether the run waits for its queue; the workflow engine ignores it until then.
        held_message: text in the object that says so; "" = the object has no such text yet.
        is_suspended: whether the workflow engine makes no new pods for the run.
        preempted_for: reason why its queue suspended the run, by its object: uid of the run that
            gets its room, or a word; "" = it says none. Others may have written it.
        is_terminated: whether the run, if it goes on, ends without making a pod: somebody has asked
            for its end.
        has_begun: whether the workflow engine has worked on the run. A run that has begun and is
            held is a retry. The work of another engine does not count.
        end: outcome of the run; None = it has not ended.
        display_name: name that people gave the run; "" = they gave none.
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
        """Return whether the object says that its queue has suspended the run."""
        return self.is_suspended and bool(self.preempted_for) and not self.is_held

    @property
    def is_active(self) -> bool:
        """Return whether the run may have pods now or soon."""
        return not self.is_held and self.end is None


class QueueSource(Protocol):
    """A source whose runs can wait in a queue."""

    @property
    def kind(self) -> Kind:
        """Kind of the objects that are its runs."""
        ...

    @property
    def waiting_selectors(self) -> Sequence[str]:
        """Label selectors of the objects whose runs are held or preempted."""
        ...

    def observe_queued(self, raw: JsonObject) -> QueuedRun:
        """Read the object of a run, with or without our mark.

        Raises:
            InputError: it has no name, no uid or no time of creation.
        """
        ...

    def hold_operations(
        self, new: JsonObject, old: JsonObject | None, exempt: Container[str] = ()
    ) -> JsonPatch:
        """Return the changes that make a run wait, for admission; empty = the run does not wait.

        Args:
            new: the object as it would be stored.
            old: the object as it is stored; None = it is being created.
            exempt: names of workflow engines whose runs do not wait.

        Raises:
            InputError: one of them is malformed.
        """
        ...

    def held_patch(self, run: QueuedRun, message: str) -> MergePatch:
        """Return the patch that writes into a held run, for people and for KFP, that it waits."""
        ...

    def release_patch(self, run: QueuedRun) -> MergePatch:
        """Return the patch that starts a held run; a terminated run then ends without a pod."""
        ...

    def suspend_patch(self, run: QueuedRun, preempted_for: str) -> MergePatch:
        """Return the patch that stops new pods of a run; its existing pods end as usual.

        Args:
            run: a run that has not ended.
            preempted_for: reason for the pause, which the patch notes in the run.
        """
        ...

    def resume_patch(self, run: QueuedRun) -> MergePatch:
        """Return the patch that lets a suspended run make pods again."""
        ...
