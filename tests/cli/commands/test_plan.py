import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kfp_placement import example_cluster
from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement_engine.readers import read_cluster, read_cluster_file
from tests.cli.conftest import CLUSTER, RUN
from tests.support.html_pages import parse_page
from tests.support.json_schemas import assert_described
from tests.support.packages import a_package, a_task, inputs, output_of
from tests.support.plans import a_plan, a_step, unplaced_step
from tests.support.web_server import sending, web_server


def test_exit_codes_are_a_contract():
    numbers = {code.name: int(code) for code in ExitCode}
    assert numbers == {
        "OK": 0,
        "FAILURE": 1,
        "USAGE": 2,
        "NOT_FOUND": 3,
        "UNSCHEDULABLE": 4,
        "TIMED_OUT": 5,
        "INTERRUPTED": 130,
    }


def test_a_table_on_stdout_and_nothing_else(plan, planner, golden):
    stdout = plan.output()
    golden(stdout)
    assert stdout.startswith("taxi: ")
    assert planner.graph.name == "taxi"
    assert planner.cluster.nodes[0].name == "nitos-cloud-node"


def test_defaults(plan, planner):
    plan()
    options = planner.options
    assert (options.budget_seconds, options.generations, options.seed) == (2.0, None, 0)
    assert (options.dispatch, options.objective) == ("auto", "completion")
    assert (options.kube_version, options.compare) == ((1, 36), ("kube-default", "heft"))
    assert not options.marked_only


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--seed", "7"], "seed", 7),
        (["--budget", "500ms"], "budget_seconds", 0.5),
        (["--generations", "12"], "generations", 12),
        (["--objective", "paper"], "objective", "paper"),
        (["--dispatch", "ordered"], "dispatch", "ordered"),
        (["--kube-version", "1.30"], "kube_version", (1, 30)),
        (["--kube-version", "v1.36.3-gke.1"], "kube_version", (1, 36)),
        (["--compare", "fifo,heft,fifo"], "compare", ("fifo", "heft")),
        (["--compare", "none"], "compare", ()),
        (["--marked-only"], "marked_only", True),
    ],
)
def test_options_of_the_planner(plan, planner, arguments, name, value):
    assert plan(*arguments).exit_code == 0
    assert getattr(planner.options, name) == value


def test_options_of_the_run(plan, planner, tmp_path):
    (tmp_path / "times.yaml").write_text("train: 1h\nfetch: 45\n", encoding="utf-8")
    plan.output(
        *("--durations", tmp_path / "times.yaml", "--duration", "train=2h"),
        *("--assume-cached", "fetch-2", "--arg", "rows=5000"),
    )
    steps = planner.steps
    assert steps["train"].duration_seconds == 7200
    assert steps["fetch"].duration_seconds == 45
    assert steps["train"].duration_source == "given"
    assert steps["predict"].duration_source == "hint"
    assert [name for name, step in steps.items() if step.assumed_cached] == ["fetch-2"]


def test_the_namespace_of_the_run(plan, planner, golden):
    plan()
    assert planner.graph.namespace == ""
    assert plan("--namespace", "team-a").exit_code == 0
    assert planner.graph.namespace == "team-a"
    stderr = plan.message(2, "--namespace", "Team_A")
    golden(stderr)


def test_an_unknown_loop_is_a_usage_error(plan, planner, golden):
    stderr = plan.message(2, "--loop-width", "for-loop-1=5")
    golden(stderr)


@pytest.mark.parametrize(("choice", "steps"), [("yes", 2), ("yes=true", 2), ("yes=false", 1)])
def test_branches_are_chosen(run, planner, tmp_path, choice, steps):
    condition = {"condition": "inputs.parameter_values['x'] == 'a'"}
    tasks = {
        "ask": a_task(),
        "yes": a_task("body", inputs=inputs(x=output_of("ask")), triggerPolicy=condition),
    }
    path = tmp_path / "pipeline.yaml"
    path.write_text(yaml.safe_dump_all(a_package(tasks)))
    assert run("plan", path, "--branch", choice).exit_code == ExitCode.OK
    assert len(planner.steps) == steps
    for given in (["--branch", "no"], ["--branch", "yes=maybe"], ["--branch", "yes"] * 2):
        assert run("plan", path, *given).exit_code == ExitCode.USAGE


