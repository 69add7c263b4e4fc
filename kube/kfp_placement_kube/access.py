"""Checks at the start that every kind a process needs is installed and allowed for its account."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import AccessError, NotFoundError
from kfp_placement_kube.kinds import ACCESS_REVIEWS, Kind

WATCH_VERBS = ("list", "watch")


@dataclass(frozen=True)
class Need:
    """A kind that a process uses, and the verbs that it must be allowed.

    Attributes:
        kind: kind of the objects.
        verbs: verbs of RBAC.
        namespace: the one namespace; "" = all of them, or a kind without namespaces.
        subresource: part of the objects, such as `status`; "" = the objects themselves.
        name: name of the only object that is used; "" = any object.
    """

    kind: Kind
    verbs: tuple[str, ...] = WATCH_VERBS
    namespace: str = ""
    subresource: str = ""
    name: str = ""


def check_access(client: KubeClient, needs: Iterable[Need]) -> None:
    """Ask the API server whether all that is needed is served and allowed.

    Raises:
        AccessError: a kind is missing or refused; the message names all of them.
        KubernetesError: the question was refused, or there was no answer.
    """
    problems = [problem for need in needs for problem in _problems(client, need)]
    if problems:
        raise AccessError("; ".join(problems))


def is_served(client: KubeClient, kind: Kind) -> bool:
    """Return whether the API server serves a kind.

    Raises:
        KubernetesError: the question was refused, or there was no answer.
    """
    try:
        resources = client.get_path(kind.root).get("resources", ())
    except NotFoundError:
        return False
    return any(resource.get("name") == kind.plural for resource in resources)


def is_allowed(client: KubeClient, need: Need, verb: str) -> bool:
    """Return whether the account may use one verb of a need.

    Raises:
        KubernetesError: the question was refused, or there was no answer.
    """
    attributes = {
        "group": need.kind.group,
        "resource": need.kind.plural,
        "subresource": need.subresource,
        "verb": verb,
        "namespace": need.namespace,
        "name": need.name,
    }
    answer = client.create(ACCESS_REVIEWS, {"spec": {"resourceAttributes": attributes}})
    return answer.get("status", {}).get("allowed") is True


def _problems(client: KubeClient, need: Need) -> Iterator[str]:
    if not is_served(client, need.kind):
        yield (
            f"the cluster knows no {need.kind.kind} ({need.kind.plural}, {need.kind.api_version}):"
            " install its definition"
        )
        return
    refused = [verb for verb in need.verbs if not is_allowed(client, need, verb)]
    if refused:
        part = f"/{need.subresource}" if need.subresource else ""
        where = f"namespace {need.namespace}" if need.namespace else "the whole cluster"
        yield (
            f"this account may not {', '.join(refused)} {need.kind.plural}{part} in {where}:"
            " bind the role that is shipped for it"
        )
