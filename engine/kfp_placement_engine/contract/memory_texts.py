"""What steps used of the memory that they ask for, in words; the same wherever it is shown."""

from functools import partial

from kfp_placement_engine.model.memory import MemoryForecast
from kfp_placement_engine.model.quantities import format_resource

LEAST_RUNS = 3
"""From fewer runs nothing is advised."""

LEAST_SAVING = 0.2
"""What would be saved must be this share of what is asked for."""

_BELOW_LARGEST = 0.99
"""What is asked for is too little if it is at most this share of the most that was used."""

_MIB = 2**20
_STEPS = ((256, 16), (1024, 64), (4096, 256), (16384, 512))
"""Up to how many MiB an amount is written in multiples of how many."""

_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def advised_bytes(found: MemoryForecast, asked_bytes: float | None) -> int | None:
    """What a step should ask for instead, rounded up; None = nothing is advised.

    Args:
        found: what is known of it.
        asked_bytes: what it asks for now; None = nothing, or unknown.
    """
    if found.ask_bytes is None:
        return None
    # It may leave out what was seen once in fifty times; a request that people write must not.
    would_do = rounded_up(max(found.ask_bytes, found.largest_bytes or 0.0))
    if found.killed_bytes is not None:
        # Who has asked for more since has seen it.
        return would_do if asked_bytes is None or asked_bytes <= found.killed_bytes else None
    if asked_bytes is None or found.largest_bytes is None or found.runs < LEAST_RUNS:
        return None
    is_far_more = would_do <= (1 - LEAST_SAVING) * asked_bytes
    return would_do if is_far_more or asks_too_little(found, asked_bytes) else None


def asks_too_little(found: MemoryForecast, asked_bytes: float | None) -> bool:
    """Whether a step asks for less than it was seen to use; arguments as above."""
    if asked_bytes is None or found.largest_bytes is None:
        return False
    return asked_bytes <= _BELOW_LARGEST * found.largest_bytes


def memory_advice(found: MemoryForecast, asked_bytes: float | None) -> str:
    """What a step should ask for: `asks 8Gi, used at most 1.2Gi in 9 runs: 1.5Gi would do`.

    Args:
        found: what is known of it.
        asked_bytes: what it asks for now; None = nothing, or unknown.

    Returns:
        The words; "" = nothing is advised.
    """
    amount = advised_bytes(found, asked_bytes)
    if amount is None:
        return ""
    would_do = memory_text(amount)
    if found.killed_bytes is not None:
        had = memory_text(found.killed_bytes)
        return f"was killed for memory with {had} in its last run; ask for {would_do}"
    assert asked_bytes is not None  # else nothing is advised
    what = f"ask for {would_do}" if asks_too_little(found, asked_bytes) else f"{would_do} would do"
    return f"asks {memory_text(asked_bytes)}, {used_text(found)}: {what}"


def used_text(found: MemoryForecast) -> str:
    """What a step was seen to use: `used at most 1.2Gi in 9 runs`; "" = that was not measured."""
    if found.largest_bytes is None:
        return ""
    runs = "1 run" if found.runs == 1 else f"{found.runs} runs"
    return f"used at most {memory_text(found.largest_bytes)} in {runs}"


memory_quantity = partial(format_resource, "memory")
"""Return an amount as KFP takes one, in whole units: `1536Mi`."""


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
