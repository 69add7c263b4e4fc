"""Kueue as the one who decides: its Workloads, followed and put right."""
