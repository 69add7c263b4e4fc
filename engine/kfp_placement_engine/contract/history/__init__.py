"""Histories of pipelines as an object keeps them: past runs in rows, and what they add up to."""
