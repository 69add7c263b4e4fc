"""Kubeconfigs, as kubectl reads them.

The official client reads them, with all the ways in which they can name an account. It takes a
second and 66 MB to import, so that it is imported only here, and only when there is something to
read; pods need none of it.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.exceptions import ConfigurationError

DEFAULT_KUBECONFIG = "~/.kube/config"

# What the official client's reader raises on malformed files.
_OTHER_FORM = (LookupError, TypeError, ValueError, AttributeError)


def named_kubeconfigs() -> str:
    """What names the kubeconfigs that kubectl would read: `KUBECONFIG`, else the usual file."""
    return os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG


def default_kubeconfigs() -> list[Path]:
    """Those of the files that kubectl would read that exist."""
    named = named_kubeconfigs().split(os.pathsep)
    paths = [Path(each).expanduser() for each in named if each]
    return [path for path in paths if path.is_file()]


def load_kubeconfig(kubeconfig: Path | None, context: str | None = None) -> Configuration:
    """The configuration that a kubeconfig has for a context.

    Args:
        kubeconfig: the file; None = those that kubectl would read.
        context: by name; None = the current one.

    Raises:
        ConfigurationError: it has none that can be used.
    """
    with _refusals():
        from kubernetes import client, config

        found = client.Configuration()
        config.load_kube_config(
            None if kubeconfig is None else str(kubeconfig),
            context=context,
            client_configuration=found,
            persist_config=False,
        )
    return Configuration(
        server=str(found.host),
        authorization=lambda: found.get_api_key_with_prefix("authorization"),
        authority_file=_path(found.ssl_ca_cert),
        verifies_server=bool(found.verify_ssl),
        certificate_file=_path(found.cert_file),
        key_file=_path(found.key_file),
        server_name=found.tls_server_name,
    )


def read_contexts(kubeconfig: Path | None) -> tuple[dict[str, str], str]:
    """The namespace of each context of a kubeconfig ("" = none is said), and the current context.

    Args:
        kubeconfig: the file; None = those that kubectl would read.

    Raises:
        ConfigurationError: it cannot be used.
    """
    with _refusals():
        from kubernetes import config

        file = None if kubeconfig is None else str(kubeconfig)
        contexts, current = config.list_kube_config_contexts(file)
        return {str(each["name"]): _namespace(each) for each in contexts}, str(current["name"])


def _namespace(context: Mapping[str, Any]) -> str:
    """The namespace of a context; one that is malformed, and perhaps of no interest, has none."""
    inner = context.get("context")
    return str(inner.get("namespace") or "") if isinstance(inner, dict) else ""


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None


@contextmanager
def _refusals() -> Iterator[None]:
    """Make errors of the official client's reader ours."""
    try:
        import yaml
        from kubernetes.config import ConfigException
    except ImportError as error:
        raise ConfigurationError(
            "reading a kubeconfig needs the official Kubernetes client:"
            " pip install 'kfp-placement-kube[kubeconfig]'"
        ) from error
    try:
        yield
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigurationError(f"no YAML: {' '.join(str(error).split())}") from error
    except (ConfigException, OSError) as error:
        raise ConfigurationError(str(error)) from error
    except _OTHER_FORM as error:
        # What the reader says helps nobody.
        raise ConfigurationError(
            "it must be a mapping with contexts, clusters and users, as kubectl writes it"
        ) from error
