"""Workflows of Argo that KFP has made: its tasks, their parts and their settings."""
