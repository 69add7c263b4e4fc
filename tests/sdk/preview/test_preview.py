"""`preview(pipeline, cluster)`: the plan of a run that has not been submitted."""

import json
import math
import re
import sys
from typing import Any

import pytest
import yaml
from kfp import compiler, dsl

from kfp_placement import (
    MarkValueError,
    MissingLibraryError,
    Preview,
    RunError,
    UnknownOptionError,
    UnknownStepError,
    place,
    preview,
)
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.plans.assumptions import Assumptions
from tests.support.pipelines import id_of, one_step, work
from tests.support.plans import a_plan, a_step, stuck_plan, taxi_plan, unplaced_step
from tests.support.samples import SAMPLES, load_sample

CLUSTER = SAMPLES / "06_taxi" / "cluster.yaml"
QUICK: dict[str, Any] = {"budget": "50ms", "compare": ()}


@pytest.fixture(scope="module")
def taxi():
    return load_sample("06_taxi")


@pytest.mark.parametrize(
    ("location", "node"),
    [
        ("HOME-EDGE", "home-edge-node"),
        ("NITLAB-EDGE", "nitlab-edge-node"),
        ("NITOS-CLOUD", "nitos-cloud-node"),
    ],
)
def test_taxi_predicts_near_its_users_and_trains_where_it_ends_first(taxi, location, node):
    plan = preview(taxi.taxi_for(location), CLUSTER, **QUICK)
    assert plan.steps["predict"].node == node
    assert plan.steps["train"].node == "nitos-cloud-node"
    assert f"lowest round trip to {location}" in plan.explain("predict")
    assert not plan.warnings
    assert 20 * 60 < plan.makespan < 25 * 60


def test_a_compiled_package_gives_the_same_plan(taxi, tmp_path):
    path = tmp_path / "package.yaml"
    compiler.Compiler().compile(taxi.taxi, str(path))
    exact: Any = {"generations": 3, "seed": 5, "compare": ()}
    assert (
        preview(path, CLUSTER, **exact).plan.steps
        == preview(taxi.taxi, CLUSTER, **exact).plan.steps
    )


def test_options_reach_the_planner(taxi):
    plan = preview(
        taxi.taxi,
        CLUSTER,
        generations=4,
        seed=11,
        dispatch="ordered",
        compare="fifo",
        kube_version="v1.35.2-gke.1",
        assumptions=Assumptions(driver_seconds=0.0),
    ).plan
    assert (plan.search.seed, plan.search.dispatch, list(plan.comparison.baselines)) == (
        11,
        "ordered",
        ["fifo"],
    )


def looping():
    @dsl.component(base_image="python:3.12")
    def shards(count: int) -> list:
        """List some numbers."""
        return list(range(count))

    @dsl.pipeline(name="looping")
    def pipeline(count: int = 4):
        with dsl.ParallelFor(items=shards(count=count).output) as item:
            place(work(item=item), duration="1m")

    return pipeline


def test_a_mark_that_is_nearly_an_option_names_that():
    with pytest.raises(UnknownOptionError, match="or here 'durations'"):
        preview("pipeline.yaml", duration={"train": "40m"})  # type: ignore[arg-type]
    with pytest.raises(UnknownOptionError, match=r"use place\(\) or @placed$"):
        preview("pipeline.yaml", memory="4Gi")  # type: ignore[arg-type]


def test_loops_of_unknown_width_take_the_width_given():
    assert len(preview(looping(), CLUSTER, **QUICK).steps) == 1 + 3
    given = preview(looping(), CLUSTER, loop_widths={"for-loop-1": 5}, **QUICK)
    assert len(given.steps) == 1 + 5


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"budgte": 1}, UnknownOptionError),
        ({"at": "10:14"}, UnknownOptionError),
        ({"budget": "soon"}, MarkValueError),
        ({"marked_only": "false"}, MarkValueError),
        ({"dispatch": "fast"}, RunError),
        ({"objective": "fun"}, RunError),
        ({"compare": ["best"]}, RunError),
        ({"loop_widths": {"for-loop-1": -1}}, RunError),
        ({"durations": {"wrok": 1}}, UnknownStepError),
        ({"assume_cached": ["wrok"]}, UnknownStepError),
        ({"arguments": {"cont": 1}}, RunError),
        ({"arguments": [1]}, MarkValueError),
        ({"compare": None}, MarkValueError),
        ({"seed": -1}, MarkValueError),
        ({"generations": 1.5}, MarkValueError),
        ({"kube_version": "1.2"}, MarkValueError),
        ({"kube_version": (1,)}, MarkValueError),
        ({"kube_version": (1, 36, 2)}, MarkValueError),
        ({"kube_version": 1.36}, MarkValueError),
        ({"kube_version": "new"}, MarkValueError),
        ({"assumptions": 3}, MarkValueError),
        ({"namespace": 3}, MarkValueError),
    ],
    ids=id_of,
)
def test_wrong_options_are_clear_errors(options, error, golden):
    with golden.error(error):
        preview(one_step(place), CLUSTER, **options)


