"""Whatever is wrong with a file: one line that names it, the right code, never a traceback."""

import json
import os
import random

import pytest

from kfp_placement_engine.contract.keys import API_VERSION
from tests.cli.conftest import CLUSTER, RUN

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

RUNS = {
    "empty": b"",
    "binary": random.Random(0).randbytes(64) + b"\0",
    "gzip": b"\x1f\x8b\x08\x00abc",
    "no YAML": b"a: [1, 2",
    "no UTF-8": b"name: \xff\xfe\xfa",
    "bomb": BOMB.encode(),
    "anchor to itself": b"a: &a [*a]",
    "deep": b"[" * 5000,
    "unknown version": b"apiVersion: argoproj.io/v9\nkind: Workflow\n",
    "null": b"null",
    "huge": b"a" * (16 * 2**20 + 1),
}

CLUSTERS = {
    "empty": b"",
    "no nodes": b"apiVersion: kfp-placement.dev/v1alpha1\nkind: Cluster\nnodes: []\n",
    "no list": b"kind: List\napiVersion: v1\nitems: 7\n",
    "negative": b"apiVersion: kfp-placement.dev/v1alpha1\nkind: Cluster\n"
    b"nodes: [{name: a, cpu: -2, memory: 1Gi}]\n",
    "absurd": b"apiVersion: kfp-placement.dev/v1alpha1\nkind: Cluster\n"
    b"nodes: [{name: a, cpu: 1, memory: 1e99}]\n",
    "twice": b"apiVersion: kfp-placement.dev/v1alpha1\nkind: Cluster\n"
    b"nodes: [{name: a, cpu: 1, memory: 1Gi}, {name: a, cpu: 1, memory: 1Gi}]\n",
    "unknown version": b"apiVersion: kfp-placement.dev/v7\nkind: Cluster\nnodes: []\n",
    "bomb": BOMB.encode(),
}


def check_refused(result, name="bad.yaml"):
    assert result.exit_code == 1, result.stderr
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert name in line
    assert "should not have happened" not in line
    assert line.isprintable()


def check_bad_file(run, tmp_path, data, *arguments):
    (tmp_path / "bad.yaml").write_bytes(data)
    check_refused(run(*arguments, "--output", "out.json"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.yaml"]


@pytest.mark.parametrize("data", RUNS.values(), ids=RUNS)
def test_runs(run, tmp_path, data):
    check_bad_file(run, tmp_path, data, "check", "bad.yaml", "-c", CLUSTER)


@pytest.mark.parametrize("data", CLUSTERS.values(), ids=CLUSTERS)
def test_clusters(run, tmp_path, data):
    check_bad_file(run, tmp_path, data, "plan", RUN, "-c", "bad.yaml", "--budget", "50ms")


@pytest.mark.parametrize("data", [b"train: soon", b"[train]", b"nosuch: 5m", b"", b"train: .nan"])
def test_durations(run, tmp_path, data):
    check_bad_file(run, tmp_path, data, "plan", RUN, "-c", CLUSTER, "--durations", "bad.yaml")


def test_folders(run, tmp_path):
    check_refused(run("plan", str(tmp_path), "-c", CLUSTER), "holds neither objects of Argo")
    check_refused(run("plan", RUN, "-c", str(tmp_path)), "is a folder")


def test_no_rights(run, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    secret = tmp_path / "secret.yaml"
    secret.write_text("x", encoding="utf-8")
    secret.chmod(0)
    check_refused(run("check", "secret.yaml"), "secret.yaml")


@pytest.mark.parametrize("command", [["plan", RUN, "-c", CLUSTER], ["check", RUN]])
@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("rwos=5", "the run has no parameter 'rwos'"),
        ("rows=many", "argument rows: 'many' is not a whole number"),
    ],
)
def test_an_argument_that_the_pipeline_does_not_take_is_a_usage_error(
    run, command, argument, problem
):
    stderr = run.message(2, *command, "--arg", argument)
    assert stderr.startswith("Usage: ")
    assert problem in stderr


def test_python_files_need_a_name(run, tmp_path):
    (tmp_path / "pipeline.py").write_text("", encoding="utf-8")
    check_refused(run("check", "pipeline.py"), "name the pipeline in it: pipeline.py:NAME")


def test_a_bare_word_may_have_meant_a_module(run, golden):
    golden(run.message(3, "check", "mypipe"))


def test_names_that_would_steer_a_terminal(run):
    stderr = run.message(3, "check", "\x1b]0;pwned\x07.yaml")
    assert stderr == "Error: \\x1b]0;pwned\\x07.yaml: no such file\n"


def test_usage_errors_are_escaped_too(run):
    assert "\x1b" not in run.message(2, "plan", "--\x1b[31mx")


def wfformat(*names):
    tasks = [{"name": name, "id": name, "parents": [], "children": []} for name in names]
    return {
        "name": "made up",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": tasks, "files": []},
            "execution": {
                "makespanInSeconds": 1,
                "executedAt": "2026-01-01T00:00:00Z",
                "tasks": [{"id": name, "runtimeInSeconds": 1} for name in names],
            },
        },
    }


def test_a_huge_run_is_refused(run, tmp_path):
    document = json.dumps(wfformat(*(f"t{index}" for index in range(30_000))))
    (tmp_path / "huge.json").write_text(document, encoding="utf-8")
    check_refused(run("plan", "huge.json", "-c", CLUSTER), "huge.json")


def test_names_that_would_steer_a_terminal_show_escaped(run, tmp_path):
    name = "\x1b]0;pwned\x07\x9b31m"
    (tmp_path / "run.json").write_text(json.dumps(wfformat(name)), encoding="utf-8")
    for chosen in ("table", "wide", "json", "yaml", "html"):
        result = run("plan", "run.json", "-c", CLUSTER, "--budget", "20ms", "-o", chosen)
        assert result.exit_code in (0, 1), result.stderr
        assert all(line.isprintable() for line in result.output.split("\n"))


_FOR_CLUSTER = "a cluster is what `kubectl get nodes,pods,pvc,pv,resourcequotas,limitranges"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Name: w\nRoles: <none>\nLabels: a=b\nTaints: <none>\n", _FOR_CLUSTER),
        (
            "NAME   STATUS   ROLES    AGE   VERSION\nw      Ready    <none>   1d    v1\n",
            _FOR_CLUSTER,
        ),
        ("NAME   STATUS   AGE\nflow   Running  1d\n", "give what `kubectl get KIND NAME -o yaml`"),
        ("Name: flow\nNamespace: team\nLabels: a=b\n", "give what `kubectl get KIND NAME -o yaml`"),
        ("metadata: {name: {{ .Values.name }}}\n", "is a Helm template"),
    ],
)
@pytest.mark.parametrize("option", ["--cluster", "--with"])
def test_text_in_place_of_objects_is_recognised(run, tmp_path, option, text, answer):
    (tmp_path / "given.txt").write_text(text)
    assert answer in run.message(1, "plan", RUN, option, "given.txt")


def test_a_cluster_file_with_values_of_helm_is_recognised(run, tmp_path):
    (tmp_path / "c.yaml").write_text(
        f"apiVersion: {API_VERSION}\nkind: Cluster\n"
        "nodes: [{name: '{{ .Values.node }}', cpu: 4, memory: 8Gi}]\n"
    )
    assert "is a Helm template" in run.message(1, "plan", RUN, "--cluster", "c.yaml")