def test_every_baseline_of_the_engine_can_be_compared():
    from kfp_placement.cli.option_types import BASELINES as OFFERED
    from kfp_placement_engine.search.baselines import BASELINES

    assert sorted(OFFERED) == sorted(BASELINES)


@pytest.mark.parametrize("chosen", ["json", "yaml"])
def test_documents(plan, planner, chosen):
    result = plan("-o", chosen)
    document = json.loads(result.stdout) if chosen == "json" else yaml.safe_load(result.stdout)
    assert_described(document, "plan")
    assert document["kind"] == "Plan"
    assert result.stderr == ""


def test_html(plan, planner):
    page = parse_page(plan("-o", "html").stdout)
    assert page.unbalanced == []
    assert "Time line" in page.text


def test_wide_has_reasons(plan, planner):
    assert planner.plan.steps[0].explanation.sentence in plan("-o", "wide").stdout


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("p.html", "<!doctype html>"),
        ("p.json", "{"),
        ("p.yaml", "apiVersion:"),
        ("p.yml", "apiVersion:"),
        ("p.TXT", "taxi: "),
        ("plain", "taxi: "),
    ],
)
def test_the_ending_of_the_file_names_the_format(plan, planner, tmp_path, name, start):
    result = plan("--output", name)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == f"Wrote {name}\n"
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_the_name_of_the_file_cannot_steer_a_terminal(plan, planner):
    assert plan("--output", "\x1b[31m\u202e.json").stderr == "Wrote \\x1b[31m\\u202e.json\n"


def test_a_format_asked_for_wins_over_the_ending(plan, planner, tmp_path):
    plan("--output", "p.html", "-o", "json")
    assert json.loads((tmp_path / "p.html").read_text(encoding="utf-8"))["kind"] == "Plan"


@pytest.mark.parametrize("chosen", ["table", "wide", "json", "yaml", "html"])
def test_unschedulable_is_printed_and_exit_code_4(plan, planner, chosen, golden):
    planner.plan = a_plan(a_step(), unplaced_step("huge\x1b[31m"))
    result = plan("-o", chosen)
    assert result.exit_code == ExitCode.UNSCHEDULABLE
    golden(result.stderr)
    assert "no node has 512 CPU" in result.stdout


def test_unschedulable_is_written_too(plan, planner, tmp_path, golden):
    planner.plan = a_plan(*(unplaced_step(f"huge-{index}") for index in range(9)))
    stderr = plan.message(4, "--output", "p.json")
    assert len(json.loads((tmp_path / "p.json").read_text("utf-8"))["unschedulable"]) == 9
    golden(stderr)


@pytest.mark.parametrize(
    "options",
    [
        ["--budget", "soon"],
        ["--budget=-1s"],
        ["--kube-version", "new"],
        ["--kube-version", "1.2"],
        ["--output", "plan.pdf"],
        ["--compare", "heft,oracle"],
        ["--duration", "train"],
        ["--duration", "train=soon"],
        ["--duration", "train=1m", "--duration", "train=2m"],
        ["--duration", "trian=1m"],
        ["--assume-cached", "trian"],
        ["--loop-width", "for-loop-1=many"],
        ["--loop-width", "for-loop-1=20001"],
        ["--arg", "rows"],
    ],
    ids=" ".join,
)
def test_usage_errors(plan, planner, options, golden):
    result = plan(*options)
    golden(result.stderr)
    check_usage_error(result, planner)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", "-1"], "'-1' is not a whole number from 0 to 9223372036854775807"),
        (["--seed", "9" * 20], "is not a whole number"),
        (["--objective", "best"], "'best' is not one of 'completion', 'makespan', 'paper'"),
        (["--makespan-within", "soon"], "'soon' is not a limit of the makespan; write"),
        (["--dispatch", "now"], "'now' is not one of"),
        (["-o", "pdf"], "'pdf' is not one of 'table', 'wide', 'json', 'yaml', 'html'"),
        (["--nonsense"], "No such option"),
    ],
)
def test_usage_errors_in_the_words_of_click(plan, planner, options, message):
    result = plan(*options)
    assert message in result.stderr
    check_usage_error(result, planner)


def check_usage_error(result, planner):
    assert result.exit_code == ExitCode.USAGE
    assert "Try 'cli plan --help'." in result.stderr
    assert result.stdout == ""
    assert not planner.calls


def test_what_is_missing(run, planner):
    assert "Missing argument 'RUN'" in run("plan").stderr


