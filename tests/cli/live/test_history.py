"""`history`: what past runs tell, exports of it, and what is to be forgotten."""

from dataclasses import replace
from datetime import timedelta

import pytest
import yaml

from kfp_placement.cli.commands import history as history_command
from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement.live.kinds import HISTORIES
from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory, history_name
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.planning.past_runs.stored_past import past_of
from kfp_placement_engine.readers.history_file import read_histories
from kfp_placement_engine.render.text import TextStyle, document_text, table_lines
from kfp_placement_engine.units.times import time_text
from kfp_placement_engine.views.history import (
    PastLoopView,
    PastStepView,
    PipelineDetails,
    PipelineTimes,
    pipeline_view,
    pipelines_table,
)
from tests.cli.live.conftest import HOSTILE, NOW, is_harmless
from tests.support.histories import GIB, history_object, past_run, taxi_runs, with_memory

LAST = NOW - timedelta(hours=3)
UNTIL = NOW + timedelta(seconds=1)
"""Time from which runs count where somebody forgets now: times are written in whole seconds."""


@pytest.fixture
def kept(cluster):
    """A pipeline of nine runs, and one of a single run that did not end well."""
    cluster.put(history_object(taxi_runs(LAST)))
    cluster.put(history_object([past_run("mnist", 0, LAST, {"train": [61.5]})]))
    return cluster


def rows(table):
    heading, *lines = table.splitlines()
    return heading.split(), [line.split() for line in lines]


def test_pipelines_with_the_time_of_their_runs(live, kept):
    heading, (mnist, taxi) = rows(live.output("history"))
    assert heading == ["PIPELINE", "RUNS", "TAKES", "LAST", "RUN", "NOTES"]
    assert mnist == ["mnist", "1", "-", "3h", "ago"]
    assert taxi[:2] == ["taxi", "9"]
    assert taxi[2].startswith("23m")


TAKES = TimeRange(1265, 1395, 1539)
TIMES = PipelineTimes("team-a", "taxi", 9, 12, TAKES, LAST, None)
STEPS = (
    PastStepView("train", 9, 1, TimeRange(1167, 1195, 1225), Basis(Level.ITERATION, 9, True), 50e6),
    PastStepView("for-loop-1[*].score", 6, 3, TimeRange(38, 82, 124), Basis(Level.STEP, 6)),
    PastStepView(
        "fetch", 1, 1, TimeRange(33, 34, 35), Basis(Level.ITERATION, 1), 0.0, NOW - timedelta(1)
    ),
)


def test_the_table_of_pipelines(golden):
    forgotten = replace(
        TIMES, namespace="team-b", name="nothing", runs=0, takes=None, last_run_at=None
    )
    forgotten = replace(forgotten, forget_before=NOW)
    golden(table_lines(pipelines_table([TIMES, forgotten], NOW, namespaces=True)), "all")
    golden(table_lines(pipelines_table([TIMES], NOW, namespaces=False)), "one namespace")


def test_the_text_of_a_pipeline(golden):
    details = PipelineDetails(TIMES, [PastLoopView("for-loop-1", 4, 3)], STEPS)
    golden(document_text(pipeline_view(details, NOW)))
    golden(document_text(pipeline_view(details, NOW), TextStyle(columns=80)), "narrow")
    alone = PipelineDetails(PipelineTimes("", "taxi", 0, 0, None, None, NOW), (), ())
    golden(document_text(pipeline_view(alone, NOW)), "nothing counts")


def test_all_namespaces(live, kept, tmp_path):
    kept.put(history_object(taxi_runs(LAST), "team-b"))
    heading, lines = rows(live.output("history", "-A"))
    assert heading[:2] == ["NAMESPACE", "PIPELINE"]
    assert [line[:2] for line in lines] == [
        ["team-a", "mnist"],
        ["team-a", "taxi"],
        ["team-b", "taxi"],
    ]
    assert len(rows(live.output("history"))[1]) == 2
    assert live("history", "-A", "--output", "all.yaml").exit_code == 0
    assert rows(live.output("history", "--file", "all.yaml")) == (heading, lines)
    document = yaml.safe_load((tmp_path / "all.yaml").read_text("utf-8"))
    document["items"].reverse()
    from_stdin = live.output("history", "--file", "-", stdin=yaml.safe_dump(document))
    assert rows(from_stdin) == (heading, lines)


def test_the_steps_of_one_pipeline(live, kept):
    title, of_pipeline, of_steps = live.output("history", "taxi").split("\n\n")
    assert title == "team-a/taxi"
    assert of_pipeline.splitlines()[1] in live("history").stdout
    _, *lines = of_steps.splitlines()
    assert [line.split()[0] for line in lines] == ["fetch", "train", "for-loop-1[*].score"]
    assert "9 runs" in lines[1]
    assert "other iterations, 9 runs" in lines[2]


