"""Clusters as people give them: in Python, by name, by path or URL, live -> the engine's noun.

The example clusters are the Cluster files beside these modules.
"""
