import json

from tests.cli.conftest import CLUSTER, RUN

TINY = (
    "apiVersion: kfp-placement.dev/v1alpha1\nkind: Cluster\n"
    "nodes: [{name: tiny, cpu: 1, memory: 1Gi}]\n"
)


def test_on_a_cluster(run):
    run.output("check", RUN, "--cluster", CLUSTER)


def test_json(run):
    document = json.loads(run.output("check", RUN, "-o", "json"))
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
    run.message(4, "check", RUN, "--cluster", "tiny.yaml", "--output", "report.txt")
    assert "unschedulable" in (tmp_path / "report.txt").read_text("utf-8")


def test_another_error(run, monkeypatch):
    from kfp_placement.check import rules
    from kfp_placement.check.findings import CheckReport, Finding, Severity

    report = CheckReport("taxi", (Finding(Severity.ERROR, "invalid-label", "too long", "train"),))
    monkeypatch.setattr(rules, "check_run", lambda _prepared: report)
    result = run("check", RUN)
    assert result.exit_code == 1
    assert "error: train: too long [invalid-label]" in result.stdout
