"""Readers of runs, clusters, histories, durations and changes; and the writer of Cluster files."""

from kfp_placement_engine.readers.cluster_file import read_cluster, read_cluster_file
from kfp_placement_engine.readers.run_files import read_run, read_run_file
from kfp_placement_engine.readers.tree.options import ReadOptions

__all__ = ["ReadOptions", "read_cluster", "read_cluster_file", "read_run", "read_run_file"]
