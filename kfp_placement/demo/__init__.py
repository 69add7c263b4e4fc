"""Two samples and their clusters, for whoever has installed the package but not the repository.

`unequal-steps.yaml` is the lead case; `taxi-<location>.yaml` is the taxi sample compiled for users
at that place, and `cluster.yaml` its cluster. The files are copies of what lies in `samples/`; a
test keeps them equal.
"""
