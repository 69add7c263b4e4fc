"""Cost of work compared to other work: seconds say nothing on a busy machine."""

import gc
import time
from collections.abc import Callable


def growth(work: Callable[[int], object], few: int, many: int) -> float:
    """Return the processor time of work of a size as a multiple of that of a smaller size."""
    of_few = cpu_seconds(work, few)
    return cpu_seconds(work, many) / of_few


def cpu_seconds(work: Callable[..., object], *arguments: object) -> float:
    """Processor time of this process for a piece of work, without that of other processes.

    The garbage collector is off, as in `timeit`: it would look through all that earlier
    tests have left, in whichever piece of work its turn came.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        before = time.process_time()
        work(*arguments)
        return time.process_time() - before
    finally:
        if enabled:
            gc.enable()
