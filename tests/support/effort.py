"""What work costs, to be held against other work: seconds say nothing on a busy machine."""

import time
from collections.abc import Callable


def cpu_seconds(work: Callable[..., object], *arguments: object) -> float:
    """Processor time of this process for a piece of work, without that of other processes."""
    before = time.process_time()
    work(*arguments)
    return time.process_time() - before
