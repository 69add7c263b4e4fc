"""The way to a Kubernetes API server: configuration, requests, watches, leases and events.

Import the module that is needed: most start nothing heavy, and the official client is imported only
when a kubeconfig is read.
"""
