"""Where the API server is and who asks: kubeconfigs and service accounts, as kubectl reads them.

The official client reads them; it takes a second to import, so that it is imported only here, and
only when there is something to read.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kfp_placement_kube.exceptions import (
    ConfigurationError,
    NotAKubeconfigError,
    NotYamlError,
)

if TYPE_CHECKING:
    # For users of this module too: they need not name the client.
    from kubernetes.client import Configuration as Configuration

DEFAULT_KUBECONFIG = "~/.kube/config"

_SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

# What the official client's reader raises on malformed files.
_OTHER_FORM = (LookupError, TypeError, ValueError, AttributeError)


class Contexts(NamedTuple):
    """The contexts of a kubeconfig, as they are.

    Attributes:
        all: every one.
        current: the one that is chosen in the file.
    """

    all: Any
    current: Any


def named_kubeconfigs() -> str:
    """What names the kubeconfigs that kubectl would read: `KUBECONFIG`, else the usual file."""
    return os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG


def default_kubeconfigs() -> list[Path]:
    """Those of the files that kubectl would read that exist."""
    named = named_kubeconfigs().split(os.pathsep)
    paths = [Path(each).expanduser() for each in named if each]
    return [path for path in paths if path.is_file()]


def is_in_pod() -> bool:
    """Whether this is a pod with a service account."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and _SERVICE_ACCOUNT_NAMESPACE.is_file()


def service_account_namespace() -> str:
    """The namespace of the pod that this is; "" = the file is empty.

    Raises:
        ConfigurationError: this is not a pod with a service account.
    """
    with _refusals():
        return _SERVICE_ACCOUNT_NAMESPACE.read_text("utf-8").strip()


def load_service_account() -> "Configuration":
    """The configuration of a pod's service account, whose token is read again every minute.

    Raises:
        ConfigurationError: this is not a pod with a service account.
    """
    with _refusals():
        config, configuration = _official_client()
        config.load_incluster_config(configuration)
    return configuration


def load_kubeconfig(kubeconfig: Path | None, context: str | None = None) -> "Configuration":
    """The configuration that a kubeconfig has for a context.

    Args:
        kubeconfig: the file; None = those that kubectl would read.
        context: by name; None = the current one.

    Raises:
        ConfigurationError: it has none that can be used; the class says what is wrong.
    """
    with _refusals():
        config, configuration = _official_client()
        config.load_kube_config(
            None if kubeconfig is None else str(kubeconfig),
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    return configuration


def read_contexts(kubeconfig: Path | None) -> Contexts:
    """The contexts of a kubeconfig.

    Args:
        kubeconfig: the file; None = those that kubectl would read.

    Raises:
        ConfigurationError: it cannot be used; the class says what is wrong.
    """
    with _refusals():
        config, _ = _official_client()
        file = None if kubeconfig is None else str(kubeconfig)
        return Contexts(*config.list_kube_config_contexts(file))


def _official_client() -> "tuple[Any, Configuration]":
    from kubernetes import config
    from kubernetes.client import Configuration

    return config, Configuration()


@contextmanager
def _refusals() -> Iterator[None]:
    """Make errors of the official client's reader ours."""
    import yaml
    from kubernetes.config import ConfigException

    try:
        yield
    except (yaml.YAMLError, UnicodeError) as error:
        raise NotYamlError(" ".join(str(error).split())) from error
    except (ConfigException, OSError) as error:
        raise ConfigurationError(str(error)) from error
    except _OTHER_FORM as error:
        raise NotAKubeconfigError(str(error)) from error
