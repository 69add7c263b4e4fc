"""Path of a headless browser, if this machine has one."""

import os
import shutil
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> Path | None:
    """The browser named by `CHROMIUM`, else one on PATH, else one that Playwright downloaded."""
    named = os.environ.get("CHROMIUM", "")
    for program in filter(None, (named, *PROGRAMS)):
        if path := shutil.which(program):
            return Path(path)
    downloads = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or "~/.cache/ms-playwright")
    return max(downloads.expanduser().glob("chromium-*/chrome-linux*/chrome"), default=None)
