"""The claims of `volumeClaimTemplates`: made before the first step, removed after success."""

from tests.controlplane.argo.exceptions import Refusal
from tests.controlplane.argo.pods import owner_reference
from tests.controlplane.argo.state import LABEL_WORKFLOW, Json, Run


def create_claims(run: Run) -> None:
    """Create the Workflow's claims, once.

    Raises:
        Refusal: the cluster refused.
    """
    templates = run.spec.get("volumeClaimTemplates") or []
    made = run.status.get("persistentVolumeClaims") or []
    if len(templates) == len(made):
        return
    for template in templates[len(made) :]:
        claim = _claim(run, template)
        _create(run, claim)
        source = {"claimName": claim["metadata"]["name"]}
        volume = {"name": template["metadata"]["name"], "persistentVolumeClaim": source}
        made = [*made, volume]
        run.status["persistentVolumeClaims"] = made


def _claim(run: Run, template: Json) -> Json:
    metadata = dict(template["metadata"])
    metadata["labels"] = {**(metadata.get("labels") or {}), LABEL_WORKFLOW: run.name}
    metadata["name"] = f"{run.name}-{metadata['name']}"
    metadata["namespace"] = run.workflow["metadata"].get("namespace", "default")
    metadata["ownerReferences"] = [owner_reference(run.workflow)]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template["spec"],
    }


def _create(run: Run, claim: Json) -> None:
    try:
        run.cluster.create_claim(claim)
    except Refusal as refusal:
        if refusal.reason != "AlreadyExists":
            raise


def delete_claims(run: Run) -> None:
    """Delete the Workflow's claims."""
    for volume in run.status.pop("persistentVolumeClaims", ()):
        run.cluster.delete_claim(volume["persistentVolumeClaim"]["claimName"])
