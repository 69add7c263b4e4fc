"""Traces of the same pipelines that ran many times, and what a history makes of them."""
