"""Run graph and cluster to a placement problem: the one place where nouns become arrays."""

from kfp_placement_engine.lowering.build import Lowered, LoweringOptions, lower

__all__ = ["Lowered", "LoweringOptions", "lower"]
