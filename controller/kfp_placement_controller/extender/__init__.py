"""The scheduler extender: answers kube-scheduler from memory; and the admission webhook."""
