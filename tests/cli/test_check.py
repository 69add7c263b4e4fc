import json
from pathlib import Path

from tests.cli.conftest import CLUSTER, RUN
from tests.support.kubernetes import a_list, node_object

TINY = (
    "apiVersion: kfp-placement.dev/v1alpha1\nkind: Cluster\n"
    "nodes: [{name: tiny, cpu: 1, memory: 1Gi}]\n"
)


def test_nothing_but_notes(run):
    result = run("check", RUN)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("taxi: ")


def test_on_a_cluster(run):
    result = run("check", RUN, "--cluster", CLUSTER)
    assert result.exit_code == 0, result.stderr


def test_json(run):
    document = json.loads(run("check", RUN, "-o", "json").stdout)
    assert document["apiVersion"] == "kfp-placement.dev/v1alpha1"
    assert document["kind"] == "CheckReport"
    assert document["run"] == {"name": "taxi"}
    assert document["ok"] is True
    assert {key for finding in document["findings"] for key in finding} <= {
        "level",
        "code",
        "step",
        "message",
        "steps",
    }


def test_a_step_that_fits_nowhere(run, tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY, encoding="utf-8")
    result = run("check", RUN, "--cluster", "tiny.yaml", "--output", "report.txt")
    assert result.exit_code == 4, result.stderr
    assert result.stdout == ""
    assert "unschedulable" in (tmp_path / "report.txt").read_text("utf-8")


def test_another_error(run, monkeypatch):
    from kfp_placement.check import rules
    from kfp_placement.check.findings import CheckReport, Finding, Level

    report = CheckReport("taxi", (Finding(Level.ERROR, "invalid-label", "too long", "train"),))
    monkeypatch.setattr(rules, "check_run", lambda _prepared: report)
    result = run("check", RUN)
    assert result.exit_code == 1
    assert "error: train: too long [invalid-label]" in result.stdout


def test_the_policy_of_the_cluster_is_followed(run, golden):
    policy = {
        "apiVersion": "kfp-placement.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "default"},
        "spec": {"latencyRules": {"stepTypes": []}},
    }
    node = node_object("n1", labels={"HOME-EDGE": "9ms"})
    Path("plain.json").write_text(json.dumps(a_list(node)), encoding="utf-8")
    Path("ruled.json").write_text(json.dumps(a_list(node, policy)), encoding="utf-8")
    assert "latencyRules.stepTypes" not in run("check", RUN, "-c", "plain.json").stdout
    # The sample's step with a location has a limit, which holds for any type.
    package = Path(RUN).read_text("utf-8").replace('"maxLatency":"20ms",', "")
    Path("run.yaml").write_text(package, encoding="utf-8")
    result = run("check", "run.yaml", "-c", "ruled.json")
    golden(result.stdout)
    assert "latencyRules.stepTypes" in result.stdout
