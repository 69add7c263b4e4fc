"""The reference of metrics, the metrics and the alerts say the same."""

import re
import subprocess
import sys

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from kfp_placement_controller import admit_process, metrics
from kfp_placement_controller.kinds import PLACEMENTS
from kfp_placement_controller.settings import AdmitSettings
from tests.support.checkout import ROOT
from tests.support.manifests import of_kind, rendered

PAGE = (ROOT / "docs/reference/metrics.md").read_text("utf-8")
RULES = yaml.safe_load((ROOT / "deploy/features/prometheus/alerts.yaml").read_text("utf-8"))
GUIDE = (ROOT / "docs/guides/runs-in-a-cluster.md").read_text("utf-8")


DESCRIBED = {
    name: re.findall(r"`(\w+)`", cell)
    for name, cell in re.findall(r"^\| `(kfp_placement_\w+)` \|([^|]*)\|", PAGE, re.MULTILINE)
}
"""The labels of each metric."""


def defined() -> dict[str, MetricWrapperBase]:
    """Return the metrics, by their names as scraped."""
    made = [each for each in vars(metrics).values() if isinstance(each, MetricWrapperBase)]
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: each
        for each in made
        for family in each.describe()
    }


def has_labels(metric: MetricWrapperBase, labels: list[str]) -> bool:
    """Return whether these are the labels of a metric, all of them."""
    try:
        metric.labels(**dict.fromkeys(labels, "tried"))
    except ValueError as error:
        return not labels and "No label names" in str(error)
    metric.remove(*["tried"] * len(labels))
    return True


def alerts() -> list[dict[str, object]]:
    return [rule for group in RULES["spec"]["groups"] for rule in group["rules"]]


def test_every_metric_is_described_and_no_other():
    assert sorted(DESCRIBED) == sorted(defined())
    assert all(has_labels(metric, DESCRIBED[name]) for name, metric in defined().items())


def test_every_alert_is_described_and_no_other():
    for alert in alerts():
        assert f"\n| `{alert['alert']}` | " in PAGE
        # Whoever is called finds it in the guide.
        assert f"`{alert['alert']}`" in GUIDE
    assert PAGE.count("\n| `KfpPlacement") == len(alerts())


def test_alerts_ask_for_metrics_and_labels_that_exist():
    for alert in alerts():
        asked = re.findall(r"(kfp_placement_\w+)(?:\{([^}]*)\})?", str(alert["expr"]))
        # The API server counts what admission refuses.
        assert asked or "apiserver_validating_admission_policy" in str(alert["expr"])
        for name, matchers in asked:
            assert set(re.findall(r"(\w+)=", matchers)) <= set(DESCRIBED[name])


def test_alerts_on_an_increase_count_the_first_value_of_a_new_series_too():
    """Of the API server: our own counters are there from the start, with 0."""
    asked = [
        str(alert["expr"]) for alert in alerts() if "increase(apiserver_" in str(alert["expr"])
    ]
    assert len(asked) == 2
    for expression in asked:
        ((counter, window),) = set(re.findall(r"increase\((\w+)(?:{[^}]*})?\[(\w+)\]", expression))
        assert re.search(
            rf"> 0 or {counter}\b.* unless {counter} offset {window}\) > 0$", expression
        )


def test_what_admission_refuses_is_described_and_alerts_count_all_of_it():
    name = "apiserver_validating_admission_policy_check_total"
    assert f"\n| `{name}` | " in PAGE
    counted = {
        policy
        for alert in alerts()
        for policy in re.findall(r'policy=~?"([^"]*)"', str(alert["expr"]))
    }
    items = rendered("queue", "prometheus")
    for policy in of_kind(items, "ValidatingAdmissionPolicy"):
        assert any(re.fullmatch(each, policy["metadata"]["name"]) for each in counted)


def test_metrics_named_in_the_guide_exist():
    assert set(re.findall(r"kfp_placement_\w+", GUIDE)) <= set(defined())


def test_only_an_extender_has_both_series_by_which_it_is_missed():
    """Counters with labels are there as soon as their module is imported."""
    (missed,) = (each for each in alerts() if each["alert"] == "KfpPlacementHasNoExtender")
    assert 'kind="PipelinePlacement"} and on (instance) kfp_placement_pods_rejected_total' in str(
        missed["expr"]
    )
    settings = AdmitSettings(webhook_certificate=ROOT, webhook_key=ROOT, queues=True)
    assert PLACEMENTS not in [each.kind for each in admit_process.needs(settings)]
    for process, is_counted in {"plan": False, "queue": False, "extend": True}.items():
        program = (
            f"import kfp_placement_controller.{process}_process, prometheus_client as client;"
            "print('kfp_placement_pods_rejected_total{' in client.generate_latest().decode())"
        )
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert shown.stdout.strip() == str(is_counted), process


@pytest.mark.parametrize("process", ["plan", "queue"])
def test_an_alert_fires_where_no_process_is_left_that_could_tell(process):
    """The metrics of a dead process are not there, and neither is what another said of it."""
    missing = f'absent(kfp_placement_leading{{process="{process}"}}'
    assert [alert for alert in alerts() if missing in str(alert["expr"])]
