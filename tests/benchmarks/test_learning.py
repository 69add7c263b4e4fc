"""The table of learned run times: traces are read strictly, and each figure is what it says."""

import gzip
import json
import math
from random import Random

import pytest

from benchmarks import learning
from benchmarks.command import BenchmarkError
from benchmarks.learning import command
from benchmarks.learning_report import figures_of
from benchmarks.learning_runs import traces
from benchmarks.learning_runs.cases import Case, seen_text
from benchmarks.learning_runs.memory import memory_cases
from benchmarks.learning_runs.recorded import cluster_of, is_complete, run_ends
from benchmarks.learning_runs.steps import new_iterations, same_inputs
from benchmarks.learning_runs.traces import COLUMNS, read_trace, trace_files
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.model.promise import TimeRange
from tests.support.data import data_path

HEADER = ",".join(COLUMNS)
CUT_OFF = gzip.compress(b"run" * 1000, mtime=0)[:-12]


def made_up_trace(folder, name="team", runs=12, sigma=0.05):
    """Four steps, two of them a loop of three; times lognormal, half of them by size."""
    random, lines = Random(5), [HEADER]
    for run in range(runs):
        starts = {"A:GET": 0, "A:FIT": 15, "B:FIT": 15, "B:SAVE": 250}
        for process, tags, seconds in (
            ("A:GET", "-", 8), ("A:FIT", "abc", 60), ("B:FIT", "abc", 20), ("B:SAVE", "-", 5),
        ):  # fmt: skip
            for number, tag in enumerate(tags):
                time = seconds * (1 + number) * math.exp(random.gauss(0, sigma))
                node = f"n{random.randrange(3)}"
                start = starts[process]
                figures = f"1,1024,{start},{start + time:.3f},{time:.3f},{1 + number}"
                lines.append(f"{run},{process},{tag},0,image:1,{node},{figures}")
    path = folder / f"{name}.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_trace_is_read_by_run_and_step(tmp_path):
    lines = [
        f"{HEADER},peak",
        "1,A:FIT,x,0,i:1,n,2,512,1,6,4.5,2,9",
        "0,A:FIT,x,1,i:1,,,,,,3,,9",
        "0,GET,-,0,,n,,,,,-,1,9",
    ]
    path = tmp_path / "one.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    trace = read_trace(path)
    (first,), (second,) = trace.runs
    assert (trace.pipeline, first.identity.step, first.input_bytes) == ("one", "A:FIT", None)
    assert (second.seconds, second.input_bytes, second.node) == (4.5, 2e6, "n")
    assert first.identity.iteration != second.identity.iteration
    assert first.identity.component == second.identity.component
    pod = trace.pods[1][0]
    assert (pod.step.image, pod.step.requests) == ("i:1", {"cpu": 2000, "memory": 512 * 2**20})
    assert (pod.start_seconds, pod.end_seconds, pod.name) == (1.0, 6.0, "A:FIT|x#0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,process\n0,A\n", "has no column tag, k, container, node, cpus"),
        (f"{HEADER}\n", "holds no steps with a time"),
        (
            f"{HEADER}\n0,A,x,0,i,n,1,1,0,9,soon,1\n",
            "line 2: realtime_s 'soon' is not a number from 0",
        ),
        (f"{HEADER}\n0,A,x,0,i,n,1e308,1,0,9,3,1\n", "line 2"),
        (f"{HEADER}\nfirst,A,x,0,i,n,1,1,0,9,3,1\n", "line 2: run 'first' is not a number"),
        (f'{HEADER}\n0,"A,x,0,i,n,1,1,0,9,3,1\n', "unexpected end of data"),
    ],
)
def test_what_is_not_a_trace_is_refused(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(BenchmarkError, match=r"bad\.csv") as refused:
        read_trace(path)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "content", [b"no gzip", CUT_OFF, b"\x1f\x8b\x08"], ids=["text", "cut off", "empty"]
)
def test_broken_files_are_refused(tmp_path, content):
    path = tmp_path / "bad.csv.gz"
    path.write_bytes(content)
    with pytest.raises(BenchmarkError, match="cannot be read"):
        read_trace(path)