def test_times_are_those_that_plans_use(live, kept):
    document = live.document("history", "taxi")
    histories = [read_resource(PipelineHistory, history_object(taxi_runs(LAST)))]
    last = histories[0].past_runs()[-1].steps[1]
    forecast = past_of(histories, "taxi").steps.predict(last.identity, last.input_bytes)
    assert forecast is not None
    assert forecast.basis == Basis(Level.ITERATION, 9)
    (train,) = [each for each in document["steps"] if each["step"] == "train"]
    basis = {"level": "iteration", "runs": 9, "bySize": False, "byArgument": None}
    assert train["basis"] == basis
    # The other pipeline of the namespace counts for how wide ranges are, and barely does.
    for name in ("low", "typical", "high"):
        wanted = getattr(forecast.times, f"{name}_seconds")
        assert train["takes"][f"{name}Seconds"] == pytest.approx(wanted, rel=0.02)


def test_an_argument_without_a_name_has_a_number(live, cluster):
    """Names of arguments are not kept: the time is that of the last run's."""
    runs = []
    for number, epochs in enumerate((5.0, 10.0, 20.0, 8.0)):
        run = past_run("mnist", number, LAST + timedelta(hours=number - 3), {"train": [9 * epochs]})
        (train,) = run.steps
        runs.append(replace(run, steps=(replace(train, arguments=(7.0, epochs)),)))
    cluster.put(history_object(runs))
    assert "4 runs, by argument 2" in live("history", "mnist").stdout
    (train,) = live.document("history", "mnist")["steps"]
    assert train["basis"]["byArgument"] == "argument 2"
    assert train["takes"]["typicalSeconds"] == pytest.approx(72, rel=0.05)


def kill_in_the_last(runs, step="train"):
    return [*runs[:-1], *with_memory(runs[-1:], step, killed=2, asked=2)]


def test_memory_of_steps_and_what_they_should_ask_for(live, cluster):
    runs = with_memory(taxi_runs(LAST), "fetch", peak=1.2, asked=8)
    runs = kill_in_the_last(runs, "for-loop-1[*].new")
    cluster.put(history_object(runs))
    heading, *lines = live.output("history", "taxi").split("\n\n")[2].splitlines()
    train, _, fetch, new = lines
    assert "MEMORY" in heading
    assert "1.2Gi of 8Gi" in fetch
    assert "asks 8Gi, used at most 1.2Gi in 9 runs: 1536Mi would do" in fetch
    assert "Gi" not in train
    assert new.split()[0] == "for-loop-1[*].new"
    assert "was killed for memory with 2Gi in its last run; ask for 4Gi" in new
    document = live.document("history", "taxi")
    by_step = {each["step"]: each for each in document["steps"]}
    assert by_step["fetch"]["memory"] == {
        "asked": 8 * GIB,
        "largest": round(1.2 * GIB),
        "runs": 9,
        "killedWith": None,
        "advised": 1.5 * GIB,
        "advice": "asks 8Gi, used at most 1.2Gi in 9 runs: 1536Mi would do",
    }
    assert by_step["fetch"]["requests"] == [{"name": "memory", "amount": "8Gi"}]
    assert by_step["train"]["memory"] is by_step["train"]["requests"] is None
    assert by_step["for-loop-1[*].new"]["memory"]["killedWith"] == 2 * GIB


def test_a_step_that_never_ended_well_can_be_forgotten(live, cluster):
    cluster.put(history_object(kill_in_the_last(taxi_runs(LAST), "new")))
    assert live("history", "taxi", "--forget", "--step", "new", "--yes").exit_code == 0
    (new,) = [line for line in live("history", "taxi").stdout.splitlines() if line[:4] == "new "]
    assert new.split()[1:3] == ["0", "-"]


@pytest.mark.parametrize("name", [(), ("taxi",)], ids=["list", "pipeline"])
def test_documents_are_what_their_schema_says(live, kept, name):
    kept.put(history_object(taxi_runs(LAST), forget_before=LAST - timedelta(hours=1)))
    document = live.document("history", *name)
    assert yaml.safe_load(live("history", *name, "-o", "yaml").stdout) == document


def test_whatever_somebody_writes_is_visible_and_hides_no_others(live, kept):
    kept.put(history_object([past_run(HOSTILE, 0, LAST, {HOSTILE: [1, 2]})]))
    broken = history_object(taxi_runs(LAST))
    broken["metadata"]["name"] = "broken"
    broken["spec"] = {}
    kept.put(broken)
    for result in (live("history"), live("history", HOSTILE)):
        assert result.exit_code == 0
        assert is_harmless(result.stdout)
        assert "PipelineHistory 'broken': spec.pipeline" in result.stderr
    assert "taxi" in live("history").stdout