def test_an_example_is_a_cluster(run, planner):
    assert run("plan", RUN, "-c", "example:uneven").exit_code == 0
    assert planner.cluster == example_cluster("uneven").noun
    result = run("cluster", "example:uneven")
    assert read_cluster(result.stdout.encode(), name="").nodes == planner.cluster.nodes


@pytest.mark.parametrize("name", ["example:unevn", "edge"])
def test_an_example_that_is_not_there(run, planner, golden, name):
    golden(run.message(ExitCode.NOT_FOUND, "plan", RUN, "-c", name))


def test_a_cluster_may_be_at_a_url(run, planner, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with web_server({"/cluster.yaml": sending(Path(CLUSTER).read_bytes())}) as address:
        assert run("plan", RUN, "-c", f"{address}/cluster.yaml").exit_code == 0
        result = run("check", RUN, "-c", f"{address}/missing.yaml")
    assert planner.cluster == replace(read_cluster_file(CLUSTER), source=f"{address}/cluster.yaml")
    assert result.exit_code == ExitCode.NOT_FOUND
    assert result.stderr == (
        f"Error: {address}/missing.yaml: 127.0.0.1 has no such file (404 Not Found)\n"
    )


def test_a_run_by_url_is_refused(run):
    stderr = run.message(ExitCode.FAILURE, "plan", "https://example.org/run.yaml")
    assert stderr.startswith("Error: https://example.org/run.yaml: is a URL; download ")


def test_files_that_are_not_there(run, planner):
    others = "; a cluster may also be a URL, or an example such as example:equal"
    for arguments, hint in (
        (["no.yaml", "-c", CLUSTER], ""),
        ([RUN, "-c", "no.yaml"], others),
        ([RUN, "-c", CLUSTER, "--durations", "no.yaml"], ""),
    ):
        stderr = run.message(ExitCode.NOT_FOUND, "plan", *arguments)
        assert stderr == f"Error: no.yaml: no such file{hint}\n"


def test_a_run_given_as_cluster_is_called_one(run, planner, golden):
    stderr = run.message(1, "plan", RUN, "-c", RUN)
    golden(stderr.replace(RUN, "FILE"))


@pytest.mark.parametrize(
    ("path", "arguments"),
    [(RUN, ["-", "-c", CLUSTER]), (CLUSTER, [RUN, "-c", "-"])],
    ids=["run", "cluster"],
)
def test_stdin(run, planner, path, arguments):
    with open(path, "rb") as file:
        result = run("plan", *arguments, stdin=file.read())
    assert result.exit_code == 0, result.stderr
    assert planner.graph.name == "taxi"


def test_stdin_once(run, planner):
    assert "cannot both come from stdin" in run.message(2, "plan", "-", "-c", "-", stdin="")


def test_the_same_generations_reproduce_the_plan(run):
    def once():
        text = run("plan", RUN, "-c", CLUSTER, "--generations", "3", "-o", "json").stdout
        return {key: value for key, value in json.loads(text).items() if key != "planningSeconds"}

    assert once() == once()


REFUSED = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: refused}
spec:
  entrypoint: main
  templates:
  - name: main
    steps: [[{name: load, template: load}], [{name: train, template: train}]]
  - name: load
    container:
      image: python:3.12
      resources: {requests: {memory: 4Gi}, limits: {memory: 2Gi}}
  - name: train
    container: {image: python:3.12}
"""


def test_a_run_whose_pods_kubernetes_refuses_has_no_end(run, tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(REFUSED)
    result = run("plan", file)
    assert result.exit_code == ExitCode.UNSCHEDULABLE
    assert "The run cannot succeed: step load is refused." in result.stdout
    assert "after load, which gets no node" in result.stdout
    assert result.stdout.count("request 4Gi is above its limit 2Gi") == 1
    assert result.stderr == "1 step of 2 gets no node: load\n"
    document = json.loads(run("plan", file, "-o", "json").stdout)
    assert document["makespanSeconds"] is None
    assert "Kubernetes will refuse its pod" in document["unschedulable"][0]["reason"]
    changed = run("plan", file, "--what-if", "load memory=1Gi").stdout
    assert "With load memory=1Gi the run ends after" in changed


def test_several_refused_steps_are_said_to_be_refused(run, tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(REFUSED.replace("container: {image: python:3.12}", TOO_MUCH))
    assert "The run cannot succeed: 2 steps are refused (load, train)." in run("plan", file).stdout


TOO_MUCH = "container: {image: b, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}"
