"""What steps should ask for by the memory that past runs used; in words, the same everywhere."""

from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import MemoryHistory
from kfp_placement_engine.model.memory import MemoryForecast
from kfp_placement_engine.model.run_graph import Step
from kfp_placement_engine.units.quantities import format_resource

_LEAST_RUNS = 3
"""From fewer runs nothing is advised."""

_LEAST_SAVING = 0.2
"""What would be saved must be this share of what is asked for."""

_BELOW_LARGEST = 0.99
"""What is asked for is too little if it is at most this share of the most that was used."""

_MIB = 2**20
_STEPS = ((256, 16), (1024, 64), (4096, 256), (16384, 512))
"""Up to how many MiB an amount is written in multiples of how many."""

_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


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
        problem: why it should ask for something else.
        amount_bytes: what to ask for.
        text: in words: `asks 8Gi, used at most 1.2Gi in 9 runs: 1536Mi would do`.
    """

    problem: MemoryProblem
    amount_bytes: int
    text: str


def step_advice(pipeline: str, step: Step, memory: MemoryHistory) -> MemoryAdvice | None:
    """What a step of a run should ask for; None = it may as well ask for what it does.

    Args:
        pipeline: name of its pipeline.
        step: the step; a request is one for all iterations of a loop.
        memory: what past runs of its namespace used.
    """
    found = memory.predict(step_identity(pipeline, step))
    return None if found is None else memory_advice(found, step.requests.get("memory"))


def memory_advice(found: MemoryForecast, asked_bytes: float | None) -> MemoryAdvice | None:
    """What a step should ask for instead; None = it may as well ask for what it does.

    Args:
        found: what is known of it.
        asked_bytes: what it asks for now; None = nothing, or unknown.
    """
    if found.ask_bytes is None:
        return None
    largest = found.largest_bytes or 0.0
    amount = rounded_up(found.ask_bytes)
    # As KFP takes it, which knows whole numbers alone.
    would_do = format_resource("memory", amount)
    if found.killed_bytes is not None:
        had = memory_text(found.killed_bytes)
        text = f"was killed for memory with {had} in its last run; ask for {would_do}"
        # Who has asked for more since has seen it.
        has_changed = asked_bytes is not None and asked_bytes > found.killed_bytes
        return None if has_changed else MemoryAdvice(MemoryProblem.KILLED, amount, text)
    if asked_bytes is None or not largest or found.runs < _LEAST_RUNS:
        return None
    used = f"used at most {memory_text(largest)} in {found.runs} runs"
    text = f"asks {memory_text(asked_bytes)}, {used}"
    if asked_bytes <= _BELOW_LARGEST * largest:
        return MemoryAdvice(MemoryProblem.SMALL, amount, f"{text}: ask for {would_do}")
    if amount <= (1 - _LEAST_SAVING) * asked_bytes:
        return MemoryAdvice(MemoryProblem.LARGE, amount, f"{text}: {would_do} would do")
    return None


def rounded_up(amount: float) -> int:
    """An amount of memory as people ask for one, no less than it is."""
    mebibytes = amount / _MIB
    step = next((size for limit, size in _STEPS if mebibytes <= limit), 1024)
    return max(1, -int(-mebibytes // step)) * step * _MIB


def memory_text(amount: float) -> str:
    """An amount for people, to three figures: `1.2Gi`."""
    for unit in _UNITS:
        if amount < 999.5 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.3g}{unit}"