def test_a_history_with_a_row_that_cannot_be_read_does_not_count(live, kept):
    raw = history_object(taxi_runs(LAST))
    raw["status"]["runs"][0]["steps"].append([0, [[-5]]])
    kept.put(raw)
    result = live("history")
    warning = " ".join(result.stderr.split())
    assert "PipelineHistory 'taxi': status.runs.0.steps.3.1.0.0: must be greater than" in warning
    assert "it does not count" in warning
    assert result.exit_code == 0
    assert "taxi" not in result.stdout


def test_no_history_yet(live, cluster, golden):
    cluster.serve(HISTORIES)
    golden(live.message(0, "history"))
    assert "no namespace typo" in live("history", "-n", "typo").stderr
    assert live.document("history")["items"] == []


@pytest.mark.parametrize(
    "arguments", [[], ["taxi"], ["--output", "h.yaml"], ["taxi", "--forget", "--yes"]]
)
def test_not_installed(live, arguments, golden):
    golden(live.message(3, "history", *arguments))


def test_no_such_pipeline(live, kept, golden):
    golden(live.message(3, "history", "taxxi"), "close")
    golden(live.message(3, "history", "other"), "far")


def test_several_namespaces_have_the_pipeline(live, kept, golden):
    kept.put(history_object(taxi_runs(LAST), "team-b"))
    golden(live.message(2, "history", "-A", "taxi"))
    assert live("history", "-A", "mnist").exit_code == 0


@pytest.mark.parametrize("name", ["history.yaml", "history.json"])
def test_an_export_reads_back_as_it_was(live, kept, tmp_path, name):
    assert live.output("history", "--output", name) == ""
    assert yaml.safe_load((tmp_path / name).read_text("utf-8"))["kind"] == "List"
    histories = read_histories((tmp_path / name).read_bytes(), name=name)
    assert [each.spec.pipeline for each in histories] == ["mnist", "taxi"]
    original = read_resource(PipelineHistory, history_object(taxi_runs(LAST)))
    assert histories[1].past_runs() == original.past_runs()
    from_file, from_cluster = live("history", "taxi", "--file", name), live("history", "taxi")
    assert from_file.stdout == from_cluster.stdout
    assert live("history", "--file", name, "-n", "team-a").stdout == live("history").stdout
    nothing = live.message(0, "history", "--file", name, "-n", "team-b")
    where = f"({name}, namespace team-b)"
    assert f"{name} has no run of namespace team-b, but of team-a" in nothing
    assert nothing.endswith(f"No pipeline has a history {where}.\n")
    stderr = live.message(3, "history", "taxi", "--file", name, "-n", "team-b")
    assert f"no pipeline has a history {where}" in stderr
    other = live("history", "other", "--file", name)
    assert f"there is no pipeline 'other'; pipelines: mnist, taxi ({name})" in other.stderr


