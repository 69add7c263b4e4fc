"""Whether every kind that a process needs is installed and may be used by its account."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import AccessError, NotFoundError
from kfp_placement_kube.kinds import ACCESS_REVIEWS, Kind

WATCH_VERBS = ("list", "watch")


@dataclass(frozen=True)
class Need:
    """What a process does with a kind.

    Attributes:
        kind: which.
        verbs: as RBAC names them.
        namespace: only there; "" = in all of them, or cluster-scoped.
        subresource: such as `status`.
        name: of the only object it is needed for; "" = of any.
    """

    kind: Kind
    verbs: tuple[str, ...] = WATCH_VERBS
    namespace: str = ""
    subresource: str = ""
    name: str = ""


def check_access(client: KubeClient, needs: Iterable[Need]) -> None:
    """Ask the API server whether all that is needed is served and allowed.

    Raises:
        AccessError: something is not; the message names all of it.
        KubernetesError: the question was refused, or there was no answer.
    """
    problems = [problem for need in needs for problem in _problems(client, need)]
    if problems:
        raise AccessError("; ".join(problems))


def is_served(client: KubeClient, kind: Kind) -> bool:
    """Whether the API server knows a kind.

    Raises:
        KubernetesError: the question was refused, or there was no answer.
    """
    try:
        known = client.get_path(kind.root).get("resources", ())
    except NotFoundError:
        return False
    return any(each.get("name") == kind.plural for each in known)


def is_allowed(client: KubeClient, need: Need, verb: str) -> bool:
    """Whether the account may do something.

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
