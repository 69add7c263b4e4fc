"""Readers of Kubernetes' objects, as the API server prints them."""