def test_one_pipeline_is_exported_and_read_from_stdin(live, kept, tmp_path):
    live("history", "taxi", "--output", "taxi.txt", "-o", "yaml")
    text = (tmp_path / "taxi.txt").read_text("utf-8")
    assert [each["spec"]["pipeline"] for each in yaml.safe_load(text)["items"]] == ["taxi"]
    assert "9 runs" in live("history", "taxi", "--file", "-", stdin=text).stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--output", "h.html"], 2),
        (["--output", "no/h.yaml"], 3),
        (["other", "--output", "h.yaml"], 3),
        (["--file", "none.yaml"], 3),
        (["--file", "h.yaml", "--context", "prod"], 2),
        (["--forget"], 2),
        (["taxi", "--step", "train"], 2),
        (["taxi", "--forget", "--output", "h.yaml"], 2),
        (["taxi", "--forget", "--yes", "--step", "trian"], 3),
        (["taxi", "--forget"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_meant(live, kept, tmp_path, golden, arguments, code):
    golden(live.message(code, "history", *arguments).replace(str(tmp_path), "FOLDER"))
    assert list(tmp_path.iterdir()) == []
    assert kept.writes == []


def test_a_file_of_something_else(live, tmp_path, golden):
    (tmp_path / "pods.yaml").write_text("kind: Pod\n", encoding="utf-8")
    golden(live.message(1, "history", "--file", "pods.yaml"))


def stored(cluster):
    raw = cluster.get(HISTORIES, history_name("taxi"), "team-a")
    return read_resource(PipelineHistory, raw)


def test_all_runs_are_forgotten(live, kept):
    stdout = live.output("history", "taxi", "--forget", "--yes")
    assert stdout == "Forgotten: all that is known of team-a/taxi, until now.\n"
    assert stored(kept).spec.forget_before == UNTIL
    assert stored(kept).past_runs() == ()
    (line,) = [each for each in live("history").stdout.splitlines() if each.startswith("taxi")]
    assert line.split()[:3] == ["taxi", "0", "-"]
    assert line.endswith(f"ended before {time_text(UNTIL)} is forgotten")


def test_the_times_of_one_step_are_forgotten_and_its_runs_stay(live, kept):
    before = NOW - timedelta(days=2)
    entry = {"step": "fetch", "before": before}
    kept.put(history_object(taxi_runs(LAST), forget_steps=(entry,)))
    live.output("history", "taxi", "--forget", "--step", "score", "--step", "train", "--yes")
    spec = stored(kept).spec
    assert {each.step: each.before for each in spec.forget_steps} == {
        "fetch": before,
        "for-loop-1[*].score": UNTIL,
        "train": UNTIL,
    }
    document = live.document("history", "taxi")
    assert document["pipeline"]["runs"] == 9
    assert {each["step"]: each["runs"] for each in document["steps"]} == {
        "fetch": 2,
        "for-loop-1[*].score": 0,
        "train": 0,
    }
    assert f"ended before {time_text(UNTIL)} is forgotten" in live("history", "taxi").stdout
    assert live("history", "taxi", "--forget", "--step", "train", "--yes").exit_code == 0
    assert len(stored(kept).spec.forget_steps) == 3


def test_what_somebody_else_forgets_meanwhile_stays_forgotten(live, kept, monkeypatch):
    """The list of such steps is replaced as a whole."""
    patch = kept.patch

    def after_another(*arguments):
        steps = ({"step": "fetch", "before": LAST},)
        newer = history_object(taxi_runs(LAST), forget_steps=steps)
        newer["metadata"]["resourceVersion"] = "2"
        kept.put(newer)
        return patch(*arguments)

    monkeypatch.setattr(kept, "patch", after_another)
    stderr = live.message(1, "history", "taxi", "--forget", "--step", "train", "--yes")
    assert "has been modified" in stderr
    assert [each.step for each in stored(kept).spec.forget_steps] == ["fetch"]


def test_all_runs_are_forgotten_with_their_steps(live, kept):
    steps = ({"step": "train", "before": LAST},)
    kept.put(history_object(taxi_runs(LAST), forget_before=LAST, forget_steps=steps))
    assert live("history", "taxi", "--forget", "--yes").exit_code == 0
    assert stored(kept).spec.forget_before == UNTIL
    assert stored(kept).spec.forget_steps == ()
    raw = kept.get(HISTORIES, history_name("taxi"), "team-a")
    assert raw["spec"].get("forgetSteps") is None


def test_what_is_forgotten_until_later_stays_so(live, kept):
    later, latest = NOW + timedelta(days=1), NOW + timedelta(days=2)
    steps = ({"step": "fetch", "before": latest}, {"step": "train", "before": LAST})
    kept.put(history_object(taxi_runs(LAST), forget_before=later, forget_steps=steps))
    for which in ((), ("--step", "fetch")):
        assert live("history", "taxi", "--forget", "--yes", *which).exit_code == 0
        spec = stored(kept).spec
        assert spec.forget_before == later
        assert [(each.step, each.before) for each in spec.forget_steps] == [("fetch", latest)]


def test_an_object_of_another_name_hides_nothing_of_a_pipeline(live, kept):
    other = history_object(taxi_runs(LAST))
    other["metadata"]["name"], other["status"] = "zzz", {}
    kept.put(other)
    assert live.document("history", "taxi")["pipeline"]["runs"] == 9


@pytest.mark.parametrize("answer", ["y", "n"])
def test_it_asks_before_it_forgets(live, kept, monkeypatch, golden, answer):
    monkeypatch.setattr(history_command, "can_ask", lambda: True)
    result = live("history", "taxi", "--forget", stdin=f"{answer}\n")
    golden(result.stdout + result.stderr)
    assert result.exit_code == (0 if answer == "y" else 1)
    assert bool(kept.writes) is (answer == "y")


def test_who_may_not_forget_is_told_which_role_may(live, kept, monkeypatch):
    def refuse(*_args, **_options):
        raise ClusterForbiddenError("you may not")

    monkeypatch.setattr(kept, "patch", refuse)
    stderr = live.message(1, "history", "taxi", "--forget", "--yes")
    assert "you may not; the ClusterRole kfp-placement-edit-history allows it" in stderr


def test_how_wide_loops_were(live, cluster):
    runs = [
        replace(run, loops={"for-loop-1": 3 + number})
        for number, run in enumerate(taxi_runs(LAST, 3))
    ]
    cluster.put(history_object(runs))
    assert (
        "loop for-loop-1: 4 iterations, the median of the last 3 runs"
        in live("history", "taxi").stdout.splitlines()
    )
    document = live.document("history", "taxi")
    assert document["loops"] == [{"loop": "for-loop-1", "width": 4, "runs": 3}]
