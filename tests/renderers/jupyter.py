"""JupyterLab and Notebook 7, from one server on this machine.

Trust is a signature of a notebook's contents, kept in the data folder: two servers that shared one
would trust the same notebooks. So every server has a data folder of its own.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

from tests.support.devtools import Page

OUTPUT = "document.querySelector('.jp-OutputArea-output')"
"""The element that holds the view, in JavaScript."""

_START_SECONDS = 60.0

_OPTIONS = (
    "--no-browser",
    "--allow-root",
    "--ServerApp.token=",
    "--ServerApp.password=",
    "--ServerApp.port_retries=0",
    "--ServerApp.terminals_enabled=False",
    "--LanguageServerManager.autodetect=False",
    "--LabApp.expose_app_in_browser=True",
    "--JupyterNotebookApp.expose_app_in_browser=True",
    # Nothing is run, and a kernel takes seconds to start.
    "--KernelSpecManager.ensure_native_kernel=False",
    "--KernelSpecManager.allowed_kernelspecs=none",
)


def notebook_of(view: str) -> NotebookNode:
    """A notebook of one cell that has shown a preview."""
    output = new_output(
        "execute_result", {"text/html": view, "text/plain": "<Preview>"}, execution_count=1
    )
    cell = new_code_cell("preview(pipeline)", outputs=[output], execution_count=1, id="preview")
    return new_notebook(cells=[cell], metadata={"language_info": {"name": "python"}})


@dataclass(frozen=True)
class JupyterServer:
    """A running server over a folder of notebooks.

    Attributes:
        address: where it listens.
        log: file of what it and the front ends said.
    """

    address: str
    log: Path

    def show(self, page: Page, name: str, *, classic: bool = False) -> None:
        """Open a notebook in JupyterLab, or in Notebook 7 (`classic`), and wait for its output."""
        if classic:
            page.open(f"{self.address}/notebooks/{name}.ipynb")
        else:
            self._show_in_lab(page, name)
        # There is no kernel; whoever is asked for one says that none is needed.
        page.wait_for(
            "(document.querySelector('.jp-Dialog .jp-mod-reject')?.click(),"
            f" {OUTPUT}?.textContent.length > 10 && !document.querySelector('.jp-Dialog')"
            f" && [...{OUTPUT}.querySelectorAll('img')].every(image => image.complete))"
        )

    def _show_in_lab(self, page: Page, name: str) -> None:
        if not page.evaluate("location.pathname.startsWith('/lab')"):
            page.open(f"{self.address}/lab")
            page.wait_for("window.jupyterapp?.shell?.currentWidget !== undefined")
            page.evaluate("jupyterapp.restored.then(() => true)")
        page.evaluate(
            "[...jupyterapp.shell.widgets('main')].forEach(widget => widget.dispose()),"
            f" jupyterapp.commands.execute('docmanager:open', {{path: '{name}.ipynb'}})"
            ".then(() => true)"
        )

    @staticmethod
    def set_theme(page: Page, *, dark: bool) -> None:
        """Change the theme of whichever front end is open."""
        theme = "JupyterLab Dark" if dark else "JupyterLab Light"
        light = str(not dark).lower()
        page.evaluate(
            f"document.body.dataset.jpThemeLight === '{light}' ? true :"
            f" jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})"
            ".then(() => true)"
        )
        page.wait_for(f"document.body.dataset.jpThemeLight === '{light}'")


@contextmanager
def jupyter_server(
    folder: Path, notebooks: Mapping[str, NotebookNode], *, trusted: bool
) -> Iterator[JupyterServer]:
    """Serve the notebooks; `folder` is empty and belongs to the server."""
    shown, data = folder / "notebooks", folder / "data"
    for made in (shown, data):
        made.mkdir(parents=True)
    for name, notebook in notebooks.items():
        (shown / f"{name}.ipynb").write_text(writes(notebook), encoding="utf-8")
    if trusted:
        _sign(data, notebooks.values())
    _ask_no_news(folder / "settings")
    log = folder / "server.log"
    address = f"http://127.0.0.1:{_free_port()}"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", *_OPTIONS),
                f"--ServerApp.port={address.rpartition(':')[2]}",
                f"--ServerApp.root_dir={shown}",
            ],
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_it_answers(f"{address}/api", server, log)
        yield JupyterServer(address, log)
    finally:
        server.terminate()
        server.wait(timeout=30)


def _sign(data: Path, notebooks: Iterable[NotebookNode]) -> None:
    """As `jupyter trust` does."""
    notary = NotebookNotary(data_dir=str(data))
    try:
        for notebook in notebooks:
            notary.sign(notebook)
    finally:
        notary.store.close()


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of whoever runs the tests: neither settings nor trust."""
    own = {
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return {**os.environ, **{key: str(folder / name) for key, name in own.items()}}


def _ask_no_news(settings: Path) -> None:
    file = settings / "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_until_it_answers(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError(f"Jupyter does not start: {log.read_text()[-2000:]}")
