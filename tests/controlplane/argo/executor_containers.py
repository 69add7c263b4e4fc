"""The containers that Argo adds to every pod, and what it tells all containers."""

from collections.abc import Mapping
from typing import Any

from tests.controlplane.argo.names import node_id
from tests.controlplane.argo.settings import EXECUTOR_IMAGE, EXECUTOR_SECURITY_CONTEXT
from tests.controlplane.argo.state import Json, Run
from tests.controlplane.times import write_time

VOLUMES: tuple[Mapping[str, Any], ...] = (
    {"name": "var-run-argo", "emptyDir": {}},
    {"name": "tmp-dir-argo", "emptyDir": {}},
)
MOUNT_ARGO: Mapping[str, Any] = {"name": "var-run-argo", "mountPath": "/var/run/argo"}
MOUNT_TEMPORARY: Mapping[str, Any] = {"name": "tmp-dir-argo", "mountPath": "/tmp"}

LOG_OPTIONS = ("--loglevel", "warn", "--log-format", "text", "--gloglevel", "0")

NO_DEADLINE = "0001-01-01T00:00:00Z"


def executor_command(verb: str) -> list[str]:
    """The command line of Argo's own process; in main containers it lies on a volume."""
    program = "/var/run/argo/argoexec" if verb == "emissary" else "argoexec"
    return [program, verb, *LOG_OPTIONS]


def executor_container(run: Run, name: str) -> Json:
    """The container `init` or `wait`."""
    fields = (("ARGO_POD_NAME", "metadata.name"), ("ARGO_POD_UID", "metadata.uid"))
    variables: list[Json] = [
        {"name": key, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
        for key, path in fields
    ]
    variables.append({"name": "ARGO_WORKFLOW_NAME", "value": run.name})
    uid = run.workflow["metadata"].get("uid", "")
    variables.append({"name": "ARGO_WORKFLOW_UID", "value": uid})
    if name == "wait":
        variables.append({"name": "ARGO_ARTIFACT_PLUGIN_NAMES", "value": ""})
    return {
        "name": name,
        "image": EXECUTOR_IMAGE,
        "command": executor_command(name),
        "env": variables,
        "resources": {},
        "securityContext": dict(EXECUTOR_SECURITY_CONTEXT),
    }


def common_variables(run: Run, node_name: str, *, on_exit: bool) -> list[Json]:
    """Return the variables that every container of a pod has."""
    late = run.deadline is not None and not on_exit
    deadline = write_time(run.deadline) if late and run.deadline else NO_DEADLINE
    pairs = (
        ("ARGO_NODE_ID", node_id(run.name, node_name)),
        ("ARGO_INCLUDE_SCRIPT_OUTPUT", "false"),
        ("ARGO_DEADLINE", deadline),
        ("ARGO_PROGRESS_FILE", "/var/run/argo/progress"),
        ("ARGO_PROGRESS_PATCH_TICK_DURATION", "1m0s"),
        ("ARGO_PROGRESS_FILE_TICK_DURATION", "3s"),
    )
    return [{"name": name, "value": value} for name, value in pairs]
