"""`plan --history`, `--confidence` and `--at`."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from kfp_placement.cli.option_types import TIME
from kfp_placement_engine.readers import read_run_file
from tests.cli.conftest import CLUSTER, RUN
from tests.support.data import data_path
from tests.support.histories import history_file, history_object, runs_of

TAXI = read_run_file(RUN)
EXACT = ("--generations", "5", "--compare", "none")


@pytest.fixture
def history(tmp_path):
    runs = runs_of(TAXI, 9, factor=1.1, train=2400.0)
    return history_file(tmp_path / "history.json", history_object(runs))


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch):
    """Times of day are those of this machine."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def lasting(text):
    """The table but for how long the search took, and where the files of the sample are."""
    lines = [line for line in text.splitlines() if not line.startswith("dispatch ")]
    return "\n".join(lines).replace(CLUSTER, "cluster.yaml")


@pytest.fixture
def nearby(history):
    """The same file, named as it is where the command runs."""
    return history.name


@pytest.mark.parametrize("more", [(), ("-o", "wide"), ("--at", "2026-11-26T10:14")], ids=str)
def test_the_table(plan, nearby, golden, more):
    stdout = plan.output("--history", nearby, *EXACT, *more)
    golden(lasting(stdout))
    assert "By past runs: ends " in stdout
    assert "\npast runs: 9 of team-a (history.json)\n" in stdout


def test_a_share_without_past_runs_is_said_to_have_no_effect(plan, history):
    for more in ((), ("--history", "none")):
        result = plan(*EXACT, "--confidence", "80%", *more)
        assert result.exit_code == 0
        assert result.stderr == (
            "Warning: --confidence has no effect: it is for ranges that are made of past runs, and"
            " this plan rests on none; name some with --history FILE or --history live\n"
        )
    assert plan(*EXACT, "--confidence", "80%", "--history", history).stderr == ""


@pytest.mark.parametrize(("at", "day"), [("10:14", 27), ("10:20", 26), ("23:00", 26)])
def test_times_of_day_have_a_date(plan, monkeypatch, at, day):
    present = datetime.fromisoformat("2026-11-26T10:20:30Z")
    monkeypatch.setattr("kfp_placement.cli.option_types.now", lambda: present)
    result = plan(*EXACT, "--at", at)
    assert f"\nsubmitted 2026-11-{day} {at}:00 UTC\n" in result.stdout
    assert result.stderr == ""
    assert "submitted" not in plan(*EXACT).stdout


def renamed(*names):
    return [history_object(runs_of(replace(TAXI, name=name), 1)) for name in names]


def unseen_pipelines(document):
    return [each["message"] for each in document["warnings"] if each["code"] == "unseen-pipeline"]


@pytest.mark.parametrize("count", [0, 1, 5, 7])
def test_past_runs_of_other_pipelines_only_are_said(plan, run, tmp_path, golden, count):
    file = history_file(tmp_path / "h.json", *renamed(*(f"taxi-{n}" for n in range(count))))
    result = plan("--history", file, *EXACT, "-o", "json")
    (message,) = unseen_pipelines(json.loads(result.stdout))
    golden(message)
    checked = run("check", RUN, "--history", file).stdout
    assert f"warning: {message} [unseen-pipeline]" in " ".join(checked.split())


def test_forgotten_runs_are_none(plan, tmp_path, history):
    forgotten = history_object(runs_of(TAXI, 2), forget_before=datetime(2027, 1, 1, tzinfo=UTC))
    file = history_file(tmp_path / "h.json", forgotten)
    where = ("--history", file, *EXACT, "-o", "json")
    (message,) = unseen_pipelines(json.loads(plan(*where).stdout))
    assert message == (
        "no past run of pipeline 'taxi' counts in namespace team-a: what ended before"
        " 2027-01-01T00:00:00Z is forgotten"
    )
    where = ("--history", history, *EXACT, "-o", "json")
    assert unseen_pipelines(json.loads(plan(*where).stdout)) == []


def test_only_pipelines_of_which_runs_count_are_named(plan, tmp_path):
    renamed_runs = [replace(run, pipeline="taxi-v2") for run in runs_of(TAXI, 2)]
    forgotten = history_object(renamed_runs, forget_before=datetime(2027, 1, 1, tzinfo=UTC))
    file = history_file(tmp_path / "h.json", forgotten, *renamed("taxi-v3"))
    (message,) = unseen_pipelines(plan.document("--history", file, *EXACT))
    assert "but of taxi-v3; a pipeline" in message


def test_the_only_namespace_of_a_file_is_that_of_the_run(run, history, tmp_path):
    """Where all pipelines of it are planned, no mark is missed."""
    cluster = tmp_path / "cluster.yaml"
    described = yaml.safe_load(Path(CLUSTER).read_text(encoding="utf-8"))
    cluster.write_text(yaml.safe_dump({**described, "pipelines": {"team-a": "all"}}))
    # Marks are in the second part of a package.
    package = tmp_path / "pipeline.yaml"
    package.write_text(Path(RUN).read_text(encoding="utf-8").partition("\n---\n")[0])
    for command, quick in (("plan", EXACT), ("check", ())):
        there = (command, package, "--cluster", cluster, *quick)
        assert "marked" in run(*there).stdout
        assert "marked" not in run(*there, "--history", history).stdout


def test_a_file_of_run_times_wins_over_past_runs_too(plan, planner, history, tmp_path):
    (tmp_path / "times.yaml").write_text("train: 1h\n", encoding="utf-8")
    plan("--history", history, "--durations", tmp_path / "times.yaml")
    assert planner.steps["train"].duration_seconds == 3600