@pytest.mark.parametrize(
    "odd",
    [
        *("0,9,1e308,1,8", "0,9,4e8,1,8", "0,9,3,1e308,8", "0,9,3,1,1e308", "0,1e308,3,1,8"),
        "1e308,9,3,1,8",
    ],
)
def test_rows_that_cannot_be_true_are_left_out_and_counted(tmp_path, odd):
    path = tmp_path / "one.csv"
    rows = [f"0,A,x,0,i,n,1,1,{each}" for each in (odd, "0,9,3,1,8", odd)]
    path.write_text("\n".join([f"{HEADER},peak_rss_mb", *rows]))
    trace = read_trace(path)
    assert (len(trace.pods[0]), trace.left_out) == (1, 2)
    path.write_text("\n".join([f"{HEADER},peak_rss_mb", *rows[::2]]))
    with pytest.raises(BenchmarkError, match=r"one\.csv: holds no .*; 2 rows left out"):
        read_trace(path)


def test_two_traces_of_one_name_are_refused(tmp_path, message):
    text = made_up_trace(tmp_path, "a").read_bytes()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    stderr = message(1, command, "--data", str(tmp_path))
    assert "a.csv.gz: is of the pipeline 'a', as a.csv is;" in stderr


def test_large_and_strange_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "MOST_BYTES", 100)
    path = tmp_path / "large.csv"
    path.write_text(f"{HEADER}\n" + "0,A,x,0,i,n,1,1,0,9,3,1\n" * 20)
    with pytest.raises(BenchmarkError, match="is larger than"):
        read_trace(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BenchmarkError, match="is not UTF-8"):
        read_trace(path)


def test_a_folder_without_traces_is_said(tmp_path, message):
    with pytest.raises(InputNotFoundError, match="holds no traces"):
        trace_files(tmp_path)
    assert "no such" in message(3, command, "--data", str(tmp_path / "gone.csv"))


def test_all_tables_of_made_up_traces(tmp_path, capsys, monkeypatch):
    for name in ("one", "two"):
        path = made_up_trace(tmp_path, name)
        made_up_order(tmp_path, name)
    with path.open("a") as file:
        file.write("99,A:GET,-,0,image:1,n0,1,1024,0,1,1e308,1\n")
    # Those of made-up runs have tests of their own.
    monkeypatch.setattr(
        learning, "TABLES", ("same-inputs", "first-sight", "new-iterations", "run-ends", "memory")
    )
    assert command(["--data", str(tmp_path), "-o", "json", "--output", str(tmp_path / "o.md")]) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    assert figures["left_out"] == {"two": 1}
    assert "two.csv: 1 row left out" in printed.err
    assert figures["same-inputs"]["5-9, all"]["forecasts"] == 2 * 5 * 8
    assert figures["same-inputs"]["5-9, one"]["errors"]["ours"] < 0.1
    assert figures["first-sight"]["same component, all"]["forecasts"] > 0
    assert figures["run-ends"]["50% passed, two"]["covered"] > 0.5
    assert figures["memory"] == {}
    page = (tmp_path / "o.md").read_text()
    assert page.startswith("# Learned run times")
    assert "| 5-9 | all |" in page
    assert "two: 1 row left out" in page


def with_memory(path):
    """The same trace; later steps use more memory, and none asks for enough of it."""
    header, *rows = path.read_text().splitlines()
    more = [f"{row},{number},{1 + 10 * number}" for number, row in enumerate(rows)]
    path.write_text("\n".join([f"{header},submit_s,peak_rss_mb", *more]))
    return path


