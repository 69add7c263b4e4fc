"""Runs that have ended: what they teach later ones, and whether promises of them were kept."""
