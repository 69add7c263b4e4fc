"""Packages of runs of which the objects are only outlines: what to ask KFP for, and the store."""
