"""PersistentVolumeClaims and PersistentVolumes, slimmed."""

from dataclasses import dataclass

from kfp_placement_engine.model.cluster import Claim
from kfp_placement_engine.model.pod_constraints import NodeSelectorTerm
from kfp_placement_engine.readers.kubernetes.claims import read_claim, read_volume
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.kinds import JsonObject


@dataclass(frozen=True, slots=True)
class ObservedVolume:
    """A PersistentVolume.

    Attributes:
        name: name of the volume.
        required_terms: node selector terms of the nodes that reach the volume; None = all do.
    """

    name: str
    required_terms: tuple[NodeSelectorTerm, ...] | None


@dataclass(frozen=True, slots=True)
class ObservedClaim:
    """A PersistentVolumeClaim.

    Attributes:
        claim: claim as the planner sees it, before its volume and its users are known.
        volume_name: name of the volume that the claim is bound to; "" = none yet.
    """

    claim: Claim
    volume_name: str


def observe_claim(raw: JsonObject) -> ObservedClaim:
    """Slim a claim as the API server prints it.

    Raises:
        InputError: the claim is malformed.
    """
    claim = Fields(raw, Place("claim"))
    return ObservedClaim(read_claim(claim, {}, {}), claim.fields("spec").text("volumeName"))


def observe_volume(raw: JsonObject) -> ObservedVolume:
    """Slim a volume as the API server prints it.

    Raises:
        InputError: the volume is malformed.
    """
    return ObservedVolume(*read_volume(Fields(raw, Place("volume"))))
