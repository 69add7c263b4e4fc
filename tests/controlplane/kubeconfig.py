"""Users of a control plane with static tokens, and their kubeconfig files."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import yaml


def _new_token() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class User:
    """Someone whom the API server knows by a token.

    Attributes:
        name: the user's name; RBAC and audit see it.
        groups: groups of the user; `system:masters` may do everything.
        token: the secret; made up unless it is given.
    """

    name: str
    groups: tuple[str, ...] = ()
    token: str = field(default_factory=_new_token, repr=False)


def write_token_file(path: Path, users: Iterable[User]) -> None:
    """The API server's `--token-auth-file`: token, name, unique id, groups."""
    lines = (
        f'{user.token},"{user.name}","{user.name}","{",".join(user.groups)}"\n' for user in users
    )
    path.touch(mode=0o600)
    path.write_text("".join(lines))


def write_kubeconfig(path: Path, server: str, authority: Path, token: str) -> Path:
    """A kubeconfig with one context.

    Args:
        path: path of the file to write.
        server: the API server's address.
        authority: certificate of the authority that the server's certificate is checked by.
        token: token of a user or a service account.
    """
    name = "kfp-placement-test"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority": str(authority)}}
        ],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
