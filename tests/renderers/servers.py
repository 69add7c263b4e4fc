"""Servers of notebooks that a test starts on this machine, and ends."""

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import end_process

_START_SECONDS = 120.0


@contextmanager
def running_server(
    command: Sequence[str], address: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A process that answers at the address; what it says is written to `log`.

    Raises:
        AssertionError: it ends, or does not answer in time.
    """
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_it_answers(address, server, log)
        yield
    finally:
        end_process(server)


def _wait_until_it_answers(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError(f"it does not start: {log.read_text(errors='replace')[-2000:]}")
