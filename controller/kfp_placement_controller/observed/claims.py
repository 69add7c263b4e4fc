"""What is kept from claims and volumes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.model.cluster import Claim
from kfp_placement_engine.model.run_graph import NodeSelectorTerm
from kfp_placement_engine.readers.kubernetes.claims import read_claim, read_volume
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place


@dataclass(frozen=True, slots=True)
class ObservedVolume:
    """A volume.

    Attributes:
        name: its name.
        required_terms: which nodes reach it; None = all.
    """

    name: str
    required_terms: tuple[NodeSelectorTerm, ...] | None


@dataclass(frozen=True, slots=True)
class ObservedClaim:
    """A claim.

    Attributes:
        claim: as the planner sees it, before its volume and its users are known.
        volume_name: volume that it is bound to; "" = none yet.
    """

    claim: Claim
    volume_name: str


def observe_claim(raw: Mapping[str, Any]) -> ObservedClaim:
    """Keep what matters of a claim as the API server prints it.

    Raises:
        InputError: it is malformed.
    """
    claim = Fields(raw, Place("claim"))
    return ObservedClaim(read_claim(claim, {}, {}), claim.fields("spec").text("volumeName"))


def observe_volume(raw: Mapping[str, Any]) -> ObservedVolume:
    """Keep what matters of a volume as the API server prints it.

    Raises:
        InputError: it is malformed.
    """
    return ObservedVolume(*read_volume(Fields(raw, Place("volume"))))
