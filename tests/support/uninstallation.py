"""The uninstallation that deploy/README.md shows, command by command, on a test control plane."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kfp_placement.cli import cli
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError, ControlPlaneError
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation
from tests.support.manifests import GROUP, NAMESPACE

COMMANDS = Path(__file__).resolve().parents[1] / "deploy/data/uninstall.sh"
PART_OF = "app.kubernetes.io/part-of"
_ADMISSION = "admissionregistration.k8s.io/v1"
_RIGHTS = "rbac.authorization.k8s.io/v1"
_KINDS = {
    "mutatingwebhookconfigurations": (_ADMISSION, "MutatingWebhookConfiguration"),
    "mutatingadmissionpolicybindings": (_ADMISSION, "MutatingAdmissionPolicyBinding"),
    "mutatingadmissionpolicies": (_ADMISSION, "MutatingAdmissionPolicy"),
    "validatingadmissionpolicybindings": (_ADMISSION, "ValidatingAdmissionPolicyBinding"),
    "validatingadmissionpolicies": (_ADMISSION, "ValidatingAdmissionPolicy"),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "clusterroles": (_RIGHTS, "ClusterRole"),
    "clusterrolebindings": (_RIGHTS, "ClusterRoleBinding"),
}


def uninstall(installation: Installation) -> None:
    """Uninstall as the guide tells admins to, with these very commands.

    Raises:
        ControlPlaneError: a command is not known here, or one fails.
    """
    for command in _commands():
        _run(installation, command)


def left_overs(api: Api) -> list[str]:
    """Return every object that is part of kfp-placement, in our namespace or names our kinds."""
    return [
        f"{kind} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        for kind, item in _everything(api)
        if _is_ours(item)
    ]


def _commands() -> list[list[str]]:
    lines = COMMANDS.read_text("utf-8").replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines]


def _run(installation: Installation, command: Sequence[str]) -> None:
    """Run a command as kubectl would."""
    api = installation.api
    match command:
        case ["kubectl", "placement", *arguments]:
            options = ["--kubeconfig", str(installation.kubeconfig)]
            done = CliRunner().invoke(cli, [*arguments, *options])
            if done.exit_code:
                raise ControlPlaneError(f"{shlex.join(command)} failed: {done.output}")
        case ["kubectl", "get", "pods", "-A", selector]:
            fields = selector.removeprefix("--field-selector=")
            wait_until(
                lambda: not api.list("v1", "Pod", fieldSelector=fields), f"no pod of {fields}"
            )
        case ["kubectl", "delete", kinds, "-l", selector]:
            for plural in kinds.split(","):
                for item in api.list(*_KINDS[plural], labelSelector=selector):
                    api.delete(item)
        case ["kubectl", "delete", "-k", "my-overlay", "--ignore-not-found"]:
            _delete(installation)
        case _:
            raise ControlPlaneError(f"{shlex.join(command)}: teach tests what it does")


def _delete(installation: Installation) -> None:
    """Delete in the order of the overlay, as kubectl does, which only then waits for the end."""
    for item in installation.items:
        _delete_one(installation.api, item)
        if item["kind"] == "Deployment":
            installation.stop_deployment(item["metadata"]["name"])
    for item in installation.items:
        name = item["metadata"]["name"]
        wait_until(
            partial(_is_gone, installation.api, item), f"{item['kind']} {name} to be gone", 60
        )


def _delete_one(api: Api, item: Mapping[str, Any]) -> None:
    try:
        api.delete(item)
    except ApiError as error:
        # Its kind is gone already.
        if error.status != 404:
            raise


def _is_gone(api: Api, item: Mapping[str, Any]) -> bool:
    metadata = item["metadata"]
    stored = api.find(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))
    return stored is None


def _everything(api: Api) -> Iterator[tuple[str, JsonObject]]:
    """Yield every object of every kind that can be listed."""
    groups = api.request("GET", "/apis")["groups"]
    paths = ["/api/v1", *(f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups)]
    for path in paths:
        for resource in api.request("GET", path)["resources"]:
            if "list" in resource["verbs"]:
                listed = api.request("GET", f"{path}/{resource['name']}")
                yield from ((resource["kind"], item) for item in listed["items"])


def _is_ours(item: Mapping[str, Any]) -> bool:
    metadata = item["metadata"]
    return (
        metadata.get("labels", {}).get(PART_OF) == NAMESPACE
        or metadata.get("namespace") == NAMESPACE
        or metadata["name"].split(":")[0] == NAMESPACE
        or metadata["name"].startswith(f"{NAMESPACE}-")
        or any(GROUP in rule.get("apiGroups", ()) for rule in item.get("rules") or ())
    )
