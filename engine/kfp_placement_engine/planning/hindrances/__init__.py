"""Notices about what keeps steps from running as planned: platforms and disk of nodes, limits."""
