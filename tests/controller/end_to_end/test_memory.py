"""What steps use is learned by the real planner: from a Prometheus, and from pods that were killed.

The Prometheus is a web server that answers its query.
"""

import json
import re
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import pytest

from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
from kfp_placement_engine.model.history import PastRun
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.small_pipelines import compiled, step
from tests.controlplane import housekeeping, objects
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.installation import PLANNER, Installation, InstallationOptions
from tests.support.web_server import sending, web_server

GIB = 2**30
USED = 200 * 2**20


def prometheus(request: BaseHTTPRequestHandler) -> None:
    """Every pod that is asked for has used 200 MiB."""
    (query,) = parse_qs(request.posted.decode())["query"]  # type: ignore[attr-defined]
    names = re.search(r'pod=~"([^"]*)"', query)
    assert names is not None
    samples = [{"metric": {"pod": name}, "value": [0, str(USED)]} for name in names[1].split("|")]
    data = {"resultType": "vector", "result": samples}
    sending(json.dumps({"status": "success", "data": data}).encode())(request)


@pytest.fixture(scope="module")
def installation(control_plane_programs):
    with (
        web_server({"/api/v1/query": prometheus}) as url,
        ControlPlane(PlaneOptions(simulate_pods=False)) as plane,
    ):
        options = InstallationOptions(
            features=("history",),
            policy={
                "engine": {"budget": "300ms"},
                "history": {"memory": "prometheus", "prometheusURL": url},
            },
            exit_codes={"*.s2(0).executor(0)": 137, "*.s2.executor(0)": 137},
        )
        room = {"cpu": "64", "memory": "256Gi", "pods": "500"}
        housekeeping.add_nodes(plane.api, objects.node("n0", room))
        with Installation(plane, options) as running:
            yield running


def two_steps() -> JsonObject:
    """The second one is killed, and tried no more."""

    def body() -> None:
        # Times are whole seconds: what takes less than one may begin and end in the same.
        first = step("s1", duration="2s")
        step("s2", first).set_memory_limit("2Gi").set_retry(0)

    return compiled("memory", body)


def learned_run(installation: Installation, team: str) -> PastRun | None:
    raws = installation.api.list("kfp-placement.dev/v1alpha1", "PipelineHistory", team)
    runs = [run for raw in raws for run in read_resource(PipelineHistory, raw).past_runs()]
    return runs[0] if runs else None


def test_peaks_and_kills_are_learned(installation):
    with installation.namespace() as team:
        run = installation.submit(two_steps(), team)
        assert installation.wait_for_end(run, team)["status"]["phase"] == "Failed"
        wait_until(lambda: learned_run(installation, team), "what it taught", 90)
        past = learned_run(installation, team)
        assert past is not None
        by_step = {each.identity.step: each for each in past.steps}
        assert (by_step["s1"].seconds or 0) > 0
        assert by_step["s2"].seconds is None
        assert (by_step["s1"].peak_bytes, by_step["s1"].killed_bytes) == (USED, None)
        assert (by_step["s2"].peak_bytes, by_step["s2"].killed_bytes) == (None, 2 * GIB)
        assert by_step["s1"].asked_bytes == 256 * 2**20
        log = "\n".join(installation.logs(400).values())
        assert "peak memory is not learned" not in log
        assert installation.is_ready(PLANNER)
