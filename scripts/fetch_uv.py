"""Download uv from the configured package index and put it into a folder.

For machines whose Python has no pip and cannot install one: Debian and Ubuntu without
`python3-venv`. Standard library only, Python 3.8 or newer.

Usage: python3 scripts/fetch_uv.py VERSION FOLDER
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import platform
import re
import ssl
import sys
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Callable, Iterable
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

from package_index import IndexSettings, read_settings

JSON_INDEX = "application/vnd.pypi.simple.v1+json"
TIMEOUT_SECONDS = 60.0


class FetchError(Exception):
    """uv could not be fetched; the message says what to do."""


@dataclass(frozen=True)
class Wheel:
    """One wheel an index offers."""

    filename: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Platform:
    """Platform of this machine, which decides which wheel runs here.

    Attributes:
        system: `manylinux`, `musllinux` or `macosx`.
        version: version of the C library or of macOS.
        machine: name of the processor in wheels: `x86_64`, `aarch64`, `arm64`.
    """

    system: str
    version: tuple[int, int]
    machine: str

    def accepts(self, tag: str) -> bool:
        """Return whether a wheel's platform tag, such as `manylinux_2_17_x86_64`, runs here."""
        tag = tag.replace("manylinux2014_", "manylinux_2_17_")
        match = re.fullmatch(r"([a-z]+)_(\d+)_(\d+)_(\w+)", tag)
        if match is None or match[1] != self.system:
            return False
        needed = (int(match[2]), int(match[3]))
        machines = {self.machine, "universal2"} if self.system == "macosx" else {self.machine}
        return match[4] in machines and needed <= self.version


def this_platform() -> Platform:
    """Return the platform of this machine."""
    machine = platform.machine().lower()
    if sys.platform == "darwin":
        major, minor = (*platform.mac_ver()[0].split("."), "0")[:2]
        return Platform("macosx", (int(major), int(minor)), machine)
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    library, version = platform.libc_ver()
    if library == "glibc":
        major, minor = version.split(".")[:2]
        return Platform("manylinux", (int(major), int(minor)), machine)
    # musl names itself nowhere in Python; every musl in use is 1.2.
    return Platform("musllinux", (1, 2), machine)


def choose_wheel(wheels: Iterable[Wheel], version: str, here: Platform) -> Wheel | None:
    """Return the wheel of that version that runs here."""
    for wheel in wheels:
        parts = wheel.filename[: -len(".whl")].split("-")
        if not wheel.filename.endswith(".whl") or parts[:2] != ["uv", version]:
            continue
        if any(here.accepts(tag) for tag in parts[-1].split(".")):
            return wheel
    return None


def parse_index(body: bytes, content_type: str, page_url: str) -> list[Wheel]:
    """Read one project's page of an index: JSON (PEP 691) or HTML (PEP 503)."""
    if JSON_INDEX in content_type:
        return [
            Wheel(
                file["filename"], urljoin(page_url, file["url"]), file["hashes"].get("sha256", "")
            )
            for file in json.loads(body)["files"]
            if not file.get("yanked")
        ]
    parser = _LinkParser()
    parser.feed(body.decode("utf-8", "replace"))
    return [_wheel_of_link(urljoin(page_url, link)) for link in parser.links]


class _LinkParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "a" and attributes.get("href") and "data-yanked" not in attributes:
            self.links.append(str(attributes["href"]))


def _wheel_of_link(link: str) -> Wheel:
    url, fragment = urldefrag(link)
    sha256 = fragment[len("sha256=") :] if fragment.startswith("sha256=") else ""
    return Wheel(unquote(urlsplit(url).path.rsplit("/", 1)[-1]), url, sha256)


def programs_of(wheel: bytes) -> dict[str, bytes]:
    """Return the programs in a wheel by name."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        return {
            name.rsplit("/", 1)[-1]: archive.read(name)
            for name in archive.namelist()
            if re.fullmatch(r"[^/]+\.data/scripts/[^/]+", name)
        }


class Index:
    """Answers GET requests as pip makes them: with credentials from the URL, and certificates."""

    def __init__(self, certificates: str = "") -> None:
        self._context = ssl.create_default_context(cafile=certificates or None)
        self._authorization: dict[str, str] = {}

    def get(self, url: str) -> tuple[bytes, str]:
        """Return the body and its content type."""
        parts = urlsplit(url)
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            host = parts.netloc.rpartition("@")[2]
            self._authorization[host] = "Basic " + base64.b64encode(login.encode()).decode()
            parts = parts._replace(netloc=host)
        request = urllib.request.Request(urlunsplit(parts))
        request.add_header("Accept", f"{JSON_INDEX}, text/html;q=0.5, */*;q=0.1")
        request.add_header("User-Agent", "kfp-placement-bootstrap")
        if parts.netloc in self._authorization:
            # Not sent along when the index redirects to another host.
            request.add_unredirected_header("Authorization", self._authorization[parts.netloc])
        with urllib.request.urlopen(
            request, timeout=TIMEOUT_SECONDS, context=self._context
        ) as response:
            return response.read(), response.headers.get("Content-Type", "")


def fetch_uv(
    version: str,
    folder: Path,
    settings: IndexSettings,
    here: Platform,
    get: Callable[[str], tuple[bytes, str]],
) -> None:
    """Find the wheel, check it against the index's SHA-256, write its programs into the folder."""
    problems = []
    for index_url in (settings.index_url, *settings.extra_index_urls):
        page_url = index_url.rstrip("/") + "/uv/"
        try:
            body, content_type = get(page_url)
            wheel = choose_wheel(parse_index(body, content_type, page_url), version, here)
            if wheel is None:
                problems.append(f"{_host(index_url)} has no uv {version} for {here}")
                continue
            content, _ = get(wheel.url)
        except (OSError, ValueError, KeyError) as error:
            problems.append(f"{_host(index_url)}: {error}")
            continue
        if not wheel.sha256:
            raise FetchError(f"{_host(index_url)} gives no SHA-256 for {wheel.filename}: not used.")
        if hashlib.sha256(content).hexdigest() != wheel.sha256:
            raise FetchError(
                f"{wheel.filename} from {_host(index_url)} has a wrong SHA-256: not used."
            )
        _write_programs(programs_of(content), folder)
        return
    raise FetchError("uv could not be downloaded: " + "; ".join(problems))


def _write_programs(programs: dict[str, bytes], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in programs.items():
        # Written aside and moved: an interrupted run leaves no half program behind.
        temporary = folder / f".{name}.{os.getpid()}"
        temporary.write_bytes(content)
        temporary.chmod(0o755)
        temporary.replace(folder / name)


def _host(url: str) -> str:
    """Return the part of an index's address that may be printed: it can hold a password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def main(arguments: list[str]) -> int:
    """Fetch; 0 when done, 1 with a message when not."""
    version, folder = arguments
    settings = read_settings(os.environ, Path.home())
    try:
        index = Index(settings.certificates)
        fetch_uv(version, Path(folder), settings, this_platform(), index.get)
    except (FetchError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
