"""Watches of the processes: the kinds, the parts that are kept, and the receivers of changes."""
