"""What a step of a run should ask for instead, by the memory that past runs used."""

from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_engine.contract.memory_texts import (
    advised_bytes,
    asks_too_little,
    memory_advice,
)
from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import MemoryHistory
from kfp_placement_engine.model.memory import MemoryForecast
from kfp_placement_engine.model.run_graph import Step


class MemoryProblem(StrEnum):
    """What is wrong with a request of memory."""

    KILLED = "killed"
    """The last run was killed for memory."""

    SMALL = "small"
    """Less than the step was seen to use."""

    LARGE = "large"
    """Far more than the step needs."""


@dataclass(frozen=True)
class MemoryAdvice:
    """Advice on the request of a step; nobody follows it but its author.

    Attributes:
        text: in words.
        amount_bytes: what to ask for.
        problem: why it should ask for something else.
    """

    text: str
    amount_bytes: int
    problem: MemoryProblem


def advice_on(pipeline: str, step: Step, memory: MemoryHistory) -> MemoryAdvice | None:
    """What a step should ask for; None = it may as well ask for what it does.

    Args:
        pipeline: name of its pipeline.
        step: the step; a request is one for all iterations of a loop.
        memory: what past runs of its namespace used.
    """
    found = memory.predict(step_identity(pipeline, step))
    asked = step.requests.get("memory")
    if found is None or (amount := advised_bytes(found, asked)) is None:
        return None
    return MemoryAdvice(memory_advice(found, asked), amount, _problem(found, asked))


def _problem(found: MemoryForecast, asked_bytes: float | None) -> MemoryProblem:
    if found.killed_bytes is not None:
        return MemoryProblem.KILLED
    is_small = asks_too_little(found, asked_bytes)
    return MemoryProblem.SMALL if is_small else MemoryProblem.LARGE
