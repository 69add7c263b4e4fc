"""Kueue beside the project: it works on the control plane, and what it needs is looked for."""

import pytest

from tests.controlplane.exceptions import ApiError, ControlPlaneUnavailableError
from tests.controlplane.kueue.program import KueueProgram
from tests.controlplane.kueue.running import KUEUE_VERSION
from tests.controlplane.objects import an_object


@pytest.mark.cluster
def test_it_checks_workloads_by_its_webhook(kueue):
    requests = {"pods": "1"}
    container = {"name": "unit", "image": "none", "resources": {"requests": requests}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pod_set = {"name": "units", "count": 1, "template": template}
    spec = {"queueName": "none", "podSets": [pod_set]}
    workload = an_object(KUEUE_VERSION, "Workload", "trial", "default", spec=spec)
    with pytest.raises(ApiError, match="reserved for internal kueue use"):
        kueue.plane.api.create(workload, dryRun="All")
    requests.clear()
    requests["cpu"] = "1"
    kueue.plane.api.create(workload, dryRun="All")


def test_a_folder_without_the_program_is_refused(tmp_path):
    with pytest.raises(ControlPlaneUnavailableError, match="is not a program"):
        KueueProgram(tmp_path)


def test_a_folder_without_manifests_is_refused(tmp_path):
    (tmp_path / "kueue").touch(mode=0o755)
    with pytest.raises(ControlPlaneUnavailableError, match="no kustomization"):
        KueueProgram(tmp_path)
