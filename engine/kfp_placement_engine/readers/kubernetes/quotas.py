"""A reader of ResourceQuotas and LimitRanges, with which a namespace refuses and changes pods."""

from collections.abc import Iterator
from contextlib import suppress

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.cluster import LimitRange, Quota
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.units.quantities import parse_resource
from kfp_placement_engine.units.resources import HUGE_PAGES, is_extended

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_PODS = ("pods", "count/pods")
_CLAIMS, _STORAGE = "persistentvolumeclaims", "requests.storage"
_BY_CLASS = ".storageclass.storage.k8s.io/"


def read_quota(raw: Fields) -> Quota:
    """Read a ResourceQuota; what it says of services, objects and the like is left out.

    Raises:
        InputError: the object, or an amount, is malformed.
    """
    metadata = raw.fields("metadata")
    name, namespace = metadata.name("name"), metadata.text("namespace") or "default"
    raw = raw.at(" {:.80}", name)
    spec, status = raw.fields("spec"), raw.fields("status")
    selectors = spec.fields("scopeSelector").each("matchExpressions")
    scopes = (*spec.texts("scopes"), *(each.text("scopeName") for each in selectors))
    return Quota(name, namespace, _counted(spec, "hard"), _counted(status, "used"), scopes)


def _counted(holder: Fields, key: str) -> dict[str, int]:
    """Return amounts by one name for each resource: `cpu` is `requests.cpu`, too."""
    amounts: dict[str, int] = {}
    for name, value in holder.mapping(key).items():
        kind, _, resource = str(name).partition(".")
        if name in _PODS:
            kind, resource = "pods", ""
        elif name in _COMPUTE or str(name).startswith(HUGE_PAGES):
            kind, resource = "requests", str(name)
        elif name == f"count/{_CLAIMS}":
            kind = _CLAIMS
        is_of_claims = kind == _CLAIMS or name == _STORAGE or _BY_CLASS in str(name)
        is_of_pods = kind == "pods" or resource in _COMPUTE or resource.startswith(HUGE_PAGES)
        if (
            not is_of_claims
            and not is_of_pods
            and not (kind == "requests" and is_extended(resource))
        ):
            continue
        full_name = f"{kind}.{resource}" if resource else kind
        amount = _amount(holder, resource or "pods", value)
        amounts[full_name] = min(amount, amounts.get(full_name, amount))
    return amounts


def claim_usage(size: object, storage_class: str | None) -> dict[str, int]:
    """Return what quotas count for a claim, by their names (`evaluator/core`).

    Args:
        size: size as it is written; "" or None = not stated.
        storage_class: name of its class; "" or None = the cluster's default.
    """
    usage = {_CLAIMS: 1}
    with suppress(QuantityError):
        usage |= {_STORAGE: parse_resource("storage", size)} if size else {}
    of_class = {f"{storage_class}{_BY_CLASS}{name}": amount for name, amount in usage.items()}
    return usage | (of_class if storage_class else {})


def _amount(holder: Fields, resource: str, value: object) -> int:
    try:
        return parse_resource(resource, value)
    except QuantityError as error:
        raise holder.place.error(f"{error}", QuantityError) from error


def read_limit_range(raw: Fields) -> list[LimitRange]:
    """Read the items of a LimitRange that are about containers and pods.

    Raises:
        InputError: the object, or an amount, is malformed.
    """
    metadata = raw.fields("metadata")
    name, namespace = metadata.name("name"), metadata.text("namespace") or "default"
    items = raw.at(" {:.80}", name).fields("spec").each("limits")
    return list(_items(name, namespace, items))


def _items(name: str, namespace: str, items: Iterator[Fields]) -> Iterator[LimitRange]:
    for item in items:
        kind = item.text("type")
        if kind not in ("Container", "Pod"):
            continue
        least, most = item.resources("min"), item.resources("max")
        limits, requests = item.resources("default"), item.resources("defaultRequest")
        if kind == "Container":
            # As SetDefaults_LimitRangeItem (`pkg/apis/core/v1/defaults.go`).
            limits = {**most, **limits}
            requests = {**least, **limits, **requests}
        ratios = item.fields("maxLimitRequestRatio")
        yield LimitRange(
            name=name,
            namespace=namespace,
            of_pod=kind == "Pod",
            least=least,
            most=most,
            default_requests=requests,
            default_limits=limits,
            most_ratio={
                str(key): _amount(ratios, "cpu", value) / 1000 for key, value in ratios.raw.items()
            },
        )
