"""Starts of planned steps as a run goes on: expected times, and the rule by which gates open."""
