import json

import yaml

from tests.cli.conftest import CLUSTER, RUN
from tests.support.kubernetes import a_list, container, node_object, pod_object

SECRET = container({"cpu": "1"}, env=[{"name": "PASSWORD", "value": "hunter2"}])
DUMP = a_list(node_object("one"), pod_object("secretive", "one", containers=[SECRET]))


def test_a_dump_becomes_a_small_file_without_secrets(run, tmp_path):
    (tmp_path / "dump.json").write_text(json.dumps(DUMP), encoding="utf-8")
    stdout = run.output("cluster", "dump.json")
    document = yaml.safe_load(stdout)
    assert document["kind"] == "Cluster"
    assert [node["name"] for node in document["nodes"]] == ["one"]
    assert "hunter2" not in stdout


def test_what_it_writes_can_be_planned_on(run, tmp_path):
    assert run("cluster", CLUSTER, "--output", "small.yaml").exit_code == 0
    run.output("plan", RUN, "-c", "small.yaml", "--budget", "50ms")


def test_stdin(run):
    assert "name: one" in run.output("cluster", "-", stdin=json.dumps(DUMP))


def test_bad_dumps_leave_no_file(run, tmp_path):
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    run.message(1, "cluster", "bad.json", "--output", "out.yaml")
    assert [file.name for file in tmp_path.iterdir()] == ["bad.json"]


def test_warnings_go_to_stderr(run, tmp_path):
    odd = json.loads(json.dumps(DUMP))
    odd["items"][0]["status"]["allocatable"]["cpu"] = "many\x1b[31m"
    (tmp_path / "dump.json").write_text(json.dumps(odd), encoding="utf-8")
    result = run("cluster", "dump.json")
    assert "\x1b" not in result.stderr
