"""Versions of the default scheduler that can be imitated."""

OLDEST_KUBE = (1, 25)
NEWEST_KUBE = (1, 99)

KUBE_RANGE = "the default scheduler of Kubernetes 1.25 to 1.99 can be imitated"
"""What to say of other versions."""
