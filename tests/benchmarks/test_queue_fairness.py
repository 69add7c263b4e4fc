"""Days of several namespaces: what must hold at every moment, and what is measured."""

from dataclasses import replace

import pytest

from benchmarks.queue import command
from benchmarks.queue_day.fair_queue import FairQueues
from benchmarks.queue_day.nodes import Cluster
from benchmarks.queue_day.runs import Amounts, Run, Step
from benchmarks.queue_day.simulation import simulate
from benchmarks.queue_day.tenants import LARGE_NODES, Attack, TenantRun, draw_tenants
from benchmarks.queue_fairness import FairDay, Shares, Sharing, Spread, fairness_targets

NODES = (Amounts(8, 32),)


def a_run(tenant, at, *stages, priority=0):
    """A run of these stages, each of one step: CPU and seconds."""
    steps = tuple((Step(Amounts(cpu, 1), seconds, seconds),) for cpu, seconds in stages)
    return TenantRun(Run(at, steps), tenant, priority)


def day_of(*runs, weights=(1.0, 1.0)):
    queues = FairQueues(runs, NODES, weights)
    return queues, simulate([each.run for each in runs], queues, nodes=NODES, tick_seconds=60)


def test_a_stopped_run_makes_no_pods_until_it_goes_on():
    borrows = [a_run(0, 0, (4, 100), (4, 100)) for _ in range(4)]
    queues, outcome = day_of(*borrows, a_run(1, 50, (8, 500)), a_run(1, 51, (8, 500)))
    assert queues.stops == 2
    assert outcome.unfinished == 0
    assert max(outcome.completion_seconds[n] for n in range(4)) > 500


def test_a_run_that_pauses_gives_its_room_to_another_namespace():
    pauses = TenantRun(
        Run(0, ((Step(Amounts(0, 0), 9000, 9000),), (Step(Amounts(8, 1), 60, 60),))), 0
    )
    others = [a_run(1, 10, (8, 60)) for _ in range(3)]
    queues, outcome = day_of(*(3 * [pauses]), *others, weights=(3.0, 1.0))
    assert outcome.unfinished == 0
    waits = [queues.waited_seconds[n] for n in range(3, 6)]
    assert 590 <= min(waits) <= max(waits) < 900


@pytest.mark.parametrize("attack", [Attack.NONE, Attack.SIZE])
def test_all_runs_end_and_no_node_has_more_than_it_has_room_for(attack):
    runs = [each for each in draw_tenants(0, attack) if each.run.submitted_seconds < 3 * 3600]

    def observe(cluster: Cluster) -> None:
        assert all(left >= 0 for free in cluster.free for left in free)

    queues = FairQueues(runs, LARGE_NODES, [1.0, 1.0, 1.0])
    outcome = simulate(
        [each.run for each in runs], queues, observe=observe, nodes=LARGE_NODES, tick_seconds=300
    )
    assert outcome.unfinished == 0


def test_the_others_submit_the_same_whatever_the_first_does():
    days = [[each for each in draw_tenants(3, attack) if each.tenant] for attack in Attack]
    assert all(day == days[0] for day in days)


def flat(seconds):
    return Spread(seconds, seconds, seconds, seconds)


HONEST = FairDay(Attack.NONE, Sharing.QUEUES, 10, flat(60.0), flat(1000.0), 1000.0, 0, 0)
UNHARMED = [replace(HONEST, sharing=sharing) for sharing in Sharing]
SHARES = Shares((1.0, 2.0, 1.0), (0.25, 0.5, 0.25), 0.01)


@pytest.mark.parametrize(
    ("waits", "took", "met"),
    [(78.0, 1200.0, [True, True]), (89.0, 1201.0, [False, False]), (0.0, 900.0, [True, True])],
)
def test_aims_are_missed_where_others_wait_or_take_much_longer(waits, took, met):
    attacked = replace(HONEST, attack=Attack.SIZE, waits=flat(waits), completions=flat(took))
    targets = fairness_targets([*UNHARMED, attacked], SHARES)
    assert [each.is_met for each in targets] == [True, True, *met]


def test_a_spread_has_the_largest_and_the_usual_times():
    spread = Spread.of([60.0 * minutes for minutes in range(200, 0, -1)])
    assert spread.minutes(0) == "101 / 100 / 199 / 200"


def test_the_command_writes_the_page(tmp_path, capsys, monkeypatch):
    days = [*UNHARMED, replace(HONEST, attack=Attack.SIZE)]
    monkeypatch.setattr("benchmarks.queue.measure_fair_days", lambda seeds, progress: days)
    monkeypatch.setattr("benchmarks.queue.measure_shares", lambda seeds: SHARES)
    path = tmp_path / "queue.md"
    assert command(["--namespaces", "--output", str(path)]) == 0
    page = path.read_text("utf-8")
    assert page.startswith("# Queues of several namespaces")
    assert "25.0%, 50.0%, 25.0% of the GPU time" in page
    assert "| 1.00 / 1.00 / 1.00 / 1.00 |" in page
    assert "MISSED" not in capsys.readouterr().out