def test_the_table_says_how_many_past_runs_count(plan, history, tmp_path):
    assert "past runs:" not in plan(*EXACT).stdout
    piped = plan("--history", "-", *EXACT, stdin=history.read_bytes()).stdout
    assert "\npast runs: 9 of team-a (stdin)\n" in piped
    renamed_file = history_file(tmp_path / "h.json", *renamed("taxi-v2"))
    other = plan("--history", renamed_file, *EXACT).stdout
    assert "past runs: 0 of team-a (" in other


def test_a_file_of_another_namespace_has_no_run(plan, history):
    shown = plan("--history", history, *EXACT, "-n", "team-b", "-o", "json").stdout
    (message,) = unseen_pipelines(json.loads(shown))
    assert message == "no past run of pipeline 'taxi' counts in namespace team-b, nor of another"
    assert "has no run of namespace team-b, but of team-a" in shown


def test_of_several_namespaces_the_one_of_the_run_is_named_with_an_option(plan, tmp_path):
    objects = [history_object(runs_of(TAXI), namespace=name) for name in ("team-b", "team-a")]
    assert plan.message(
        1, "--history", history_file(tmp_path / "h.json", *objects), *EXACT
    ).endswith(
        "the history is of 2 namespaces (team-a, team-b); name that of the run (-n, in Python"
        " namespace=)\n"
    )


def test_live_past_runs_without_a_cluster(plan, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert plan.message(3, "--history", "live", *EXACT).startswith("Error: no kubeconfig: ")


@pytest.mark.parametrize(
    "options",
    [
        ("--confidence", "sure"),
        ("--confidence", "100%"),
        ("--at", "soon"),
        ("--at", "9999-12-31T23:50"),
        ("--at", "10:14:61"),
        ("--confidence", "80"),
        ("--history", ""),
        ("--history", "kindless.json"),
        ("--at", "25:00"),
        ("--history", "no.yaml"),
        ("--history", "-", "--cluster", "-"),
        ("--history", "history.json", "--context", "prod"),
        ("--history", CLUSTER),
    ],
    ids=lambda options: " ".join(str(option).rpartition("/")[2] for option in options),
)
def test_what_cannot_be_is_one_clear_error(run, history, golden, options):
    history.with_name("kindless.json").write_text('{"a": 1}')
    result = run("plan", RUN, *(() if "--cluster" in options else ("-c", CLUSTER)), *options)
    assert result.exit_code in (1, 2, 3)
    golden(result.stderr.replace(CLUSTER, "cluster.yaml"))
    assert result.stdout == ""


def test_times_are_read_as_people_write_them():
    def read(text):
        return TIME.convert(text, None, None)

    now = datetime.now().astimezone()
    assert abs(read("now") - now) < timedelta(minutes=1)
    moment = read("9:26:30")
    assert moment.strftime("%H:%M:%S") == "09:26:30"
    assert timedelta(seconds=-2) < moment - now < timedelta(days=1, seconds=1)
    assert read("2026-11-26T10:26:00Z").timestamp() == 1795688760
    assert read("2026-11-26T12:26:00+02:00") == read("2026-11-26 10:26")


@pytest.fixture(scope="module")
def loops():
    """KFP's pipeline of loops."""
    return data_path("kfp-2.17.0", "pipelines", "pipeline_with_loops.yaml")


@pytest.fixture
def plan_of(run):
    """`plan` of a file on the cluster of the sample."""
    return lambda path, *options: run("plan", path, "--cluster", CLUSTER, *options)


@pytest.fixture
def wide_loops(loops, tmp_path):
    """Three runs of that pipeline, whose last loop had five, seven and six iterations."""
    runs = [
        replace(run, loops={"for-loop-2": width})
        for run, width in zip(runs_of(read_run_file(loops), 3), (5, 7, 6), strict=True)
    ]
    return history_file(tmp_path / "history.json", history_object(runs))


def widths(planner):
    return {
        each.name: (each.width, each.learned_width.runs if each.learned_width else 0)
        for each in planner.graph.groups
        if each.width
    }


def test_past_runs_that_were_too_wide_to_be_planned_do_not_count(plan_of, planner, loops, tmp_path):
    runs = [
        replace(run, loops={"for-loop-2": 1_000_000}) for run in runs_of(read_run_file(loops), 3)
    ]
    plan_of(loops, "--history", history_file(tmp_path / "history.json", history_object(runs)))
    assert widths(planner)["for-loop-2"] == (3, 0)


def test_a_loop_is_as_wide_as_in_past_runs(plan_of, planner, loops, wide_loops):
    plan_of(loops, "--history", wide_loops)
    assert widths(planner) == {"for-loop-1": (2, 0), "for-loop-2": (6, 3), "for-loop-4": (2, 0)}
    plan_of(loops)
    assert widths(planner)["for-loop-2"] == (3, 0)
    plan_of(loops, "--history", wide_loops, "--loop-width", "for-loop-2=4")
    assert widths(planner)["for-loop-2"] == (4, 0)


def test_a_width_says_what_it_rests_on(plan_of, loops, wide_loops):
    text = plan_of(loops, "--history", wide_loops, *EXACT).stdout
    assert "width 6, that of 3 runs, for 1 loop (for-loop-2)" in text
    assert "loop-width-assumed" not in text
    assert "loop-width-assumed" in plan_of(loops, *EXACT).stdout