def test_memory_is_asked_for_by_three_rules(tmp_path, figures):
    path = with_memory(made_up_trace(tmp_path, runs=2))
    report = figures(command, "--data", str(path), "--only", "memory")
    authors, ours = (report["memory"][f"all runs, all, {name}"] for name in ("authors", "ours"))
    assert (authors["pods"], authors["failed"]) == (16, 0.0)
    assert 0 < authors["maq"] < ours["maq"] < 1
    assert "same-inputs" not in report


def test_a_failed_attempt_wastes_all_that_it_had(tmp_path):
    """3 MB are asked for and 8 used; 6 fail too, and 12 do not."""
    path = tmp_path / "one.csv"
    megabytes = 3e6 / 2**20
    path.write_text(f"{HEADER},peak_rss_mb\n0,A,x,0,i,n,1,{megabytes},0,9,3600,1,8\n")
    cases = {each.method: each for each in memory_cases([read_trace(path)])}
    for each in cases.values():
        assert (each.pods, each.failed) == (1, 1)
        assert each.used_gbh == pytest.approx(0.008)
        assert each.wasted_gbh == pytest.approx(0.003 + 0.006 + 0.004, abs=1e-6)


def test_a_trace_without_memory_has_none(tmp_path):
    assert list(memory_cases([read_trace(made_up_trace(tmp_path))])) == []


def test_a_single_trace_has_no_other_pipelines(tmp_path, capsys):
    path = made_up_trace(tmp_path)
    assert command(["--data", str(path), "--only", "first-sight"]) == 0
    assert "same component" not in capsys.readouterr().out


def test_forecasts_are_of_runs_that_are_not_known_yet(tmp_path):
    """The simple ones are of the values before; the first run has none."""
    trace = read_trace(made_up_trace(tmp_path, runs=3, sigma=0))
    cases = list(same_inputs([trace]))
    assert [each.group for each in cases[:8]] == ["1"] * 8
    assert {round(each.error("last"), 9) for each in cases} == {0}
    assert all(each.is_covered for each in cases)


def test_figures_are_those_of_the_cases():
    cases = [
        Case("p", "g", 10.0, TimeRange(9.0, 11.0, 18.0), {"last": 12.0}),
        Case("q", "g", 30.0, TimeRange(10.0, 15.0, 20.0), {"last": 30.0}),
    ]
    figures_by_group = figures_of(cases)
    assert list(figures_by_group) == [("g", "all"), ("g", "p"), ("g", "q")]
    of_all = figures_by_group["g", "all"]
    assert (of_all.forecasts, of_all.covered, of_all.high_over_low) == (2, 0.5, 2.0)
    assert of_all.errors == pytest.approx({"last": 0.1, "ours": 0.3})
    assert of_all.by_time == pytest.approx(16 / 40)
    assert of_all.width == pytest.approx((0.9 + 1 / 3) / 2)
    assert [seen_text(each) for each in (0, 1, 2, 3, 5, 10, 99)] == [
        "0", "1", "2", "3-4", "5-9", "10+", "10+",
    ]  # fmt: skip


def test_a_trace_of_the_data_is_read():
    trace = read_trace(data_path("cws-runs", "sarek.csv.gz"))
    assert len(trace.runs) == 60
    assert sum(map(len, trace.runs)) == 6840


def made_up_order(folder, name="team"):
    """GET, then all FIT, then SAVE."""
    steps = ["A:GET|-#0", *(f"{kind}:FIT|{tag}#0" for kind in "AB" for tag in "abc"), "B:SAVE|-#0"]
    edges = [[0, fit] for fit in range(1, 7)] + [[fit, 7] for fit in range(1, 7)]
    path = folder / f"{name}-order.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"steps": steps, "edges": edges}).encode()))
    return path


