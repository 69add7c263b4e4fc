"""Nouns of a plan: what may be asked of one, and what it says."""
