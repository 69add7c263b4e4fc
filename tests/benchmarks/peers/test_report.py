"""The table of the peers: which figures it has, and what it says of them."""

from dataclasses import replace

import pytest

from benchmarks.budget import Budget
from benchmarks.outcomes import References
from benchmarks.peers import PEERS
from benchmarks.peers.report import peer_parts
from benchmarks.tables import Table
from tests.benchmarks.test_measuring import an_outcome

SHORT, LONG = Budget(schedules=100), Budget(schedules=900)


def an_outcome_of(case: str, budget: Budget, makespan: float, peers: dict[str, float], **changed):
    references = References({"heft": 12.0, "kube-default": 15.0}, {"area": 10.0}, peers)
    outcome = an_outcome(case=case, budget=budget, makespan=makespan, references=references)
    return replace(outcome, **changed)


def the_table(outcomes) -> dict[str, list[str]]:
    *_, table = peer_parts(outcomes, tuple(PEERS))
    assert isinstance(table, Table)
    return {row[0]: list(row[1:]) for row in table.rows}


def test_cases_bound_optimum_and_gain_of_each_budget():
    """Geometric means against the bound: 20 and 80% above are 47% above."""
    outcomes = [
        an_outcome_of(case, budget, makespan, {"wow": seconds}, optimum=10.0)
        for case, seconds in (("a", 12.0), ("b", 18.0))
        for budget, makespan in ((SHORT, 12.0), (LONG, 10.8))
    ]
    rows = the_table(outcomes)
    assert rows["wow"] == ["2", "46.97", "50.00", "18.35", "26.52"]
    assert rows["heft"] == ["2", "20.00", "20.00", "0.00", "10.00"]


def test_cases_without_the_peers_do_not_count():
    outcomes = [
        an_outcome_of("a", SHORT, 12.0, {"peft": 12.0}, optimum=None),
        an_outcome_of("with drivers", SHORT, 12.0, {}, optimum=None),
    ]
    assert the_table(outcomes)["peft"] == ["1", "20.00", "-", "0.00"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("wow", "copies nothing ahead of time"), ("peft", "HEFT"), ("cws-rank-fair", "skipped")],
)
def test_what_is_simplified_is_said(name, words):
    about, _ = peer_parts([an_outcome_of("a", SHORT, 12.0, {name: 12.0})], tuple(PEERS))
    assert not isinstance(about, Table)
    assert words in " ".join(about)


def test_runs_without_peers_are_named():
    with_peers = an_outcome_of("a", SHORT, 12.0, {"wow": 12.0})
    without = an_outcome_of("with drivers", SHORT, 12.0, {})
    about, _ = peer_parts([with_peers, without], tuple(PEERS))
    assert not isinstance(about, Table)
    assert about[-1].startswith("Runs with driver pods, volumes or limited loops have no peers")
    assert peer_parts([without], tuple(PEERS)) == [[about[-1]]]


def test_no_table_unless_asked_for():
    assert peer_parts([an_outcome_of("a", SHORT, 12.0, {})], ()) == []
