"""Package index and certificates that this machine is configured for.

uv knows its own settings only, a machine is usually configured for pip. Run as a program this
prints shell assignments that carry pip's settings over to uv; as a module it tells `fetch_uv.py`
where to ask.
Standard library only, Python 3.8 or newer: it runs before anything is installed.
"""

from __future__ import annotations

import configparser
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

PUBLIC_INDEX = "https://pypi.org/simple"

SYSTEM_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
)


@dataclass(frozen=True)
class IndexSettings:
    """Configuration of this machine for package installs.

    Attributes:
        index_url: the index to ask first.
        extra_index_urls: indexes to ask after it.
        certificates: a file of trusted certificates, or "" to leave the choice to the program.
    """

    index_url: str = PUBLIC_INDEX
    extra_index_urls: tuple[str, ...] = ()
    certificates: str = ""

    @property
    def is_public(self) -> bool:
        """True if the index is pypi.org, whose addresses the lock file names."""
        return self.index_url.rstrip("/") == PUBLIC_INDEX and not self.extra_index_urls


def read_settings(environment: Mapping[str, str], home: Path) -> IndexSettings:
    """Read uv's variables; where uv has none, pip's variables, then pip's configuration files."""
    pip_files = _read_pip_files(pip_configuration_files(environment, home))
    if is_set_for_uv(environment):
        index_url = _first(environment.get("UV_DEFAULT_INDEX"), environment.get("UV_INDEX_URL"))
        extra = _first(environment.get("UV_INDEX"), environment.get("UV_EXTRA_INDEX_URL"))
    else:
        index_url = _first(environment.get("PIP_INDEX_URL"), pip_files.get("index-url"))
        extra = _first(environment.get("PIP_EXTRA_INDEX_URL"), pip_files.get("extra-index-url"))
    certificates = _first(
        environment.get("SSL_CERT_FILE"),
        environment.get("PIP_CERT"),
        pip_files.get("cert"),
        environment.get("REQUESTS_CA_BUNDLE"),
        environment.get("CURL_CA_BUNDLE"),
    )
    return IndexSettings(
        index_url=_without_name(index_url) or PUBLIC_INDEX,
        extra_index_urls=tuple(_without_name(url) for url in extra.split()),
        certificates=certificates,
    )


def is_set_for_uv(environment: Mapping[str, str]) -> bool:
    """Return whether somebody chose an index for uv itself; pip's are then left alone."""
    names = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL")
    return any(environment.get(name) for name in names)


def pip_configuration_files(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Return the files that pip would read, the weakest first."""
    named = environment.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    user = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    files = [
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
        home / "Library/Application Support/pip/pip.conf",
        home / ".pip/pip.conf",
        user / "pip/pip.conf",
    ]
    return [*files, Path(named)] if named else files


def uv_environment(
    settings: IndexSettings,
    environment: Mapping[str, str],
    system_certificates: Sequence[str] = SYSTEM_CERTIFICATES,
) -> dict[str, str]:
    """Variables that make uv see the settings; what is set for uv itself stays as it is."""
    result = {}
    if not is_set_for_uv(environment):
        if settings.index_url.rstrip("/") != PUBLIC_INDEX:
            result["UV_DEFAULT_INDEX"] = settings.index_url
        if settings.extra_index_urls:
            result["UV_INDEX"] = " ".join(settings.extra_index_urls)
    # uv brings its own list of authorities, which knows nothing of a company's proxy.
    certificates = settings.certificates or next(filter(os.path.exists, system_certificates), "")
    if certificates:
        result["SSL_CERT_FILE"] = certificates
    return {name: value for name, value in result.items() if environment.get(name) != value}


def _read_pip_files(files: Sequence[Path]) -> dict[str, str]:
    values: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError) as error:
            print(f"{file} is skipped: {error}", file=sys.stderr)
            continue
        for section in ("global", "install"):
            if parser.has_section(section):
                values.update({k.replace("_", "-"): v for k, v in parser.items(section)})
    return values


def _first(*values: str | None) -> str:
    return next((value.strip() for value in values if value and value.strip()), "")


def _without_name(url: str) -> str:
    """`name=https://...` is how uv lets people name an index."""
    name, separator, rest = url.partition("=")
    return rest if separator and "/" not in name else url


def main() -> None:
    """Print the assignments, and whether the lock file's own addresses can be used."""
    settings = read_settings(os.environ, Path.home())
    for name, value in uv_environment(settings, os.environ).items():
        print(f"export {name}={shlex.quote(value)}")
    print(f"index_is_public={'yes' if settings.is_public else 'no'}")


if __name__ == "__main__":
    main()
