"""Processes that end with us for sure, with a log each."""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.controlplane.exceptions import ControlPlaneError, ProcessEndedError, WaitError
from tests.controlplane.waiting import wait_until

_WRAPPER = Path(__file__).with_name("die_with_parent.py")
_LINES_SHOWN = 40
_CHARACTERS_SHOWN = 400
# What a log's end is looked for in.
_TAIL_BYTES = 64 * 1024

_running: "weakref.WeakSet[ManagedProcess]" = weakref.WeakSet()


class ManagedProcess:
    """A program that can be started, stopped, killed and started again.

    Its process group is killed when Python exits; on Linux the kernel kills it when Python is
    killed.

    Attributes:
        name: name for messages and the log's name.
        command: program and arguments.
        log: file that takes its output, of all starts one after the other.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = tuple(command)
        self.log = log
        self._environment = dict(os.environ if environment is None else environment)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Return whether the process has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id, for signals of all kinds.

        Raises:
            ControlPlaneError: it was never started.
        """
        if self._process is None:
            raise ControlPlaneError(f"{self.name} was never started")
        return self._process.pid

    def start(self) -> None:
        """Start it, without waiting for it to be ready.

        Raises:
            ControlPlaneError: it runs already, or this is not the main thread.
        """
        if self.running:
            raise ControlPlaneError(f"{self.name} runs already")
        if threading.current_thread() is not threading.main_thread():
            # "Parent" is a thread to Linux: the process would be killed when this thread ends.
            raise ControlPlaneError(f"{self.name} can only be started in the main thread")
        wrapper = (sys.executable, "-I", "-S", str(_WRAPPER), str(os.getpid()))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*wrapper, *self.command],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _running.add(self)

    def wait(self, timeout_seconds: float) -> int:
        """Return the status with which it ends.

        Raises:
            ControlPlaneError: it was never started.
            subprocess.TimeoutExpired: it does not end in time.
        """
        if self._process is None:
            raise ControlPlaneError(f"{self.name} was never started")
        return self._process.wait(timeout_seconds)

    def check(self) -> None:
        """Complain if it has ended.

        Raises:
            ProcessEndedError: with the end of its log.
        """
        if not self.running:
            status = None if self._process is None else self._process.returncode
            raise ProcessEndedError(f"{self.name} ended with {status}\n{self.last_lines()}")

    def wait_for(
        self, condition: Callable[[], object], what: str, timeout_seconds: float = 60.0
    ) -> None:
        """Wait until something is true while it runs.

        Raises:
            ProcessEndedError: it ended instead.
            WaitError: it took too long; the message ends with its log.
        """

        def holds() -> object:
            self.check()
            return condition()

        try:
            wait_until(holds, what, timeout_seconds)
        except WaitError as error:
            raise WaitError(f"{error}\n{self.last_lines()}") from None

    def stop(self, grace_seconds: float = 10.0) -> None:
        """End it: ask first (SIGTERM), and kill its group if it is still there after a while."""
        if self._process is not None and self.running:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_seconds)
        self.kill()

    def kill(self) -> None:
        """End it at once (SIGKILL), with its group, and wait until it is gone."""
        if self._process is None:
            return
        if self.running:
            self._signal(signal.SIGKILL)
        self._process.wait()
        _running.discard(self)

    def pause(self) -> None:
        """Let it hang: it neither works nor ends until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def last_lines(self, lines: int = _LINES_SHOWN) -> str:
        """The end of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(line[:_CHARACTERS_SHOWN] for line in text.splitlines()[-lines:])

    def _signal(self, number: signal.Signals) -> None:
        # Only while we have not waited for it: later the id may be another process's.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


@atexit.register
def _kill_all() -> None:
    for process in list(_running):
        process.kill()
