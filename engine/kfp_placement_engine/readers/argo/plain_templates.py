"""Argo templates that are pods -> leaves."""

from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.plain_text import TagReader
from kfp_placement_engine.readers.fields import as_count, as_list, as_mapping, as_text
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents
from kfp_placement_engine.readers.tree.expressions import EMPTY, Constant, Expression
from kfp_placement_engine.readers.tree.tasks import Leaf, ResourceSpec

POD_KINDS = ("container", "script", "containerSet", "resource", "data")
"""Kinds of templates that run a pod; suspend, http and plugin do not."""

_MAX_ATTEMPTS = 1000


def merge(low: Any, high: Any) -> Any:
    """Two mappings as one: mappings are merged, everything else is taken from `high`."""
    if isinstance(low, dict) and isinstance(high, dict):
        return {**low, **{key: merge(low.get(key), value) for key, value in high.items()}}
    return low if high is None else high


def template_leaf(
    template: dict[str, Any], spec: dict[str, Any], tags: TagReader, place: str
) -> Leaf:
    """The leaf of a template that is a pod.

    Args:
        template: the template, its defaults merged in.
        spec: the Workflow's spec, for what it sets for all pods.
        tags: reads tags.
        place: file and path, for messages.

    Raises:
        InputError: malformed.
    """
    patch = merge(pod_spec_patch(spec, tags, place), pod_spec_patch(template, tags, place))
    containers = _containers(template, patch, place)
    labels, annotations = _metadata(template, spec, tags, place)
    return Leaf(
        image=tags.text(containers[0].get("image")) if containers else EMPTY,
        resources=_resources(containers, tags, place),
        labels=labels,
        annotations=annotations,
        node_selectors=_constraint("nodeSelector", template, spec, patch, tags),
        affinities=_affinities(template, spec, patch, tags, place),
        tolerations=_constraint("tolerations", template, spec, patch, tags),
        claims=_claims(template, spec, containers, tags, place),
        attempt_limit=_attempts(template, spec, tags, place),
        caching_enabled=template.get("memoize") is not None,
        defaults=template_defaults(template, tags, place),
        place=place,
    )


def template_defaults(template: dict[str, Any], tags: TagReader, place: str) -> dict[str, Any]:
    """Values of input parameters that a template sets itself.

    Raises:
        InputError: malformed.
    """
    inputs = as_mapping(template.get("inputs"), f"{place}: inputs")
    defaults = {}
    for entry in as_list(inputs.get("parameters"), f"{place}: inputs.parameters"):
        fields = as_mapping(entry, f"{place}: inputs.parameters")
        value = tags.text(fields.get("value", fields.get("default")))
        if isinstance(value, Constant) and value.value is not None:
            defaults[as_text(fields.get("name"), f"{place}: inputs.parameters")] = value.value
    return defaults


def pod_spec_patch(fields: dict[str, Any], tags: TagReader, place: str) -> dict[str, Any]:
    """The `podSpecPatch` of a spec or template; one that is known only at run time counts as none.

    Raises:
        InputError: malformed.
    """
    text = tags.plain(fields.get("podSpecPatch"))
    if not text.strip() or "{{" in text:
        return {}
    data = text.encode("utf-8", "replace")
    documents = load_documents(data, name=f"{place}: podSpecPatch", max_bytes=RUN_MAX_BYTES)
    return as_mapping(documents[0], f"{place}: podSpecPatch")


def _containers(
    template: dict[str, Any], patch: dict[str, Any], place: str
) -> list[dict[str, Any]]:
    """The pod's containers, the main one first."""
    found: list[dict[str, Any]] = []
    for kind in ("container", "script"):
        if template.get(kind) is not None:
            found.append(as_mapping(template[kind], f"{place}: {kind}"))
    group = as_mapping(template.get("containerSet"), f"{place}: containerSet")
    listed = [
        *as_list(group.get("containers"), f"{place}: containerSet"),
        *as_list(template.get("sidecars"), f"{place}: sidecars"),
    ]
    found.extend(as_mapping(entry, f"{place}: containers") for entry in listed)
    patched = as_list(patch.get("containers"), f"{place}: podSpecPatch.containers")
    for entry in patched:
        fields = as_mapping(entry, f"{place}: podSpecPatch.containers")
        if found and fields.get("name") in ("main", found[0].get("name")):
            found[0] = merge(found[0], fields)
    return found


