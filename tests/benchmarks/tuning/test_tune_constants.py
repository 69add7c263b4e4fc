"""Constants that are tuned: all of them, with the values of the code, and named by the table."""

from dataclasses import asdict, make_dataclass

import pytest

from benchmarks.budget import Budget, search
from benchmarks.command import BenchmarkError
from benchmarks.processes import ROOT
from benchmarks.tuning.constants import (
    CONSTANTS,
    NOT_TUNED,
    OPERATORS,
    Constant,
    not_mentioned,
    operator_settings,
    shipped_values,
    value_settings,
)
from benchmarks.tuning.instances import FIRST_NUMBER, KINDS, problem_of
from benchmarks.tuning.report import shipped_in
from kfp_placement_engine import GeneticParams
from kfp_placement_engine.exceptions import PlanningError

PAGE = ROOT / "benchmarks" / "results" / "tune.md"
SHIPPED = GeneticParams()
WITHOUT_EFFECT = [
    (kind, setting.name, setting.params)
    for setting in (*value_settings(SHIPPED), *operator_settings(SHIPPED))
    for kind in KINDS
    if kind not in setting.kinds
]


def test_every_constant_is_tuned_or_said_not_to_be():
    assert not_mentioned() == []
    assert {each.name for each in CONSTANTS}.isdisjoint(NOT_TUNED)
    assert all(hasattr(SHIPPED, name) for name in NOT_TUNED)


def test_a_new_constant_is_missed():
    params = make_dataclass("Params", [("restarts", int, 3)], bases=(GeneticParams,), frozen=True)
    assert not_mentioned(params) == ["restarts"]


def test_every_share_that_is_tuned_can_be_switched_off():
    switched = {name for each in OPERATORS for name in each.off}
    shares = {each.name for each in CONSTANTS if each.name.endswith(("_share", "_rate"))}
    assert shares <= switched


def test_one_constant_at_a_time_is_changed():
    settings = value_settings(SHIPPED)
    for setting in settings:
        changed = {**asdict(SHIPPED), setting.name: setting.value}
        assert changed == asdict(setting.params) != asdict(SHIPPED)
    assert len({each.params for each in settings}) == len(settings)


def test_operators_are_off():
    for setting, operator in zip(operator_settings(SHIPPED), OPERATORS, strict=True):
        assert {**asdict(SHIPPED), **operator.off} == asdict(setting.params) != asdict(SHIPPED)


def test_kinds_that_a_setting_changes_nothing_in_are_not_measured():
    """Whatever is left out would have given the same plan."""
    assert WITHOUT_EFFECT
    plans = {}
    for kind, name, params in WITHOUT_EFFECT:
        if kind not in plans:
            plans[kind] = _plan(kind, SHIPPED)
        assert _plan(kind, params) == plans[kind], (kind, name)


def test_values_must_be_of_the_constants_type():
    with pytest.raises(BenchmarkError, match=r"islands = 1\.5; it must be a whole number"):
        value_settings(SHIPPED, [Constant("islands", (1.5,))])
    with pytest.raises(PlanningError, match=r"crossover_rate = 2; it must lie between 0 and 1"):
        value_settings(SHIPPED, [Constant("crossover_rate", (2,))])


@pytest.mark.skipif(not PAGE.is_file(), reason="make bench-tune has not made the table yet")
def test_the_table_names_the_constants_in_the_code():
    """After a constant is changed the table must be made again."""
    text = PAGE.read_text("utf-8")
    wanted = {name: str(value) for name, value in shipped_values(SHIPPED).items()}
    assert shipped_in(text) == wanted, "make bench-tune makes the table again"
    for name, reason in NOT_TUNED.items():
        assert f"| {name} | {reason} |" in text
    for operator in OPERATORS:
        assert f"| {operator.title} |" in text


def _plan(kind: str, params: GeneticParams) -> tuple[bytes, bytes]:
    result, _ = search(problem_of(kind, FIRST_NUMBER), Budget(schedules=200), 0, params)
    return result.placement.gene_nodes.tobytes(), result.placement.priority.tobytes()
