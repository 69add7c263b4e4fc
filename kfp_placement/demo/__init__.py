"""The taxi sample and its cluster, for whoever has installed the package but not the repository.

`taxi-<location>.yaml` is the sample compiled for users at that place. The files are copies of what
lies in `samples/06_taxi`; a test keeps them equal.
"""
