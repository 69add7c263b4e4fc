"""A reader of kubeconfigs that finds and understands them as kubectl does, except for proxies.

The official client reads them, with all the ways in which they can name an account. Its import
takes a second and 66 MB, so it is imported only here and only when there is a file to read; pods do
not need it. Like that client, it does not connect by a proxy: neither `proxy-url` nor `HTTPS_PROXY`
counts.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.exceptions import ConfigurationError
from kfp_placement_kube.kinds import JsonObject

DEFAULT_KUBECONFIG = "~/.kube/config"

# What the official client's reader raises on malformed files.
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError)


def named_kubeconfigs() -> str:
    """Return the kubeconfigs that kubectl would read, as text: `KUBECONFIG` or the usual file."""
    return os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG


def default_kubeconfigs() -> list[Path]:
    """Return the existing files among those that kubectl would read."""
    named = named_kubeconfigs().split(os.pathsep)
    paths = [Path(each).expanduser() for each in named if each]
    return [path for path in paths if path.is_file()]


def load_kubeconfig(kubeconfig: Path | None, context: str | None = None) -> Configuration:
    """Return the configuration that a kubeconfig has for a context.

    Args:
        kubeconfig: path of the file; None = the files that kubectl would read.
        context: name of the context; None = the current one.

    Raises:
        ConfigurationError: the kubeconfig has no such context, or one that cannot be used.
    """
    with _refusals():
        from kubernetes import client, config

        loaded = client.Configuration()
        config.load_kube_config(
            str(kubeconfig or named_kubeconfigs()),
            context=context,
            client_configuration=loaded,
            persist_config=False,
        )
    return Configuration(
        server=str(loaded.host),
        authorization=lambda: loaded.get_api_key_with_prefix("authorization"),
        authority_file=_path(loaded.ssl_ca_cert),
        verifies_server=bool(loaded.verify_ssl),
        certificate_file=_path(loaded.cert_file),
        key_file=_path(loaded.key_file),
        server_name=loaded.tls_server_name,
    )


def read_contexts(kubeconfig: Path | None) -> tuple[dict[str, str], str]:
    """Return the contexts' namespaces by context ("" = none is named), and the current context.

    Args:
        kubeconfig: path of the file; None = the files that kubectl would read.

    Raises:
        ConfigurationError: the kubeconfig cannot be used.
    """
    with _refusals():
        from kubernetes import config

        named = str(kubeconfig or named_kubeconfigs())
        contexts, current = config.list_kube_config_contexts(named)
        return {str(each["name"]): _namespace(each) for each in contexts}, str(current["name"])


def _namespace(context: JsonObject) -> str:
    """Return a context's namespace, or "" if it has none or is malformed.

    The malformed one may not be the one in use.
    """
    inner = context.get("context")
    return str(inner.get("namespace") or "") if isinstance(inner, dict) else ""


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn errors of the official client's reader into a `ConfigurationError`."""
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
        raise ConfigurationError(f"it is not YAML: {' '.join(str(error).split())}") from error
    except (ConfigException, OSError) as error:
        raise ConfigurationError(str(error)) from error
    except _MALFORMED as error:
        # The reader's own message helps nobody.
        raise ConfigurationError(
            "it must be a mapping with contexts, clusters and users, as kubectl writes it"
        ) from error
