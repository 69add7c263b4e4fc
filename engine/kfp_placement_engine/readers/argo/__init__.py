"""Argo Workflows: their graph, their nodes, the names of their pods."""
