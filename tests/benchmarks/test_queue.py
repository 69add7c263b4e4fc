"""The day of runs: what is drawn, what must hold at every moment of it, and the page."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.queue import command
from benchmarks.queue_day.admission import GPU, Queue, demand_of, moment, plan_of
from benchmarks.queue_day.nodes import NODES, Cluster
from benchmarks.queue_day.runs import DAY_SECONDS, WORKER, Amounts, Run, Step, draw_day
from benchmarks.queue_day.simulation import DRIVER_SECONDS, AtOnce, PodOrder, simulate
from benchmarks.queue_day.start_ranges import RangedQueue
from benchmarks.queue_report import parts_of, targets_of
from benchmarks.queue_series import (
    ALONE,
    QUEUED,
    STRICT,
    WHOLE,
    WITH_GANGS,
    Day,
    Ranges,
    Series,
    measure,
    measure_ranges,
)
from benchmarks.tables import Table
from kfp_placement_engine.model.demand import PodGroup

LAUNCH = Step(Amounts(1, 2), planned_seconds=100.0, actual_seconds=100.0, workers=6)
TRIAL = Step(Amounts(4, 12, 1), planned_seconds=60.0, actual_seconds=90.0)
GANG = Run(10.0, ((LAUNCH,),))
# Both gangs wait for GPUs, of which the eight of the first run become free one by one.
TWO_GANGS = [Run(0.0, (8 * (TRIAL,),)), GANG, GANG]


def days():
    """A short day of each way, with what starts its runs."""
    for gangs in (False, True):
        runs = [run for run in draw_day(4, 1, gangs=gangs) if run.submitted_seconds < 14 * 3600]
        yield runs, AtOnce(), PodOrder(whole_gangs=gangs, any_order=gangs)
        for overcommit in (1.0, 2.0):
            yield runs, Queue(runs, overcommit), PodOrder(any_order=gangs, seed=2)


def test_no_node_ever_has_more_than_it_has_room_for():
    def observe(cluster):
        for node, free in zip(NODES, cluster.free, strict=True):
            assert all(0 <= left <= has for left, has in zip(free, node, strict=True))

    for runs, gatekeeper, order in days():
        simulate(runs, gatekeeper, order, observe)


def test_every_run_ends_and_all_room_is_given_back():
    for runs, gatekeeper, order in days():
        clusters: list[Cluster] = []
        outcome = simulate(runs, gatekeeper, order, clusters.append)
        assert (outcome.unfinished, len(outcome.completion_seconds)) == (0, len(runs))
        assert [tuple(free) for free in clusters[-1].free] == list(NODES)


def test_every_step_works_once_for_its_time_with_all_its_pods():
    for runs, gatekeeper, order in days():
        works = simulate(runs, gatekeeper, order).works
        assert sorted((work.run, work.stage, work.index) for work in works) == [
            (number, stage, index)
            for number, run in enumerate(runs)
            for stage, steps in enumerate(run.stages)
            for index in range(len(steps))
        ]
        for work in works:
            assert work.step == runs[work.run].stages[work.stage][work.index]
            assert len(work.placed) == 1 + work.step.workers
            assert work.ended == pytest.approx(work.started + work.step.actual_seconds)


def test_a_stage_begins_a_driver_s_time_after_the_one_before_it():
    for runs, gatekeeper, order in days():
        works = simulate(runs, gatekeeper, order).works
        for number, run in enumerate(runs):
            stages = [
                [work for work in works if (work.run, work.stage) == (number, stage)]
                for stage in range(len(run.stages))
            ]
            assert stages[0][0].created >= run.submitted_seconds + DRIVER_SECONDS
            for before, after in pairwise(stages):
                ended = max(work.ended for work in before)
                assert {work.created for work in after} == {ended + DRIVER_SECONDS}


def test_the_same_seed_gives_the_same_day():
    assert draw_day(4, 7, gangs=True) == draw_day(4, 7, gangs=True) != draw_day(4, 8, gangs=True)
    assert measure(3, QUEUED, gangs=True, days=1) == measure(3, QUEUED, gangs=True, days=1)


def test_without_gangs_only_the_workers_are_missing():
    runs = draw_day(4, 3, gangs=True)
    workers = [step.workers for run in runs for stage in run.stages for step in stage]
    assert set(workers) == {0, 3, 4, 6}
    assert draw_day(4, 3, gangs=False) == [
        replace(
            run,
            stages=tuple(tuple(replace(step, workers=0) for step in stage) for stage in run.stages),
        )
        for run in runs
    ]


def test_runs_arrive_over_the_day_most_of_them_in_the_afternoon():
    arrivals = [
        run.submitted_seconds for seed in range(10) for run in draw_day(4, seed, gangs=True)
    ]
    assert len(arrivals) == pytest.approx(4 * 24 * 10, rel=0.1)
    assert 0 <= min(arrivals) <= max(arrivals) < DAY_SECONDS
    afternoon = sum(12 * 3600 < seconds < 18 * 3600 for seconds in arrivals)
    night = sum(seconds < 6 * 3600 for seconds in arrivals)
    assert afternoon > 3 * night


def test_large_runs_are_those_that_use_many_gpus_at_once():
    one_after_another = Run(0.0, ((TRIAL,), (TRIAL,)))
    assert [run.most_gpus for run in (GANG, TWO_GANGS[0], one_after_another)] == [6, 8, 1]
    day = Day(0, 10, 0, 100.0, 1.0, large_runs=1, large_completion_seconds=60.0)
    other = replace(day, seed=1, large_runs=3, large_completion_seconds=100.0)
    assert Series(True, 4, ALONE, (day, other)).large_completion_seconds == 90.0


def test_pods_without_gpus_take_nodes_with_gpus_last():
    cluster = Cluster()
    nodes = [cluster.place(Amounts(16, 64)) for _ in range(7)]
    assert nodes == [0, 1, 2, 3, 4, 5, 4]
    assert cluster.place(Amounts(1, 1, 1)) == 5


def test_gangs_can_block_each_other_and_queued_ones_do_not():
    """Six workers each on eight GPUs."""
    stuck = [simulate(TWO_GANGS, AtOnce(), PodOrder(any_order=True, seed=n)) for n in range(5)]
    assert 2 in [outcome.unfinished for outcome in stuck]
    for seed in range(5):
        order = PodOrder(any_order=True, seed=seed)
        assert simulate(TWO_GANGS, Queue(TWO_GANGS, 2.0), order).unfinished == 0
        whole = replace(order, whole_gangs=True)
        assert simulate(TWO_GANGS, AtOnce(), whole).unfinished == 0


def test_a_demand_is_the_peak_of_the_plan_and_not_the_sum():
    """Twelve trials on eight GPUs are never all at once."""
    run = Run(500.0, ((replace(TRIAL, requests=Amounts(8, 8)),), 12 * (TRIAL,)))
    steps = plan_of(run)
    assert demand_of(steps).peak == {"cpu": 32000, "memory": 96 * 2**30, GPU: 8, "pods": 8}
    assert max(step.end_seconds for step in steps) == 2 * DRIVER_SECONDS + 3 * 60.0
    assert demand_of(steps[:1]).peak == {"cpu": 8000, "memory": 8 * 2**30, "pods": 1}


def test_a_gang_s_demand_names_the_pods_that_run_together():
    demand = demand_of(plan_of(GANG))
    assert demand.peak == {"cpu": 25000, "memory": 98 * 2**30, GPU: 6, "pods": 7}
    worker = {"cpu": 1000 * WORKER.cpu, "memory": WORKER.memory_gib * 2**30, GPU: 1}
    assert demand.gangs == (
        PodGroup(1, {"cpu": 1000, "memory": 2 * 2**30}),
        *(6 * [PodGroup(1, worker)]),
    )


def a_series(way, *, gangs=True, seconds=100.0, unfinished=0, waiting=1.0, rate=4):
    day = Day(0, 10, unfinished, seconds, waiting)
    return Series(gangs, rate, way, (day, replace(day, seed=1)))


def all_series(**of_queued):
    return [
        *(a_series(way) for way in WITH_GANGS if way != QUEUED),
        a_series(QUEUED, **of_queued),
        *(a_series(way, gangs=False) for way in (ALONE, STRICT)),
        a_series(QUEUED, gangs=False, waiting=0.5, seconds=102.0),
    ]


def a_range(kept=0.8):
    return Ranges(
        True, 4, QUEUED, waits=30, ranged=10, kept=kept, early=0.1, width=2.5, later_kept=0.75
    )


def test_every_target_is_met_or_missed_by_its_figure():
    assert [each.is_met for each in targets_of(all_series(seconds=111.0), [])] == 4 * [True]
    assert [each.is_met for each in targets_of(all_series(seconds=113.0), [])] == [
        True, False, True, True
    ]  # fmt: skip
    assert not targets_of(all_series(unfinished=1), [])[0].is_met
    kept = [0.69, 0.7, 0.9, 0.91, math.nan]
    met = [targets_of([], [a_range(share)])[0].is_met for share in kept]
    assert met == [False, True, True, False, False]


def test_runs_that_wait_are_told_when_they_start():
    """One that has learned from waits says a range, one that has not only the earliest time."""
    runs = [run for run in draw_day(6, 1, gangs=False) if run.submitted_seconds < 15 * 3600]
    plain = simulate(runs, Queue(runs, 1.0))
    for ratios, has_range in (((), False), (10 * (0.5, 2.0), True)):
        queue = RangedQueue(runs, 1.0, ratios)
        assert simulate(runs, queue).completion_seconds == plain.completion_seconds
        starts = [*queue.starts.values()]
        assert len(starts) > 3
        assert {each.has_range for each in starts[:2]} == {has_range}
        assert len(queue.ratios) == min(60, len(ratios) + len(starts))
        for each in starts:
            assert each.first.said_at is not None
            assert moment(each.began_seconds) >= each.first.said_at
            assert each.is_early + each.is_kept <= 1


def test_what_is_said_of_starts_is_measured_over_days():
    ranges = measure_ranges(4, STRICT, gangs=False, days=2)
    assert ranges.waits > ranges.ranged > 0
    assert 0 < ranges.kept < 1
    assert ranges.width > 0


def test_the_page_compares_with_the_reference_and_says_which_targets_are_missed():
    about, gangs, plain, _, ranges, targets = parts_of(all_series(seconds=113.0), [a_range()])
    assert isinstance(gangs, Table)
    assert isinstance(plain, Table)
    assert not isinstance(about, Table)
    assert not isinstance(targets, Table)
    longer = {row[1]: row[5] for row in gangs.rows}
    assert longer[QUEUED.name] == "13.0 ± 0.0"
    assert longer[WHOLE.name] == ""
    assert plain.rows[-1][5] == "2.0 ± 0.0"
    assert isinstance(ranges, Table)
    cells = ["4", "yes", QUEUED.name, "30", "10", "80.0", "10.0", "10.0", "75.0", "2.5"]
    assert ranges.rows == [cells]
    assert "seeds 0 to 1" in about[0]
    assert targets[1].startswith("- MISSED: with gangs, 4 runs/h")
    assert targets[3].endswith("50.0% (at most 60.0%).")
    assert targets[4].endswith("said first: 80.0% (70.0% to 90.0%).")


def test_the_command_writes_the_page_and_says_what_it_does(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.queue.RATES_WITH_GANGS", (3,))
    monkeypatch.setattr("benchmarks.queue.RATES_WITHOUT_GANGS", (4,))
    path = tmp_path / "queue.md"
    code = command(["--days", "1", "--output", str(path)])
    printed = capsys.readouterr()
    assert code == (1 if "MISSED" in printed.out else 0)
    assert "with gangs, 3 runs/h, queued, overcommit 2" in printed.err
    assert "with gangs, 3 runs/h, start ranges" in printed.err
    assert path.read_text("utf-8").startswith("# Queues of whole runs")


@pytest.mark.parametrize("days", ["0", "-1", "many"])
def test_days_must_be_a_number(days, usage_error):
    assert "is not a number of days" in usage_error(command, "--days", days)