def _metadata(
    template: dict[str, Any], spec: dict[str, Any], tags: TagReader, place: str
) -> tuple[dict[str, Expression], dict[str, Expression]]:
    metadata = merge(
        as_mapping(spec.get("podMetadata"), f"{place}: podMetadata"),
        as_mapping(template.get("metadata"), f"{place}: metadata"),
    )
    found = []
    for kind in ("labels", "annotations"):
        entries = as_mapping(metadata.get(kind), f"{place}: metadata.{kind}")
        texts = {key: as_text(text, f"{place}: metadata.{kind}") for key, text in entries.items()}
        found.append({key: tags.text(text) for key, text in texts.items()})
    return found[0], found[1]


def _resources(
    containers: list[dict[str, Any]], tags: TagReader, place: str
) -> tuple[ResourceSpec, ...]:
    specs = []
    for container in containers:
        resources = as_mapping(container.get("resources"), f"{place}: resources")
        requests = as_mapping(resources.get("requests"), f"{place}: resources.requests")
        limits = as_mapping(resources.get("limits"), f"{place}: resources.limits")
        for name in sorted({*requests, *limits}):
            request = tags.text(requests[name]) if name in requests else None
            limit = tags.text(limits[name]) if name in limits else None
            specs.append(ResourceSpec(Constant(name), request, limit))
    return tuple(specs)


def _constraint(
    key: str,
    template: dict[str, Any],
    spec: dict[str, Any],
    patch: dict[str, Any],
    tags: TagReader,
) -> tuple[Expression, ...]:
    """A template's own setting stands in place of the Workflow's; patches come on top."""
    found = [template.get(key) or spec.get(key), patch.get(key)]
    return tuple(tags.structure(value) for value in found if value)


def _affinities(
    template: dict[str, Any],
    spec: dict[str, Any],
    patch: dict[str, Any],
    tags: TagReader,
    place: str,
) -> tuple[Expression, ...]:
    found = []
    for source in (patch, template, spec):
        affinity = as_mapping(source.get("affinity"), f"{place}: affinity")
        if affinity:
            if affinity.get("nodeAffinity"):
                found.append(tags.structure(affinity["nodeAffinity"]))
            break
    return tuple(found)


def _claims(
    template: dict[str, Any],
    spec: dict[str, Any],
    containers: list[dict[str, Any]],
    tags: TagReader,
    place: str,
) -> tuple[Expression, ...]:
    claims: dict[str, Expression] = {}
    for entry in as_list(spec.get("volumeClaimTemplates"), f"{place}: volumeClaimTemplates"):
        metadata = as_mapping(as_mapping(entry, place).get("metadata"), place)
        name = as_text(metadata.get("name"), place)
        claims[name] = Constant(name)
    volumes = [
        *as_list(spec.get("volumes"), f"{place}: volumes"),
        *as_list(template.get("volumes"), f"{place}: volumes"),
    ]
    for entry in volumes:
        volume = as_mapping(entry, f"{place}: volumes")
        source = as_mapping(volume.get("persistentVolumeClaim"), f"{place}: volumes")
        if source.get("claimName") is not None:
            name = as_text(volume.get("name"), f"{place}: volumes")
            claims[name] = tags.text(source["claimName"])
    mounted = {
        as_text(as_mapping(mount, place).get("name"), f"{place}: volumeMounts")
        for container in [*containers, *_init_containers(template, place)]
        for mount in as_list(container.get("volumeMounts"), f"{place}: volumeMounts")
    }
    return tuple(claim for name, claim in claims.items() if name in mounted)


def _init_containers(template: dict[str, Any], place: str) -> list[dict[str, Any]]:
    listed = as_list(template.get("initContainers"), f"{place}: initContainers")
    return [as_mapping(entry, f"{place}: initContainers") for entry in listed]


def _attempts(template: dict[str, Any], spec: dict[str, Any], tags: TagReader, place: str) -> int:
    strategy = template.get("retryStrategy", spec.get("retryStrategy"))
    if strategy is None:
        return 1
    fields = as_mapping(strategy, f"{place}: retryStrategy")
    if fields.get("limit") is None:
        # Argo then tries until it works.
        return _MAX_ATTEMPTS
    limit = tags.plain(fields["limit"])
    if "{{" in limit:
        return _MAX_ATTEMPTS
    try:
        return 1 + min(as_count(limit, f"{place}: retryStrategy.limit"), _MAX_ATTEMPTS)
    except InputError:
        # Negative: Argo's older way to say "no limit".
        if limit.strip().startswith("-"):
            return _MAX_ATTEMPTS
        raise
