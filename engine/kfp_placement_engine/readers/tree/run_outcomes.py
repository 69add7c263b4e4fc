"""What is known of a run that goes on: which pod is for what, and what happened to the steps.

The same nouns, whichever engine runs the workflow.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from kfp_placement_engine.model.step_state import StepState

_INDEX = re.compile(r"\[(?:[0-9]+|\*)\]")


class PodRole(StrEnum):
    """What a pod does for its step or group."""

    DRIVER = "driver"
    EXECUTOR = "executor"
    OTHER = "other"
    """An importer, or what KFP's driver does itself."""


@dataclass(frozen=True)
class PodIdentity:
    """What a pod is.

    Attributes:
        name: the step or group, as in the run graph; the root group is "". With `[*]` where the
            graph has fewer iterations: the step or group as a whole.
        role: what the pod does for it.
        is_group: it belongs to a group (a driver of a DAG, loop or iteration).
        iteration: loop indexes, outermost first.
        attempt: 0 for the first pod, higher for retries.
    """

    name: str
    role: PodRole
    is_group: bool = False
    iteration: tuple[int, ...] = ()
    attempt: int = 0


class RunIndex(Protocol):
    """Finds what the pods of one run are for."""

    def identify(self, path: str, /) -> PodIdentity | None:
        """What a pod is; None = not a pod of this run.

        Args:
            path: of the pod within the run, as whatever makes its pods writes it.
        """
        ...


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What the run's object says of one step.

    Attributes:
        state: `succeeded`, `failed`, `cached`, `skipped` or `running`; `pending` = not begun.
        attempts: pods made for it so far.
        started_at, finished_at: of its last pod; None = not said.
        host: node its last pod ran on, or "".
        message: why it waits or failed, or "".
    """

    state: StepState
    attempts: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    host: str = ""
    message: str = ""


@dataclass(frozen=True)
class RunOutcome:
    """What a run's object says of its steps.

    Attributes:
        steps: by step name; those that it does not mention are not in it.
        widths: iterations of loops, by the loop's name, where they are known by now.
        seen: iterations that have begun of the other loops: there may come more.
    """

    steps: Mapping[str, StepOutcome] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)


def loop_indexes(name: str, iteration: tuple[int, ...]) -> list[tuple[str, int]]:
    """The loops around a step and the step's index in each: `("a", 0)` of `a[0].b.c`.

    Args:
        name: the step's; with `[*]` where the graph has fewer iterations.
        iteration: its loop indexes, outermost first.
    """
    indexes: list[tuple[str, int]] = []
    loop = ""
    for part, index in zip(_INDEX.split(name), iteration, strict=False):
        loop += part
        indexes.append((loop, index))
        loop += f"[{index}]"
    return indexes
