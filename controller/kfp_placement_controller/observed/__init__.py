"""Objects of the cluster, slimmed as they come from the API server to what the controller needs.

Nothing here reads the cluster or writes to it.
"""