def test_ends_of_runs_are_forecast_from_plans_and_past_runs(tmp_path):
    path = made_up_trace(tmp_path, runs=14, sigma=0)
    made_up_order(tmp_path)
    trace = read_trace(path)
    cases = list(run_ends([trace]))
    groups = [each.group for each in cases]
    assert [each for each in groups if "passed" not in each] == ["3-9"] * 7 + ["10+"] * 3
    # GET and SAVE take 8 and 5 s; the longest FIT takes 180 s, where it finds room at once.
    assert {round(each.others["plan alone"]) for each in cases} == {193}
    assert {round(each.seconds) for each in cases} == {255}
    first = [each for each in cases if each.group in ("3-9", "10+", "0% passed", "25% passed")]
    assert all(each.error() < 0.001 and each.is_covered for each in first)
    # Then SAVE waits for a minute that no plan has.
    assert [each.ours.typical_seconds < 255 for each in cases[-2:]] == [True, True]
    assert groups.count("75% passed") == 10


def test_a_trace_whose_order_lacks_steps_has_no_ends(tmp_path):
    path = made_up_trace(tmp_path)
    assert list(run_ends([read_trace(path)])) == []
    made_up_order(tmp_path)
    path.write_text(path.read_text() + "11,A:NEW,-,0,image:1,n0,1,1,0,9,9,1\n")
    trace = read_trace(path)
    assert trace.order is not None
    assert not is_complete(trace, trace.order)
    assert list(run_ends([trace])) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"steps": ["a"]}', "is not an order of steps"),
        (b'{"steps": ["a"], "edges": [[0, 1]]}', "names a step that is not there"),
        (b'{"steps": ["a", "a"], "edges": []}', "names a step twice"),
        (b'{"steps": ["a", "b"], "edges": [[0, 1], [1, 0]]}', "steps wait for each other"),
    ],
    ids=["no edges", "no such step", "twice", "cycle"],
)
def test_what_is_not_an_order_is_refused(tmp_path, content, message):
    path = made_up_trace(tmp_path, runs=1)
    (tmp_path / "team-order.json.gz").write_bytes(gzip.compress(content))
    with pytest.raises(BenchmarkError, match=message):
        read_trace(path)


def test_nodes_are_as_large_as_what_they_held_at_a_time(tmp_path):
    """What ends makes room for what starts then."""
    path = tmp_path / "one.csv"
    rows = ["2,1024,0,10", "3,512,5,20", "4,2048,20,30"]
    path.write_text(
        "\n".join([HEADER, *(f"0,A,t,{k},i,n,{row},5,1" for k, row in enumerate(rows))])
    )
    (node,) = cluster_of(read_trace(path)).nodes
    assert dict(node.allocatable) == {"cpu": 5000, "memory": 2048 * 2**20, "pods": 110}


@pytest.mark.parametrize("experiment", [same_inputs, new_iterations])
def test_no_forecast_knows_the_run_that_it_is_of(tmp_path, experiment):
    """The last of four runs takes ten times as long; its forecasts are those of the run before."""
    path = made_up_trace(tmp_path, runs=4, sigma=0)
    rows = path.read_text().splitlines()
    experiments: list[list[Case]] = []
    for lines in (rows, with_slow_run(rows, "3")):
        path.write_text("\n".join(lines))
        experiments.append(list(experiment([read_trace(path)])))
    usual, changed = experiments
    assert [(each.ours, each.others) for each in changed] == [
        (each.ours, each.others) for each in usual
    ]
    assert sum(each.seconds for each in changed) > 2 * sum(each.seconds for each in usual)


def with_slow_run(rows, run):
    """The rows of a trace, in which all steps of a run take ten times as long."""
    seconds = COLUMNS.index("realtime_s")
    slow = []
    for row in rows:
        cells = row.split(",")
        if cells[0] == run:
            cells[seconds] = str(10 * float(cells[seconds]))
        slow.append(",".join(cells))
    return slow


def test_no_plan_knows_the_run_that_it_is_of(tmp_path):
    path = made_up_trace(tmp_path, runs=6, sigma=0)
    made_up_order(tmp_path)
    path.write_text("\n".join(with_slow_run(path.read_text().splitlines(), "5")))
    *_, last = run_ends([read_trace(path)])
    assert round(last.others["plan alone"]) == 193
