"""Argo's Workflows read as runs; no other part of the controller knows Workflows."""
