"""Readers of what Argo limits in a Workflow, and of what runs beside its steps."""
