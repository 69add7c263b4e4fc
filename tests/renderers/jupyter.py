"""JupyterLab and Notebook 7, from one server on this machine.

Trust is a signature of a notebook's contents, kept in the data folder: two servers that shared one
would trust the same notebooks. So every server has a data folder of its own.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

from tests.controlplane.ports import free_ports
from tests.renderers.servers import running_server
from tests.support.devtools import Page

OUTPUT = "document.querySelector('.jp-OutputArea-output')"
"""The element that holds the view, in JavaScript."""

NO_DIALOG = (
    "(document.querySelector('.jp-Dialog .jp-mod-reject')?.click(),"
    " !document.querySelector('.jp-Dialog'))"
)
"""Whether nobody is asked for a kernel any more; there is none, and none is needed."""

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


def notebook_of(view: str, source: str = "preview(pipeline)") -> NotebookNode:
    """A notebook of one cell that has shown a preview."""
    output = new_output(
        "execute_result", {"text/html": view, "text/plain": "<Preview>"}, execution_count=1
    )
    cell = new_code_cell(source, outputs=[output], execution_count=1, id="preview")
    return new_notebook(cells=[cell], metadata={"language_info": {"name": "python"}})


@dataclass(frozen=True)
class JupyterServer:
    """A running server over a folder of notebooks.

    Attributes:
        address: where it listens.
    """

    address: str

    def show(self, page: Page, name: str, *, classic: bool = False) -> None:
        """Open a notebook in JupyterLab, or in Notebook 7 (`classic`), and wait for its output."""
        if classic:
            page.open(f"{self.address}/notebooks/{name}.ipynb")
        else:
            self._show_in_lab(page, name)
        page.wait_for(
            f"{NO_DIALOG} && {OUTPUT}?.textContent.length > 10"
            f" && [...{OUTPUT}.querySelectorAll('img')].every(image => image.complete)"
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
    (port,) = free_ports(1)
    command = [
        *(sys.executable, "-m", "jupyterlab", *_OPTIONS),
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={shown}",
    ]
    address = f"http://127.0.0.1:{port}"
    with running_server(command, f"{address}/api", folder / "server.log", _own_folders(folder)):
        yield JupyterServer(address)


def _sign(data: Path, notebooks: Iterable[NotebookNode]) -> None:
    """As `jupyter trust` does."""
    notary = NotebookNotary(data_dir=str(data))
    try:
        for notebook in notebooks:
            notary.sign(notebook)
    finally:
        notary.store.close()


def _own_folders(folder: Path) -> dict[str, str]:
    """Nothing of whoever runs the tests: neither settings nor trust."""
    own = {
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return {key: str(folder / name) for key, name in own.items()}


def _ask_no_news(settings: Path) -> None:
    file = settings / "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))
