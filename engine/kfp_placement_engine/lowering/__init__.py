"""Lowering: runs and a cluster become the arrays of a placement problem."""

from kfp_placement_engine.lowering.build import lower, lower_runs
from kfp_placement_engine.lowering.lowered import Lowered, LoweringOptions
from kfp_placement_engine.lowering.reservations import with_reservations

__all__ = ["Lowered", "LoweringOptions", "lower", "lower_runs", "with_reservations"]
