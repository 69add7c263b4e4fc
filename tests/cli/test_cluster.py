import json

import yaml

from tests.cli.conftest import CLUSTER, RUN

DUMP = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "one", "labels": {"zone": "a"}},
            "spec": {},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "secretive", "namespace": "default"},
            "spec": {
                "nodeName": "one",
                "containers": [
                    {
                        "name": "main",
                        "image": "nginx",
                        "env": [{"name": "PASSWORD", "value": "hunter2"}],
                        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                    }
                ],
            },
            "status": {"phase": "Running"},
        },
    ],
}


def test_a_dump_becomes_a_small_file_without_secrets(run, tmp_path):
    (tmp_path / "dump.json").write_text(json.dumps(DUMP), encoding="utf-8")
    result = run("cluster", "dump.json")
    assert result.exit_code == 0, result.stderr
    document = yaml.safe_load(result.stdout)
    assert document["kind"] == "Cluster"
    assert [node["name"] for node in document["nodes"]] == ["one"]
    assert "hunter2" not in result.stdout


def test_what_it_writes_can_be_planned_on(run, tmp_path):
    assert run("cluster", CLUSTER, "--output", "small.yaml").exit_code == 0
    result = run("plan", RUN, "-c", "small.yaml", "--budget", "50ms")
    assert result.exit_code == 0, result.stderr


def test_stdin(run):
    result = run("cluster", "-", stdin=json.dumps(DUMP))
    assert result.exit_code == 0
    assert "name: one" in result.stdout


def test_bad_dumps_leave_no_file(run, tmp_path):
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    result = run("cluster", "bad.json", "--output", "out.yaml")
    assert result.exit_code == 1
    assert [file.name for file in tmp_path.iterdir()] == ["bad.json"]


def test_warnings_go_to_stderr(run, tmp_path):
    odd = json.loads(json.dumps(DUMP))
    odd["items"][0]["status"]["allocatable"]["cpu"] = "many\x1b[31m"
    (tmp_path / "dump.json").write_text(json.dumps(odd), encoding="utf-8")
    result = run("cluster", "dump.json")
    assert "\x1b" not in result.stderr