def test_repr_is_one_line(golden):
    text = repr(Preview(taxi_plan()))
    golden(text, "taxi")
    assert re.fullmatch(r"<Preview taxi, 7 steps .*; see \.explain\(step\)>", text)
    stuck = Preview(stuck_plan())
    golden(repr(stuck), "stuck")
    golden(stuck.explain("report"), "a step of the stuck one")


def test_steps_and_plan_are_there_to_read():
    made = Preview(taxi_plan())
    assert made.makespan == 1865.0
    assert made.plan.run.name == "taxi"
    assert list(made.steps)[:2] == ["fetch", "validate"]
    assert made.warnings == made.plan.notices
    with pytest.raises(TypeError):
        made.steps["fetch"] = made.steps["train"]  # type: ignore[index]


def test_a_run_that_does_not_end_takes_for_ever():
    assert Preview(stuck_plan()).makespan == math.inf


def test_explain_says_why_in_a_sentence(golden):
    cached = unplaced_step("old", cached=True, reason="taken to come from the cache")
    made = Preview(a_plan(a_step(), unplaced_step(), cached))
    for name in made.steps:
        golden(made.explain(name), name)
    with golden.error(UnknownStepError, "unknown", match="'train'"):
        made.explain("trian")


def test_a_step_that_is_not_there_is_looked_for_in_groups(golden):
    names = ("exit-handler-1.average", "for-loop-1[0].work", "for-loop-1[1].work")
    tasks = ("exit-handler-1.average", "for-loop-1[*].work", "for-loop-1[*].work")
    steps = [a_step(name, task=task) for name, task in zip(names, tasks, strict=True)]
    made = Preview(a_plan(*steps, run_name="run"))
    for ask in (made.explain, made.steps.__getitem__):
        with pytest.raises(UnknownStepError, match=r"mean 'exit-handler-1\.average'\?$"):
            ask("averag")
        with pytest.raises(UnknownStepError, match=r"mean 'for-loop-1\[\*\]\.work'\?$"):
            ask("wrok")
        with pytest.raises(UnknownStepError, match="no step 'zzzz'; steps: exit-handler-1"):
            ask("zzzz")
    with golden.error(KeyError, match="^run: "):
        made.steps["averag"]


def test_the_author_s_name_is_enough(golden):
    """It is one step's; or a task's, of which `steps` names the iterations; or unclear."""
    names = ("if-1.average", "for-loop-1[0].work", "for-loop-1[1].work", "a.same", "b.same")
    made = Preview(a_plan(*(a_step(name, task=task_of(name)) for name in names), run_name="run"))
    assert made.steps["average"] is made.steps["if-1.average"]
    assert "average" in made.steps
    assert len(made.explain("work").splitlines()) == 2
    for name in ("work", "for-loop-1[*].work"):
        assert name not in made.steps
        with golden.error(KeyError, name, match=r"for-loop-1\[0\]\.work, for-"):
            made.steps[name]
    for ask in (made.explain, made.steps.__getitem__):
        with golden.error(UnknownStepError, "same", match=r"'same'.* a\.s"):
            ask("same")


def test_steps_go_by_the_names_that_their_authors_gave(golden):
    made = Preview(a_plan(a_step("train"), a_step("train-2", display_name="xgboost")))
    assert made.steps["xgboost"].name == "train-2"
    golden(made.explain("xgboost"))
    assert made.explain("xgboost") == made.explain("train-2")
    assert "xgboost" not in made.explain("train")


def test_a_display_name_is_there_from_the_pipeline_on():
    @dsl.component
    def step() -> None:
        pass

    @dsl.pipeline
    def named():
        step().set_display_name("Look at it")
        step()

    steps = preview(named, CLUSTER, durations={"Look at it": "7m"}, **QUICK).steps
    assert [each.display_name for each in steps.values()] == ["Look at it", ""]
    assert steps["step"].duration_seconds == 420.0


def test_a_long_version_is_not_told_to_its_end():
    with pytest.raises(MarkValueError) as caught:
        preview(one_step(place), CLUSTER, kube_version="9" * 10_000)
    assert len(str(caught.value)) < 200


def test_steps_are_a_mapping():
    steps = Preview(a_plan(a_step("a"), a_step("b"))).steps
    assert list(steps) == ["a", "b"]
    assert len(steps) == 2
    assert "a" in steps
    assert "c" not in steps
    assert steps.get("c") is None
    assert steps == {"a": steps["a"], "b": steps["b"]}
    assert repr(steps) == "<2 steps: a, b>"


def test_what_strangers_wrote_is_made_harmless():
    evil = a_step("<b>\x1b[31m", reason="</td>\x07", node="n\nn")
    made = Preview(a_plan(evil, run_name="\x1b]0;x\x07"))
    assert "\x1b" not in repr(made) + made.explain("<b>\x1b[31m")
    assert "<b>" not in made._repr_html_()


