"""Advice on the memory requests of steps, by the memory that past runs used."""

from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_engine.contract.history.pipeline_history import step_identity
from kfp_placement_engine.history import MemoryHistory
from kfp_placement_engine.history.memory_use import MemoryForecast
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.units.quantities import format_resource

_LEAST_RUNS = 3
"""Smallest number of runs that advice rests on."""

_LEAST_SAVING = 0.2
"""Smallest saving, as a share of the request, for which a lower one is advised."""

_BELOW_LARGEST = 0.99
"""Share of the largest use up to which a request is too small."""

_MIB = 2**20
_ROUNDING_MIB = ((256, 16), (1024, 64), (4096, 256), (16384, 512))
"""Pairs in MiB: amounts up to the first are rounded up to multiples of the second."""

_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


class MemoryProblem(StrEnum):
    """A reason to change a memory request."""

    KILLED = "killed"
    """The last run was killed for memory."""

    SMALL = "small"
    """A request below the largest use of the step."""

    LARGE = "large"
    """A request far above the need of the step."""


@dataclass(frozen=True)
class MemoryAdvice:
    """Advice on the memory request of a step, which its author may follow.

    Attributes:
        problem: reason to change the request.
        amount_bytes: advised request.
        text: text such as `asks 8Gi, used at most 1.2Gi in 9 runs: 1536Mi would do`.
    """

    problem: MemoryProblem
    amount_bytes: int
    text: str


def step_advice(graph: RunGraph, step: Step, memory: MemoryHistory) -> MemoryAdvice | None:
    """Return advice on the memory request of a step in a run, or None if its request is good.

    Args:
        graph: run of the step; that of an outline is advised on the request of the last run.
        step: step to advise on; all iterations of a loop have one request.
        memory: memory that past runs of the pipeline's namespace used.
    """
    forecast = memory.predict(step_identity(graph.name, step))
    if forecast is None:
        return None
    stated_bytes = step.requests.get("memory")
    return memory_advice(forecast, forecast.asked_bytes if graph.is_outline else stated_bytes)


def memory_advice(forecast: MemoryForecast, asked_bytes: float | None) -> MemoryAdvice | None:
    """Return advice on a memory request, or None if the request is good.

    Args:
        forecast: forecast of the step's memory.
        asked_bytes: present request; None = nothing, or unknown.
    """
    if forecast.ask_bytes is None:
        return None
    largest = forecast.largest_bytes or 0.0
    amount = _rounded_up(forecast.ask_bytes)
    # KFP accepts whole numbers only.
    would_do = format_resource("memory", amount)
    if forecast.killed_bytes is not None:
        had = memory_text(forecast.killed_bytes)
        text = f"was killed for memory with {had} in its last run; ask for {would_do}"
        # An author who has raised the request since does not need the advice.
        has_changed = asked_bytes is not None and asked_bytes > forecast.killed_bytes
        return None if has_changed else MemoryAdvice(MemoryProblem.KILLED, amount, text)
    if asked_bytes is None or not largest or forecast.runs < _LEAST_RUNS:
        return None
    used = f"used at most {memory_text(largest)} in {forecast.runs} runs"
    text = f"asks {memory_text(asked_bytes)}, {used}"
    if asked_bytes <= _BELOW_LARGEST * largest:
        return MemoryAdvice(MemoryProblem.SMALL, amount, f"{text}: ask for {would_do}")
    if amount <= (1 - _LEAST_SAVING) * asked_bytes:
        return MemoryAdvice(MemoryProblem.LARGE, amount, f"{text}: {would_do} would do")
    return None


def _rounded_up(amount: float) -> int:
    """Return an amount of memory in bytes, rounded up to one that people would request."""
    mebibytes = amount / _MIB
    multiple = next((size for limit, size in _ROUNDING_MIB if mebibytes <= limit), 1024)
    return max(1, -int(-mebibytes // multiple)) * multiple * _MIB


def memory_text(amount: float) -> str:
    """Format an amount for people, to three figures: `1.2Gi`."""
    for unit in _UNITS:
        if amount < 999.5 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.3g}{unit}"
