"""Pods and outcomes of a run that goes on, in nouns that do not depend on the workflow engine."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from kfp_placement_engine.model.step_state import StepState

_INDEX = re.compile(r"\[(?:[0-9]+|\*)\]")


class PodRole(StrEnum):
    """Role of a pod for its step or group."""

    DRIVER = "driver"
    EXECUTOR = "executor"
    OTHER = "other"
    """Pod of an importer, or of a step that KFP's driver does itself."""


@dataclass(frozen=True)
class PodIdentity:
    """Identity of a pod: its step or group, and its role there.

    Attributes:
        name: name of the step or group in the run graph, "" for the root group. With `[*]`, where
            the graph has fewer iterations, it is that of the step or group as a whole.
        role: role of the pod for the step or group.
        is_group: whether it belongs to a group, as drivers of DAGs, loops and iterations do.
        iteration: loop indexes, outermost first.
        attempt: number of the attempt: 0 for the first pod, higher for
            retries.
    """

    name: str
    role: PodRole
    is_group: bool
    iteration: tuple[int, ...]
    attempt: int


class RunIndex(Protocol):
    """Index of the pods of one run."""

    def identify(self, path: str, /) -> PodIdentity | None:
        """Return the identity of a pod, or None for a pod of another run.

        Args:
            path: path of the pod within the run, in the form of the engine that makes the pods.
        """
        ...


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """Outcome of one step, as the run's object reports it.

    Attributes:
        state: `succeeded`, `failed`, `cached`, `skipped` or `running`; `pending` = not begun.
        attempts: number of pods made for the step so far.
        started_at, finished_at: times of its last pod; None = not reported.
        host: name of the node of its last pod; "" = none.
        message: reason for its waiting or failure; "" = none.
    """

    state: StepState
    attempts: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    host: str = ""
    message: str = ""


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of a run, as its object reports it.

    Attributes:
        steps: outcomes by step name, without steps that the object does not mention.
        widths: numbers of iterations by the loop's name, where they are known by now.
        seen: numbers of iterations that have begun of the other loops, which may get more.
        problem: reason why the outcomes in the object cannot be read; "" = they can.
    """

    steps: Mapping[str, StepOutcome] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""


def loop_indexes(name: str, iteration: tuple[int, ...]) -> list[tuple[str, int]]:
    """Return the loops around a step and the step's index in each: `("a", 0)` for `a[0].b.c`.

    Args:
        name: name of the step, with `[*]` where the graph has fewer iterations.
        iteration: loop indexes of the step, outermost first.
    """
    indexes: list[tuple[str, int]] = []
    loop = ""
    for part, index in zip(_INDEX.split(name), iteration, strict=False):
        loop += part
        indexes.append((loop, index))
        loop += f"[{index}]"
    return indexes
