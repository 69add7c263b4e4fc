"""Parts of a process, which work in threads of their own."""

import contextlib
from collections.abc import Iterator
from typing import Protocol


class Part(Protocol):
    """Part of a process that works in a thread of its own."""

    def start(self) -> None:
        """Start the thread, without waiting."""
        ...

    def stop(self) -> None:
        """Stop the thread, and wait until it has ended."""
        ...


@contextlib.contextmanager
def working(*parts: Part) -> Iterator[None]:
    """Start parts in order, and stop them in reverse order at the end of the context.

    If one does not start, those before it stop.
    """
    with contextlib.ExitStack() as started:
        for part in parts:
            part.start()
            started.callback(part.stop)
        yield
