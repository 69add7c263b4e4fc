"""PersistentVolumeClaim and PersistentVolume objects -> claims; which pods mount which claim."""

from collections.abc import Iterable, Mapping
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.cluster import Claim
from kfp_placement_engine.model.run_graph import NodeSelectorTerm
from kfp_placement_engine.readers.fields import as_list, as_mapping, as_text, as_texts
from kfp_placement_engine.readers.kubernetes.constraints import read_terms

ClaimKey = tuple[str, str]
"""Namespace and name of a claim."""

VolumeTerms = Mapping[str, tuple[NodeSelectorTerm, ...]]
"""Volume name -> terms that say which nodes reach it."""


def read_volume(
    raw: Mapping[str, Any], place: str
) -> tuple[str, tuple[NodeSelectorTerm, ...] | None]:
    """Read a volume: its name, and the terms of its node affinity, or None if any node reaches it.

    Raises:
        InputError: it has another form.
    """
    name = as_text(as_mapping(raw.get("metadata"), place).get("name"), f"{place}: metadata.name")
    spec = as_mapping(raw.get("spec"), f"{place} {name:.80}: spec")
    affinity = as_mapping(spec.get("nodeAffinity"), f"{place} {name:.80}: nodeAffinity")
    required = affinity.get("required")
    if required is None:
        return name, None
    place = f"{place} {name:.80}: nodeAffinity.required"
    return name, read_terms(as_mapping(required, place).get("nodeSelectorTerms"), place)


def read_claim(
    raw: Mapping[str, Any],
    place: str,
    volumes: VolumeTerms,
    users: Mapping[ClaimKey, Iterable[str]],
) -> Claim:
    """Read a claim.

    Args:
        raw: the object.
        place: for messages.
        volumes: node affinity of volumes.
        users: nodes on which running pods mount a claim.

    Raises:
        InputError: it has another form.
    """
    metadata = as_mapping(raw.get("metadata"), f"{place}: metadata")
    name = as_text(metadata.get("name"), f"{place}: metadata.name")
    if not name:
        raise InputError(f"{place}: has no name")
    place = f"{place} {name:.80}"
    namespace = as_text(metadata.get("namespace"), f"{place}: namespace") or "default"
    spec = as_mapping(raw.get("spec"), f"{place}: spec")
    status = as_mapping(raw.get("status"), f"{place}: status")
    modes = as_texts(spec.get("accessModes"), f"{place}: spec.accessModes")
    volume = as_text(spec.get("volumeName"), f"{place}: spec.volumeName")
    return Claim(
        name=name,
        namespace=namespace,
        access_modes=modes or as_texts(status.get("accessModes"), f"{place}: status.accessModes"),
        required_terms=volumes.get(volume) if volume else None,
        used_on=tuple(sorted(set(users.get((namespace, name), ())))),
    )


def mounted_claims(pod: Mapping[str, Any], place: str) -> list[ClaimKey]:
    """The claims a pod mounts, those made for it (generic ephemeral volumes) included.

    Raises:
        InputError: the object has another form.
    """
    metadata = as_mapping(pod.get("metadata"), f"{place}: metadata")
    namespace = as_text(metadata.get("namespace"), place) or "default"
    found = []
    for item in as_list(as_mapping(pod.get("spec"), place).get("volumes"), f"{place}: volumes"):
        volume = as_mapping(item, f"{place}: volumes")
        claim = volume.get("persistentVolumeClaim")
        if claim is not None:
            name = as_text(
                as_mapping(claim, f"{place}: volumes").get("claimName"), f"{place}: volumes"
            )
            found.append((namespace, name))
        elif volume.get("ephemeral") is not None:
            pod_name, own_name = metadata.get("name"), volume.get("name")
            found.append((namespace, f"{pod_name}-{own_name}"))
    return found
