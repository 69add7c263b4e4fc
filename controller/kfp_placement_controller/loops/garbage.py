"""What the garbage collector is spared once everything there was at the start is known."""

import gc

GENERATIONS = (700, 10, 50)
"""Thresholds of the garbage collector. The last is 10 otherwise: to look through all that a planner
has learned since its start takes 200 ms, and little of it is garbage."""


def keep_what_is_there() -> None:
    """Most objects of the start stay; looking through them takes up to 100 ms each time."""
    gc.collect()
    gc.freeze()


def look_less_often() -> None:
    """For a process that goes on to gather objects that stay."""
    gc.set_threshold(*GENERATIONS)
