"""Plans of real pipelines on the runs before: precedence of times, promises, wrong files."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kfp import compiler, dsl

from kfp_placement import MarkValueError, RunError, preview
from kfp_placement.live.exceptions import ClusterMissingError
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.forecast import Level
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.planning.past_runs.learned_times import with_history
from kfp_placement_engine.readers import ReadOptions, read_run
from kfp_placement_engine.readers.history_file import read_histories
from kfp_placement_engine.render.plan_json import plan_json
from tests.support.builders import a_policy, a_run, a_step, cluster_of
from tests.support.histories import history_file, history_object, runs_of
from tests.support.prepared_runs import prepared
from tests.support.samples import SAMPLES

RUN = SAMPLES / "06_taxi" / "pipeline.yaml"
CLUSTER = SAMPLES / "06_taxi" / "cluster.yaml"
TAXI = read_run(RUN.read_bytes(), name="pipeline.yaml")
EXACT: dict[str, Any] = {"generations": 5, "compare": ()}


@pytest.fixture
def written(tmp_path):
    """Writes a file of these objects."""
    return lambda *objects: history_file(tmp_path / "history.json", *objects)


@pytest.fixture
def nine(written):
    """Nine runs of the taxi pipeline, whose training took 40 minutes in place of 20."""
    runs = runs_of(TAXI, 9, factor=1.1, train=2400.0)
    return written(history_object(runs))


def planned(history, **options):
    return preview(RUN, CLUSTER, history=history, **EXACT, **options)


def test_run_times_are_those_of_the_runs_before(nine):
    plan = planned(nine)
    train = plan.steps["train"]
    assert (train.basis, train.duration_source) == ("9 runs", DurationSource.HISTORY)
    assert train.duration_seconds == pytest.approx(2400, rel=0.05)
    assert plan.ends.low < plan.ends.typical < plan.ends.high
    # Runs took a tenth longer than their plans.
    assert plan.ends.typical == pytest.approx(1.1 * plan.makespan, rel=0.05)
    assert train.ends.high < plan.ends.high


@dsl.component(base_image="python:3.12")
def train(epochs: int, seed: int, key: str):
    """Train for some epochs."""


@dsl.pipeline(name="trained")
def trained(epochs: int = 5, seed: int = 1, key: str = "12345"):
    train(epochs=epochs, seed=seed, key=key)


def test_run_times_follow_the_argument_that_explains_them(written, tmp_path):
    """Ten seconds an epoch, whatever the seed."""
    package = tmp_path / "trained.yaml"
    compiler.Compiler().compile(trained, str(package))
    runs = []
    for number, (epochs, seed) in enumerate(zip((5, 10, 20, 8), (7, 1, 3, 5), strict=True)):
        options = ReadOptions(arguments={"epochs": epochs, "seed": seed})
        graph = read_run(package.read_bytes(), name="trained.yaml", options=options)
        (run,) = runs_of(graph, 1, train=10.0 * epochs)
        ended_at = run.ended_at + timedelta(days=number)
        runs.append(replace(run, uid=f"run-{number}", ended_at=ended_at))
    history = written(history_object(runs))
    assert "12345" not in history.read_text()

    def previewed(**arguments: int) -> Any:
        return preview(package, CLUSTER, history=history, arguments=arguments, **EXACT)

    plan = previewed(epochs=40, seed=4)
    step = plan.steps["train"]
    assert step.basis == "4 runs, by epochs"
    assert step.duration_seconds == pytest.approx(400, rel=0.1)
    assert '"byArgument": "epochs"' in plan_json(plan.plan)
    assert previewed(epochs=6).steps["train"].duration_seconds == pytest.approx(60, rel=0.1)


@pytest.mark.parametrize(
    ("runs", "basis", "seconds"),
    [(0, "hint", 1200), (2, "hint", 1200), (3, "3 runs", 2400), (9, "9 runs", 2400)],
)
def test_three_runs_win_over_a_hint(written, runs, basis, seconds):
    history = written(*([history_object(runs_of(TAXI, runs, train=2400.0))] if runs else []))
    train = planned(history).steps["train"]
    assert train.basis == basis
    assert train.duration_seconds == pytest.approx(seconds, rel=0.1)


def test_a_given_time_wins_over_all_runs(nine):
    plan = planned(nine, durations={"train": "10m"})
    assert (plan.steps["train"].basis, plan.steps["train"].duration_seconds) == ("given", 600)
    before = planned(nine).ends
    assert plan.ends.high < before.low
    # What is given is certain.
    train = plan.steps["train"]
    assert train.starts is not None
    assert train.ends is not None


def test_past_runs_win_over_what_a_policy_assumes_of_types():
    policy = a_policy(defaults={"byType": [{"type": "Fit", "duration": "1h"}]})
    cluster = replace(cluster_of(2), policy=policy)
    run = a_run(a_step("old", type="Fit", seconds=None), a_step("new", type="Fit", seconds=None))
    seen = replace(run, steps=run.steps[:1])
    past = Past(runs_of(seen, 1, old=90.0))
    request = prepared(run, cluster, past=past, options={"generations": 1})
    old, new = request.run.steps
    assert old.duration_basis is not None
    assert old.duration_basis.level is Level.ITERATION
    assert old.duration_seconds == pytest.approx(90, rel=0.2)
    # All steps of the namespace tell of it, which comes before a type's default.
    assert new.duration_source is DurationSource.HISTORY
    assert request.plan().promise is not None


def test_a_share_without_past_runs_is_said_to_have_no_effect(nine):
    def codes(plan):
        return [each.code for each in plan.warnings]

    assert codes(preview(RUN, CLUSTER, confidence="80%", **EXACT)) == ["confidence-unused"]
    assert codes(preview(RUN, CLUSTER, history="none", confidence=0.8, **EXACT)) == [
        "confidence-unused"
    ]
    assert codes(planned(nine, confidence="80%")) == codes(preview(RUN, CLUSTER, **EXACT)) == []


def test_a_pipeline_that_was_never_seen_has_no_promise(written):
    others = runs_of(replace(TAXI, name="other"))
    strangers = [replace(run, steps=tuple(_stranger(each) for each in run.steps)) for run in others]
    history = written(history_object(strangers))
    plan = planned(history)
    assert plan.ends is None
    assert "end: unknown (no run seen)" in repr(plan)


def _stranger(observation):
    identity = replace(observation.identity, component="", image="")
    return replace(observation, identity=identity)


def test_a_new_step_is_named(written):
    seen = replace(TAXI, steps=tuple(step for step in TAXI.steps if step.name != "predict"))
    runs = [replace(run, steps=tuple(map(_stranger, run.steps))) for run in runs_of(seen, 9)]
    plan = planned(written(history_object(runs)))
    assert plan.ends is None
    assert "end: unknown (no run seen of predict)" in repr(plan)


def test_confidence_widens_the_range(nine):
    narrow, wide = planned(nine, confidence="60%").ends, planned(nine, confidence=0.95).ends
    assert wide.low < narrow.low < narrow.high < wide.high
    assert narrow.typical == wide.typical


def test_what_if_keeps_the_past(nine):
    plan = planned(nine)
    longer = plan.what_if("step train duration=1h")
    assert longer.plan.ends.typical > plan.ends.typical
    assert longer.plan.steps["train"].basis == "given"
    assert longer.plan.steps["predict"].basis == "9 runs"
    again = longer.plan.what_if("+1 of nitos-cloud-node").plan
    assert again.ends is not None
    assert again.steps["train"].basis == "given"
    faster = plan.what_if("nitos-cloud-node speed=2").plan
    assert faster.ends.typical < plan.ends.typical
    assert list(plan.what_if()) == []


@pytest.mark.parametrize("value", [3, "", ["a"], b"x"])
def test_what_is_no_history(value):
    with pytest.raises(MarkValueError, match="history"):
        preview(RUN, CLUSTER, history=value)


@pytest.mark.parametrize("value", ["sure", 0, 2, True])
def test_what_is_no_confidence(value):
    with pytest.raises(MarkValueError, match="confidence from 50%"):
        preview(RUN, CLUSTER, confidence=value)


def test_a_history_of_several_namespaces_needs_to_know_which(written):
    runs = runs_of(TAXI)
    history = written(history_object(runs), history_object(runs, namespace="team-b"))
    with pytest.raises(RunError, match=r"2 namespaces \(team-a, team-b\).*namespace="):
        planned(history)
    assert planned(history, namespace="team-b").ends is not None


CUT_OFF = f"""apiVersion: {API_VERSION}
kind: PipelineHistory
metadata: {{name: taxi}}
spec: {{pipeline: taxi}}
status:
"""


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "is empty"),
        ("[]", "must be an object, not list; a history is what `kfp-placement history --output"),
        ("kind: Cluster\n", "holds kind 'Cluster' of apiVersion None; a history is what"),
        ("kind: PodList\nitems: []\n", "holds kind 'PodList'"),
        ("kind: List\nitems: 5\n", "items: must be a list, is a number; a history is what"),
        ("spec: {pipeline: taxi}\nitems: []\n", "holds kind None"),
        ("{kind: List, items: [" * 5000 + "]}" * 5000, "nested deeper than 100 levels"),
        ("a: [\n", "not valid YAML"),
        ("kind: PipelineHistory\nspec: {}\n", "PipelineHistory"),
        (f"{CUT_OFF}  runs:\n", "status.runs: must be a list.*, or export it again"),
        (f"{CUT_OFF}  runs:\n  - uid: a\n", "endedAt: is missing; a history is"),
        (
            f"{CUT_OFF}  runs:\n  - {{uid: a, endedAt: last week}}\n",
            "endedAt: must be a time such as 2026-11-30T00:00:00Z, not 'last week'",
        ),
        (
            f"{CUT_OFF}  runs:\n  - {{uid: a, endedAt: 2026-11-30T00:00:00Z, seconds: .nan}}\n",
            "seconds: must be a number, not nan",
        ),
        (
            CUT_OFF.replace("{pipeline", "{forgetBefor: today, pipeline") + "  runs: []\n",
            "spec.forgetBefor is not a field; known are pipeline, forgetBefore, forgetSteps",
        ),
    ],
)
def test_what_is_no_history_file_is_one_clear_error(tmp_path, text, part):
    file = tmp_path / "h.yaml"
    file.write_text(text)
    with pytest.raises(RunError, match=part) as refused:
        planned(file)
    assert "h.yaml" in str(refused.value)
    with pytest.raises(RunError, match=r"no\.yaml"):
        planned(tmp_path / "no.yaml")


def test_a_time_without_a_zone_says_what_to_write(written):
    raw = history_object(runs_of(TAXI, 1))
    raw["status"]["runs"][0]["endedAt"] = "2026-11-30T00:00:00"
    with pytest.raises(
        RunError, match="has no time zone; write, for example, 2026-11-30T00:00:00Z"
    ):
        planned(written(raw))


def test_too_many_runs_are_said_in_plain_words(written):
    raw = history_object(runs_of(TAXI, 1))
    raw["status"]["runs"] *= 1001
    with pytest.raises(RunError) as refused:
        planned(written(raw))
    words = "status.runs: has 1,001 entries, and at most 1,000 are read; leave the others out"
    assert words in str(refused.value)


def test_a_run_that_a_file_has_twice_counts_once(written):
    """Two exports have been merged: of a pipeline the newer one counts."""
    runs = runs_of(TAXI, 9, train=2400.0)
    once = planned(written(history_object(runs[1:])))
    objects = [history_object(runs[:6]), history_object(runs[1:]), history_object(runs[1:])]
    merged = written(*objects)
    (newest,) = read_histories(merged.read_bytes(), name="merged.json")
    assert [run.uid for run in newest.past_runs()] == [run.uid for run in runs[1:]]
    assert planned(merged).ends == once.ends
    others = written(
        history_object(runs), history_object([replace(run, pipeline="taxi-v2") for run in runs])
    )
    assert [
        len(each.past_runs()) for each in read_histories(others.read_bytes(), name="others.json")
    ] == [9, 9]


def test_live_past_runs_without_a_cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ClusterMissingError, match="no kubeconfig"):
        planned("live")


def test_a_row_that_somebody_has_broken_refuses_the_file_and_is_named(written):
    raw = history_object(runs_of(TAXI, 9))
    raw["status"]["runs"][3]["steps"][0][1][0][0] = -5
    with pytest.raises(RunError, match=r"'taxi': status\.runs\.3\.steps\.0\.1\.0\.0: must be"):
        planned(written(raw))


def test_what_a_newer_planner_or_kubernetes_adds_to_a_file_is_skipped(written):
    newer = history_object(runs_of(TAXI, 9))
    newer["metadata"] |= {"managedFields": [{"manager": "plan"}], "annotation": {}}
    newer["status"]["weather"] = "fine"
    newer["status"]["runs"][0]["moods"] = [1]
    assert planned(written(newer)).plan.promise.ends is not None


def test_a_file_that_is_too_large_is_refused(written, monkeypatch):
    monkeypatch.setattr("kfp_placement_engine.readers.history_file.MAX_FILE_BYTES", 1000)
    history = written(history_object(runs_of(TAXI)))
    with pytest.raises(RunError, match=r"history\.json"):
        planned(history)


def test_a_hint_of_a_step_that_is_known_elsewhere_leaves_the_end_known(tmp_path):
    """Its component has run in another pipeline: the hint is its time, that its range."""
    steps = tuple(replace(each, component=f"component of {each.name}") for each in TAXI.steps)
    hinted = replace(TAXI, steps=steps)
    others = runs_of(replace(hinted, name="other"))
    past = Past(others)
    learned = with_history(hinted, past)
    request = prepared(hinted, cluster_of(2), past=past, options={"generations": 1})
    by_hint = [each.name for each in hinted.steps if each.duration_source is DurationSource.HINT]
    assert by_hint
    promise = request.plan().promise
    assert promise is not None
    assert (promise.unknown, promise.ends is None) == ("", False)
    for each in learned.graph.steps:
        if each.name in by_hint:
            assert each.duration_source is DurationSource.HINT
            assert learned.forecast.steps[each.name].level is Level.COMPONENT
