"""Runs that have a PipelinePlacement, read from its metadata alone."""

from typing import NamedTuple

from kfp_placement_engine.contract.keys import ALL_PIPELINES, PIPELINES_LABEL
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.kinds import JsonObject


class PlacedRun(NamedTuple):
    """A run for which a planner has written a PipelinePlacement.

    Attributes:
        uids: uids of the objects that own the placement; one of them is the run's.
        all_marked: whether all steps of the run count as marked.
    """

    uids: tuple[str, ...]
    all_marked: bool


def observe_placed_run(raw: JsonObject) -> PlacedRun:
    """Slim a placement, of which only the metadata need be given.

    Raises:
        InputError: the metadata are malformed.
    """
    metadata = Fields(raw, Place("placement")).flat("metadata")
    uids = (owner.text("uid") for owner in metadata.each_flat("ownerReferences"))
    says = metadata.flat("labels").get(PIPELINES_LABEL)
    return PlacedRun(tuple(uids), says == ALL_PIPELINES)
