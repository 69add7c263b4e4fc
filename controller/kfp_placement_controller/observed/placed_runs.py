"""Runs that have a PipelinePlacement, as its metadata alone says."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kfp_placement_engine.contract.keys import ALL_PIPELINES, PIPELINES_LABEL
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place


class PlacedRun(NamedTuple):
    """A run that a planner has written of.

    Attributes:
        uids: of the objects that own the placement: the run's.
        all_marked: all its steps count as marked.
    """

    uids: tuple[str, ...]
    all_marked: bool


def observe_placed_run(raw: Mapping[str, Any]) -> PlacedRun:
    """Read a placement, or its metadata alone.

    Raises:
        InputError: it is malformed.
    """
    metadata = Fields(raw, Place("placement")).flat("metadata")
    uids = (owner.text("uid") for owner in metadata.each_flat("ownerReferences"))
    says = metadata.flat("labels").get(PIPELINES_LABEL)
    return PlacedRun(tuple(uids), says == ALL_PIPELINES)
