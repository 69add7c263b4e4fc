"""Argo's Workflows as runs, and the only part of the controller that knows them."""