def test_in_a_notebook_it_shows_itself(taxi):
    page = Preview(taxi_plan())._repr_html_()
    assert "<script" not in page
    assert "home-edge-node" in page


@pytest.mark.parametrize(
    ("name", "read"),
    [("plan.json", json.loads), ("plan.yaml", yaml.safe_load), ("plan.yml", yaml.safe_load)],
)
def test_save_writes_the_document(name, read, tmp_path):
    path = Preview(taxi_plan()).save(tmp_path / name)
    assert read(path.read_text())["run"]["name"] == "taxi"
    assert [item.name for item in tmp_path.iterdir()] == [name]


def test_save_writes_a_report(tmp_path):
    path = Preview(taxi_plan()).save(str(tmp_path / "plan.HTML"))
    assert path.read_text().lstrip().lower().startswith("<!doctype html>")
    assert path.stat().st_mode & 0o044


def test_save_refuses_what_it_cannot_write(tmp_path):
    made = Preview(taxi_plan())
    with pytest.raises(MarkValueError, match=r"cannot tell the format; end it in \.html, \.json"):
        made.save(tmp_path / "plan.pdf")
    with pytest.raises(RunError, match="cannot be written"):
        made.save(tmp_path / "nowhere" / "plan.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(RunError, match="cannot be written"):
        made.save(tmp_path / "folder.json")
    assert [item.name for item in tmp_path.iterdir()] == ["folder.json"]


def test_a_table_for_pandas_has_a_row_for_each_step():
    plan = taxi_plan()
    table = Preview(plan).to_dataframe()
    assert list(table.index) == [step.name for step in plan.steps]
    assert list(table["node"]) == [step.node for step in plan.steps]
    longest = max(plan.steps, key=lambda step: step.phases.duration_seconds)
    assert table["run_seconds"].idxmax() == longest.name
    assert table["finish_seconds"].max() == pytest.approx(plan.figures.makespan_seconds)
    units = ("_seconds", "_milliseconds", "_cores", "_bytes")
    figures = [name for name in table.columns if table[name].dtype.kind in "if"]
    assert [name for name in figures if not name.endswith(units)] == []


def test_a_table_for_pandas_shows_what_a_step_does_not_have_as_missing():
    table = Preview(stuck_plan()).to_dataframe()
    nowhere = table[table["node"].isna()]
    assert len(nowhere) == 1
    assert nowhere["start_seconds"].isna().all()
    assert table["start_seconds"].dtype == float


def test_without_pandas_a_table_says_what_to_install(monkeypatch, golden):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingLibraryError) as caught:
        Preview(taxi_plan()).to_dataframe()
    assert isinstance(caught.value, ImportError)
    golden(str(caught.value))


def test_a_step_says_in_which_branch_or_after_what_it_runs(tmp_path):
    run = tmp_path / "run.yaml"
    run.write_text(
        """\
kind: Workflow
spec:
  entrypoint: main
  templates:
  - {name: w, container: {image: "alpine:3.20"}}
  - name: main
    dag:
      tasks:
      - {name: flip, template: w}
      - {name: heads, template: w, depends: flip, when: "{{tasks.flip.outputs.result}} == heads"}
      - {name: tails, template: w, depends: flip, when: "{{tasks.flip.outputs.result}} != heads"}
      - {name: clean, template: w, depends: flip.Failed}
      - {name: never, template: w, when: "1 == 2"}
"""
    )
    plan = preview(run, CLUSTER, **QUICK)
    heads, tails, clean = (plan.steps[name] for name in ("heads", "tails", "clean"))
    assert (heads.after_failure, clean.after_failure) == (False, True)
    (decided,) = heads.choices.keys() - clean.choices.keys()
    assert (heads.choices[decided], tails.choices[decided]) == ("heads", "tails")
    assert plan.explain("clean").startswith("clean (only after a failure) goes to ")
    with pytest.raises(UnknownStepError, match="'never' is in branch never, which this run does"):
        plan.explain("never")
    with pytest.raises(UnknownStepError, match="'never' is in branch never"):
        plan.what_if("step never cpu=2")
    document = json.loads(plan.save(tmp_path / "plan.json").read_text())
    by_name = {step["name"]: step for step in document["steps"]}
    assert by_name["clean"]["afterFailure"]
    assert by_name["tails"]["choices"] == tails.choices
    assert any("(heads | tails)" in line for line in document["assumptions"])


def test_an_author_s_name_of_a_branch_is_in_the_document(tmp_path):
    @dsl.pipeline(name="named")
    def named(limit: float = 1.0):
        with dsl.If(work(item=1).output > limit, name="good"):
            work(item=2)

    plan = preview(named, CLUSTER, **QUICK)
    (step,) = [each for each in plan.steps.values() if each.conditional]
    assert step.branch == ("good",)
    document = json.loads(plan.save(tmp_path / "plan.json").read_text())
    assert [each["branch"] for each in document["steps"]].count(["good"]) == 1
