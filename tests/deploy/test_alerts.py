"""Alerts, evaluated by Prometheus' promtool where it is installed, for series as we write them."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.support.checkout import ROOT

PROMTOOL = shutil.which("promtool")
pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="needs promtool, of Prometheus")

RULES = yaml.safe_load((ROOT / "deploy/features/prometheus/alerts.yaml").read_text("utf-8"))["spec"]

REFUSED = "apiserver_validating_admission_policy_check_total"
AGE, LEADS = "kfp_placement_watch_age_seconds", "kfp_placement_leading"
NAN = "NaN " * 100
STALE = "_ " * 100
HEALTHY = {
    "plan": {
        f'{LEADS}{{process="plan"}}': "1x300",
        f'{AGE}{{kind="PipelinePlacement"}}': "3x300",
        f'{AGE}{{kind="Pod"}}': "0+20x2 0+20x2 60x300",
        "kfp_placement_scheduler_ready": "1x300",
        "kfp_placement_paused": "0x300",
        "kfp_placement_queue_lease_age_seconds": "0.8x300",
        "kfp_placement_promise_shortfall": NAN + "0.05x200",
        'kfp_placement_api_errors_total{kind="RunRequest",reason="Conflict"}': "0+1x300",
    },
    "queue": {
        f'{LEADS}{{process="queue"}}': "1x300",
        "kfp_placement_scheduler_ready": "0x300",
        "kfp_placement_paused": "0x300",
        "kfp_placement_queue_lease_age_seconds": "0x300",
        "kfp_placement_promise_shortfall": NAN,
        'kfp_placement_longest_wait_seconds{namespace="team"}': "0+60x300",
    },
    "extend": {
        f'{AGE}{{kind="PipelinePlacement"}}': "3x300",
        "kfp_placement_scheduler_ready": "1x300",
        "kfp_placement_paused": "0x300",
        'kfp_placement_pods_rejected_total{scheduler="ours"}': "0x300",
        'kfp_placement_pods_rejected_total{scheduler="another"}': "0x300",
    },
    "admit": {
        f'{AGE}{{kind="PlacementPolicy"}}': "3x300",
        "kfp_placement_scheduler_ready": "0x300",
        'kfp_placement_pods_rejected_total{scheduler="ours"}': "0x300",
    },
    "kube-apiserver": {
        f'{REFUSED}{{policy="kfp-placement-hold",enforcement_action="allow"}}': "0+9x300",
        f'{REFUSED}{{policy="of-others",enforcement_action="deny"}}': "0+9x300",
    },
}
"""Series of each process in a minute's steps, as scraped from an installation at work."""


def died(*processes: str) -> dict[str, dict[str, str]]:
    """Return series of processes that are gone after 100 minutes."""
    return {each: dict.fromkeys(HEALTHY[each], "1x100") for each in processes}


def denied(policy: str, values: str) -> dict[str, dict[str, str]]:
    series = f'{REFUSED}{{policy="{policy}",enforcement_action="deny"}}'
    return {"kube-apiserver": {series: values}}


CASES: dict[str, tuple[Mapping[str, Mapping[str, str]], int, set[str]]] = {
    "healthy": ({}, 130, set()),
    "a-second-planner": ({"plan-2": {f'{LEADS}{{process="plan"}}': "0x300"}}, 130, set()),
    "no-planner": (died("plan"), 115, {"KfpPlacementHasNoPlanner"}),
    "nobody-leads": (
        {"plan": {f'{LEADS}{{process="plan"}}': "1x100 0x200"}},
        115,
        {"KfpPlacementHasNoPlanner"},
    ),
    "no-scheduler": (
        {each: {"kfp_placement_scheduler_ready": "1x100 0x200"} for each in ("plan", "extend")},
        115,
        {"KfpPlacementHasNoScheduler"},
    ),
    "no-extender": (died("extend"), 115, {"KfpPlacementHasNoExtender"}),
    "no-queue": (
        {"plan": {"kfp_placement_queue_lease_age_seconds": "1x100 0+60x200"}},
        115,
        {"KfpPlacementHasNoQueue"},
    ),
    "nobody-to-tell-of-queues": (
        died("plan", "queue"),
        115,
        {"KfpPlacementHasNoPlanner", "KfpPlacementHasNoQueue"},
    ),
    "waits-a-day": (
        {"queue": {'kfp_placement_longest_wait_seconds{namespace="team"}': "80400+60x300"}},
        120,
        {"KfpPlacementRunsWaitLong"},
    ),
    "hangs": (
        {"plan": {f'{AGE}{{kind="Pod"}}': "5x100 0+60x200"}},
        104,
        {"KfpPlacementCannotRead"},
    ),
    "forbidden": (
        {
            "plan": {
                'kfp_placement_api_errors_total{kind="Pod",verb="patch",reason="Forbidden"}': STALE
                + "1+1x200"
            }
        },
        120,
        {"KfpPlacementIsRefused"},
    ),
    "account": (
        denied("kfp-placement-accounts", STALE + "1x200"),
        105,
        {"KfpPlacementAccountIsLimited"},
    ),
    "account-again": (
        denied("kfp-placement-accounts-workflows", "4x100 5x200"),
        105,
        {"KfpPlacementAccountIsLimited"},
    ),
    "account-long-ago": (denied("kfp-placement-accounts", STALE + "1x200"), 120, set()),
    "run-changed": (
        denied("kfp-placement-hold", STALE + "1x200"),
        105,
        {"KfpPlacementRefusesChangesOfRuns"},
    ),
    "paused": (
        {"extend": {"kfp_placement_paused": "0x100 1x200"}},
        170,
        {"KfpPlacementIsPaused"},
    ),
    "promises": (
        {"plan": {"kfp_placement_promise_shortfall": NAN + "0.2x200"}},
        120,
        {"KfpPlacementBreaksPromises"},
    ),
    "rejected": (
        {"extend": {'kfp_placement_pods_rejected_total{scheduler="ours"}': "0x100 1x200"}},
        115,
        {"KfpPlacementPodsAreRejected"},
    ),
}
"""What differs from a healthy installation, the minute, and the alerts that fire then."""


def _series(changes: Mapping[str, Mapping[str, str]]) -> list[dict[str, str]]:
    series = []
    for process in dict.fromkeys((*HEALTHY, *changes)):
        for name, values in {**HEALTHY.get(process, {}), **changes.get(process, {})}.items():
            bare, _, labels = name.rstrip("}").partition("{")
            target = f'{labels},pod="{process}",instance="{process}:8080"'.lstrip(",")
            if "namespace=" not in labels:
                target += ',namespace="kfp-placement"'
            series.append({"series": f"{bare}{{{target}}}", "values": values.strip()})
    return series


def test_each_alert_fires_when_it_should_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": RULES["groups"]}))
    tests = [
        {
            "name": name,
            "interval": "1m",
            "input_series": _series(changes),
            "promql_expr_test": [
                {
                    "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": f"{minute}m",
                    "exp_samples": [
                        {"labels": f'{{alertname="{each}"}}', "value": 1} for each in sorted(firing)
                    ],
                }
            ],
        }
        for name, (changes, minute, firing) in CASES.items()
    ]
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(document))
    assert PROMTOOL is not None
    command = [PROMTOOL, "test", "rules", str(tmp_path / "tests.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    fired = set().union(*(firing for _, _, firing in CASES.values()))
    assert fired == {rule["alert"] for group in RULES["groups"] for rule in group["rules"]}
