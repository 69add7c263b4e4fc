"""A real VS Code in the browser, built from npm into a folder outside the repository.

`python -m tests.renderers.vscode` builds it: 2 minutes and 313 MB, once for each version.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import writes

from tests.controlplane.ports import free_ports
from tests.renderers.servers import running_server
from tests.support.devtools import Page

VERSION = "4.99.4"
"""Version of code-server, which holds VS Code 1.99.3; later ones need Node 22."""

FRAME = (
    "document.querySelector('iframe.webview')?.contentDocument"
    "?.querySelector('iframe')?.contentDocument"
)
"""The document that holds a notebook's outputs, in JavaScript."""

OUTPUT = f"{FRAME}.querySelector('.output_container .output')"

_PACKAGE = "node_modules/code-server/lib/vscode"
_NATIVE = ("@vscode/spdlog", "native-watchdog", "@parcel/watcher", "node-pty")
_DEPENDENCIES = ("install", "--omit=dev", "--ignore-scripts", "--legacy-peer-deps")
_TRIES = 30
_SECONDS = 90.0


def server_folder() -> Path:
    """Where VS Code is, or will be; another version has a folder of its own."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "kfp-placement/vscode" / f"code-server-{VERSION}"


def build() -> Path:
    """VS Code's own folder, after building it where that has not been done.

    The package's own script would compile parts that no test needs, and fails without headers.

    Raises:
        CalledProcessError: npm fails.
        FileNotFoundError: there is no npm.
    """
    program = server_folder() / _PACKAGE
    complete = server_folder() / ".complete"
    if complete.exists():
        return program
    shutil.rmtree(server_folder(), ignore_errors=True)
    server_folder().mkdir(parents=True)
    (server_folder() / "package.json").write_text('{"private": true}\n')
    _npm(server_folder(), "install", "--ignore-scripts", f"code-server@{VERSION}")
    _npm(program, *_DEPENDENCIES)
    _npm(program / "extensions", *_DEPENDENCIES)
    # node-pty, for terminals, says that it failed after it was built; no terminal is opened.
    _npm(program, "rebuild", *_NATIVE, check=False)
    complete.touch()
    return program


@dataclass(frozen=True)
class VSCode:
    """A running server.

    Attributes:
        address: where it shows the folder of notebooks.
        folder: that folder.
    """

    address: str
    folder: Path

    def start(self, page: Page) -> None:
        """Open the folder in a browser."""
        page.open(self.address)
        page.wait_for(_row(".vscode"), seconds=_SECONDS)

    def show(self, page: Page, name: str) -> None:
        """Open a notebook as people do, and wait for its output."""
        for _ in range(_TRIES):
            page.evaluate("document.querySelector('.tab.active .codicon-close')?.click()")
            page.wait_for("!document.querySelector('.tab.active')")
            row = _row(f"{name}.ipynb")
            box = json.loads(page.evaluate(f"JSON.stringify({row}.getBoundingClientRect())"))
            page.double_click(box["x"] + 30, box["y"] + 8)
            page.wait_for("document.querySelector('.monaco-editor, .notebookOverlay')")
            # Until the extension for notebooks has started, they open as text.
            if page.evaluate("document.querySelector('.notebookOverlay') !== null"):
                break
        page.wait_for(
            f"{FRAME}?.querySelector('.kfp-placement') &&"
            f" [...{OUTPUT}.querySelectorAll('img')].every(image => image.complete)",
            seconds=_SECONDS,
        )

    def resize(self, page: Page, width: int) -> None:
        """Change the window's width, and wait until the output has followed it."""
        room = f"{OUTPUT}.clientWidth"
        before, changed = page.evaluate(room), page.evaluate("innerWidth") != width
        page.resize(width=width)
        if changed:
            page.wait_for(f"{room} !== {before}")
        page.settle(room)

    def set_theme(self, page: Page, *, dark: bool) -> None:
        """Change the theme; a notebook must be open."""
        _write_settings(self.folder, dark=dark)
        name = "vscode-dark" if dark else "vscode-light"
        page.wait_for(f"{FRAME}?.body.classList.contains('{name}')")


@contextmanager
def vscode_server(folder: Path, notebooks: Mapping[str, NotebookNode]) -> Iterator[VSCode]:
    """Serve the notebooks in a workspace that is trusted; `folder` is empty."""
    shown = folder / "notebooks"
    (shown / ".vscode").mkdir(parents=True)
    _write_settings(shown, dark=False)
    for name, notebook in notebooks.items():
        (shown / f"{name}.ipynb").write_text(writes(notebook), encoding="utf-8")
    (port,) = free_ports(1)
    command = [
        *("node", str(build() / "out/server-main.js")),
        *("--without-connection-token", "--accept-server-license-terms"),
        *("--disable-workspace-trust", "--disable-telemetry", "--port", str(port)),
        *("--server-data-dir", str(folder / "server"), "--user-data-dir", str(folder / "user")),
    ]
    address = f"http://127.0.0.1:{port}/"
    with running_server(command, address, folder / "server.log"):
        yield VSCode(f"{address}?folder={shown}", shown)


def _write_settings(folder: Path, *, dark: bool) -> None:
    theme = "Default Dark Modern" if dark else "Default Light Modern"
    settings = {"workbench.colorTheme": theme, "workbench.startupEditor": "none"}
    (folder / ".vscode/settings.json").write_text(json.dumps(settings))


def _row(name: str) -> str:
    return (
        "[...document.querySelectorAll('.explorer-folders-view .monaco-list-row')]"
        f".find(row => row.textContent.trim() === '{name}')"
    )


def _npm(folder: Path, *arguments: str, check: bool = True) -> None:
    subprocess.run(["npm", *arguments], cwd=folder, check=check)


if __name__ == "__main__":
    print(build())
