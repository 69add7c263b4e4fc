"""Amounts of resources and time: their types, and how they are read and written."""
