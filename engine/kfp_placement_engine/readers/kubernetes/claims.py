"""A reader of volume claims, of volumes, and of the claims that a pod mounts."""

from collections.abc import Iterable, Mapping
from itertools import product

from kfp_placement_engine.model.cluster import Claim
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_engine.model.pod_constraints import Labels, NodeSelectorTerm, Requirement
from kfp_placement_engine.model.run_graph import RunClaim
from kfp_placement_engine.readers.kubernetes.constraints import read_terms
from kfp_placement_engine.readers.kubernetes.quotas import claim_usage
from kfp_placement_engine.readers.text.fields import Fields

VolumeTerms = Mapping[str, tuple[NodeSelectorTerm, ...] | None]
"""Terms of the nodes that reach a volume, by its name; None = all nodes do."""

_CURRENT_NAMES = {
    f"failure-domain.beta.kubernetes.io/{each}": f"topology.kubernetes.io/{each}"
    for each in ("zone", "region")
}
_TOPOLOGY_LABELS = (*_CURRENT_NAMES, *_CURRENT_NAMES.values())


def read_volume(volume: Fields) -> tuple[str, tuple[NodeSelectorTerm, ...] | None]:
    """Read a volume's name and the terms of the nodes that reach it, or None if any node does.

    Raises:
        InputError: the object is malformed.
    """
    metadata = volume.flat("metadata")
    name = metadata.name("name")
    volume = volume.at(" {:.80}", name)
    affinity = volume.flat("spec").fields("nodeAffinity")
    labels = metadata.at(" {:.80}", name).text_mapping("labels")
    zoned = _zone_terms({key: labels[key] for key in _TOPOLOGY_LABELS if key in labels})
    if affinity.get("required") is None:
        return name, zoned
    required = affinity.fields("required")
    terms = read_terms(required.get("nodeSelectorTerms"), required.where("nodeSelectorTerms"))
    if zoned is None:
        return name, terms
    both = product((term.requirements for term in terms if term.requirements), zoned)
    return name, tuple([NodeSelectorTerm(own + zone.requirements) for own, zone in both])


def _zone_terms(labels: Labels) -> tuple[NodeSelectorTerm, ...] | None:
    """Return the nodes that a volume's labels allow, as kube-scheduler's plugin VolumeZone does.

    A node without labels of zones and regions is in all of them; one without a label of the old
    name has that of the new one.
    """
    choices = []
    for key, value in labels.items():
        zones = tuple(zone.strip() for zone in value.split("__"))
        if not all(zones):
            continue
        ways: list[tuple[Requirement, ...]] = [(Requirement(key, "In", zones),)]
        if current := _CURRENT_NAMES.get(key):
            ways.append((Requirement(key, "DoesNotExist"), Requirement(current, "In", zones)))
        choices.append(ways)
    if not choices:
        return None
    nowhere = tuple(Requirement(key, "DoesNotExist") for key in _TOPOLOGY_LABELS)
    return tuple([NodeSelectorTerm(each) for each in (*map(_joined, product(*choices)), nowhere)])


def _joined(parts: Iterable[tuple[Requirement, ...]]) -> tuple[Requirement, ...]:
    return tuple([each for part in parts for each in part])


def read_claim(
    claim: Fields, volumes: VolumeTerms, users: Mapping[ClaimKey, Iterable[str]]
) -> Claim:
    """Read a claim.

    Args:
        claim: object of the claim.
        volumes: terms of the nodes that reach each volume of the cluster; empty = not known.
        users: names of nodes on which running pods mount a claim.

    Raises:
        InputError: the object is malformed.
    """
    metadata = claim.flat("metadata")
    name = metadata.name("name")
    namespace = metadata.text("namespace") or "default"
    claim = claim.at(" {:.80}", name)
    spec, status = claim.fields("spec"), claim.fields("status")
    modes = spec.texts("accessModes")
    volume = spec.text("volumeName")
    return Claim(
        name=name,
        namespace=namespace,
        access_modes=modes or status.texts("accessModes"),
        required_terms=volumes.get(volume) if volume else None,
        used_on=tuple(sorted(set(users.get(ClaimKey(namespace, name), ())))),
        problem=_problem(claim, name, volume, volumes),
    )


def made_claim(name: str, spec: Fields, size: object = None) -> RunClaim:
    """Return a claim that is made for a run before its first step.

    Args:
        name: name of the claim.
        spec: spec of the claim.
        size: size that counts where the spec has none.

    Raises:
        InputError: the spec is malformed.
    """
    size = spec.fields("resources").mapping("requests").get("storage", size)
    usage = claim_usage(size, spec.text("storageClassName"))
    return RunClaim(name, spec.texts("accessModes"), is_workspace=True, usage=usage)


def _problem(claim: Fields, name: str, volume: str, volumes: VolumeTerms) -> str:
    """Return why no pod can mount a claim, as the plugin VolumeBinding of kube-scheduler says it.

    See `podHasPVCs` and `ErrReasonPVNotExist` in `framework/plugins/volumebinding`.
    """
    if claim.fields("status").text("phase") == "Lost":
        lost = f"bound to non-existent persistentvolume {_quoted(volume)}"
        return f"persistentvolumeclaim {_quoted(name)} {lost}"
    if claim.fields("metadata").get("deletionTimestamp") is not None:
        return f"persistentvolumeclaim {_quoted(name)} is being deleted"
    if volume and volumes and volume not in volumes:
        unavailable = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
        return f"{unavailable}: claim {_quoted(name)}, volume {_quoted(volume)}"
    return ""


def _quoted(name: str) -> str:
    return f'"{name:.253}"'


def mounted_claims(pod: Fields) -> list[ClaimKey]:
    """Return the claims that a pod mounts, generic ephemeral volumes included.

    Raises:
        InputError: the object is malformed.
    """
    metadata = pod.flat("metadata")
    namespace = metadata.text("namespace") or "default"
    claims = []
    for volume in pod.flat("spec").each_flat("volumes"):
        if volume.get("persistentVolumeClaim") is not None:
            claim = volume.flat("persistentVolumeClaim")
            claims.append(ClaimKey(namespace, claim.text("claimName")))
        elif volume.get("ephemeral") is not None:
            pod_name, own_name = metadata.text("name"), volume.text("name")
            claims.append(ClaimKey(namespace, f"{pod_name}-{own_name}"))
    return claims
