"""Clusters to plan on: described in Python, named, in a file, behind a URL, or live.

Each is read into the engine's `Cluster`. The example clusters are the Cluster files beside these
modules.
"""
