"""A headless Chromium, driven through its own protocol over two pipes: no driver, no network."""

import base64
import fcntl
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.processes import end_process

_TIMEOUT_SECONDS = 60.0


class Page:
    """One tab: load a file, ask it things, take its picture, hear what its console said."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._received = b""
        self._last_id = 0
        self._events: list[dict[str, Any]] = []
        self._session = ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def load(
        self,
        file: Path,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        printed: bool = False,
    ) -> None:
        """Load the file in a window of that size, in a light or dark system, or as if printed."""
        self.resize(width=width, height=height, dark=dark, printed=printed)
        self.open(file.resolve().as_uri())

    def open(self, address: str) -> None:
        """Load what is at the address, and forget what was heard before."""
        self._events.clear()
        self._call("Page.navigate", url=address)
        self._wait_for("Page.loadEventFired")

    def resize(
        self, *, width: int, height: int = 900, dark: bool = False, printed: bool = False
    ) -> None:
        """Change the window's size, and whether the system is light or dark, or prints."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        medium = "print" if printed else ""
        self._call("Emulation.setEmulatedMedia", media=medium, features=[scheme])

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is waited for."""
        answer = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait_for(self, condition: str, *, seconds: float = _TIMEOUT_SECONDS) -> None:
        """Wait until a JavaScript expression is true; while it cannot be computed it is not."""
        waited = self.evaluate(
            "new Promise(done => {"
            f" const end = performance.now() + {seconds * 1000};"
            " const look = () => {"
            f"  let found = false; try {{ found = {condition}; }} catch {{}}"
            "  if (found) done(true);"
            "  else if (performance.now() > end) done(false);"
            "  else setTimeout(look, 30);"
            " }; look(); })"
        )
        if not waited:
            raise AssertionError(f"not so within {seconds:g} s: {condition}")

    def settle(self, expression: str) -> None:
        """Wait until three looks at an expression, 30 ms apart, find the same value."""
        self.evaluate("delete window.looks")
        self.wait_for(
            f"(now => (window.looks = [now, ...(window.looks || [])].slice(0, 3))"
            f".filter(each => each === now).length === 3)({expression})"
        )

    def double_click(self, x: float, y: float) -> None:
        """Press the left button twice at a point of the window."""
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self._call(
                    "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count
                )

    def screenshot(self, file: Path) -> None:
        """Write the page as PNG, down to 3,000 pixels: a picture of all would take seconds."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(size["height"], 3_000),
            "scale": 1,
        }
        picture = self._call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(picture["data"]))

    @property
    def problems(self) -> list[str]:
        """Messages of the console, errors, violations of the policy."""
        self._call("Runtime.evaluate", expression="1")
        kinds = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [json.dumps(event) for event in self._events if event.get("method") in kinds]

    @property
    def requests(self) -> list[str]:
        """Addresses of all that was asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self._events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        deadline = time.monotonic() + 2 * _TIMEOUT_SECONDS
        while True:
            # Others may be heard all the time.
            if time.monotonic() > deadline:
                raise AssertionError(f"the browser does not answer {method}: {params}"[:500])
            answer = self._receive()
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _wait_for(self, method: str) -> None:
        while not any(event.get("method") == method for event in self._events):
            self._events.append(self._receive())

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while b"\0" not in self._received:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._from], [], [], max(left, 0))
            chunk = os.read(self._from, 1 << 20) if ready else b""
            if not chunk:
                raise AssertionError("the browser does not answer")
            self._received += chunk
        message, _, self._received = self._received.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


@contextmanager
def headless_page(chromium: Path, profile: Path) -> Iterator[Page]:
    """A tab in a browser of its own, gone afterwards; `profile` is an empty folder."""
    command_in, command_out = os.pipe()
    answer_in, answer_out = os.pipe()
    # Out of the way of 3 and 4, where the browser reads commands and answers.
    high_in, high_out = (fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (command_in, answer_out))

    def put_in_place() -> None:
        os.dup2(high_in, 3)
        os.dup2(high_out, 4)

    browser = subprocess.Popen(
        [
            str(chromium),
            *("--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}"),
            *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
            *("--no-first-run", "--disable-background-networking", "--disable-extensions"),
            *("--disable-component-update", "--disable-sync"),
            # Whatever a page asks of other hosts fails at once.
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
            "about:blank",
        ],
        preexec_fn=put_in_place,
        close_fds=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for fd in (command_in, answer_out, high_in, high_out):
        os.close(fd)
    try:
        yield Page(command_out, answer_in)
    finally:
        os.close(command_out)
        os.close(answer_in)
        end_process(browser)
