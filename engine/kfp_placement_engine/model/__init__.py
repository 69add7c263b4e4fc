"""Nouns of the whole project: runs, clusters, pods, policies, promises, reasons."""
