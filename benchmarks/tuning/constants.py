"""The constants of the search: values to try around the shipped ones, and operators to switch off.

One constant at a time is changed, the others stay as shipped. A field of `GeneticParams` is either
here or in `NOT_TUNED`; a test says which one is missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from benchmarks.command import BenchmarkError
from benchmarks.tuning.instances import KFP_ORDERED, KFP_READY, KINDS, WORKFLOWS
from kfp_placement_engine import GeneticParams

Value = int | float

ALL_KINDS = tuple(KINDS)
ORDERED_KINDS = (KFP_ORDERED, WORKFLOWS)


@dataclass(frozen=True)
class Constant:
    """A constant that is tuned.

    Attributes:
        name: field of `GeneticParams`.
        values: values to try, perhaps with the shipped one. 0 is left to the operators.
        kinds: instances whose search it changes.
    """

    name: str
    values: tuple[Value, ...]
    kinds: tuple[str, ...] = ALL_KINDS


@dataclass(frozen=True)
class Operator:
    """A part of the search that can be switched off.

    Attributes:
        name: name on the command line.
        title: name for people.
        off: fields of `GeneticParams` and the values with which the search does without it.
        kinds: instances whose search it changes.
    """

    name: str
    title: str
    off: Mapping[str, Value]
    kinds: tuple[str, ...] = ALL_KINDS


@dataclass(frozen=True)
class Setting:
    """Parameters that are compared with the shipped ones.

    Attributes:
        name: name of the constant or operator.
        value: value of the constant; None where an operator is off.
        params: all parameters.
        kinds: instances whose search differs from that of the shipped ones.
    """

    name: str
    value: Value | None
    params: GeneticParams
    kinds: tuple[str, ...]


CONSTANTS = (
    Constant("population_size", (4, 8, 16, 32, 64)),
    Constant("islands", (1, 2, 4, 8)),
    Constant("restart_after", (60, 125, 250, 500, 1000)),
    Constant("crossover_rate", (0.15, 0.3, 0.5, 0.7, 0.85)),
    Constant("window_share", (0.25, 0.5, 0.75, 1.0), ORDERED_KINDS),
    Constant("serial_share", (0.25, 0.5, 0.75, 1.0), (WORKFLOWS,)),
    Constant("moved_share", (0.25, 0.5, 0.75, 1.0), (WORKFLOWS,)),
    Constant("greedy_share", (0.05, 0.1, 0.2, 0.4, 0.8), ORDERED_KINDS),
    Constant("deadline_share", (0.25, 0.5, 0.75, 1.0), (KFP_READY,)),
    Constant("most_moves", (1, 2, 4, 6, 8)),
)

NOT_TUNED = {
    "joint_crossover_rate": "is of several runs planned together, which no kind covers",
    "variant": "names an algorithm",
    "exact_below": "says which tiny runs are not searched but tried out",
    "generations": "is of the paper's algorithm only",
    "mutation_rate": "is of the paper's algorithm only",
}
"""Fields of `GeneticParams` that are not tuned, and why."""

MOST_WHOLE = 1_000_000
"""Larger amounts are mistakes."""

OPERATORS = (
    Operator(
        "serial-decoding",
        "serial decoding with justification",
        {"serial_share": 0.0},
        (WORKFLOWS,),
    ),
    Operator("moved-steps", "other nodes in serial decoding", {"moved_share": 0.0}, (WORKFLOWS,)),
    Operator("crossover", "crossover", {"crossover_rate": 0.0}),
    Operator("window-crossover", "window crossover", {"window_share": 0.0}, ORDERED_KINDS),
    Operator("greedy-decoding", "decoding by list", {"greedy_share": 0.0}, ORDERED_KINDS),
    Operator("backfilling", "decoding by backfilling", {"greedy_share": 1.0}, ORDERED_KINDS),
    Operator("deadlines", "placing again for a deadline", {"deadline_share": 0.0}, (KFP_READY,)),
    Operator("restarts", "restarts", {"restart_after": MOST_WHOLE}),
)


def shipped_values(params: GeneticParams) -> dict[str, Value]:
    """Return the constants as shipped, in the order of the table."""
    return {each.name: getattr(params, each.name) for each in CONSTANTS}


def value_settings(
    shipped: GeneticParams,
    constants: Sequence[Constant] = CONSTANTS,
) -> list[Setting]:
    """One for every value but the shipped one.

    Raises:
        BenchmarkError: a value must be a whole number.
        PlanningError: a value makes no search.
    """
    return [
        Setting(each.name, value, _changed(shipped, {each.name: value}), each.kinds)
        for each in constants
        for value in sorted(set(each.values) - {getattr(shipped, each.name)})
    ]


def operator_settings(
    shipped: GeneticParams, operators: Sequence[Operator] = OPERATORS
) -> list[Setting]:
    """One for every operator: the search without it."""
    return [Setting(each.name, None, _changed(shipped, each.off), each.kinds) for each in operators]


def _changed(shipped: GeneticParams, values: Mapping[str, Any]) -> GeneticParams:
    for name, value in values.items():
        if isinstance(getattr(shipped, name), int):
            _check_whole(name, value)
    return replace(shipped, **values)


def _check_whole(name: str, value: Value) -> None:
    if not (isinstance(value, int) and value <= MOST_WHOLE):
        raise BenchmarkError(f"{name} = {value!r}; it must be a whole number up to {MOST_WHOLE:,}")


def not_mentioned(kind: type[GeneticParams] = GeneticParams) -> list[str]:
    """Fields that are neither tuned nor said not to be."""
    names = {each.name for each in CONSTANTS} | set(NOT_TUNED)
    return [field.name for field in fields(kind) if field.name not in names]
