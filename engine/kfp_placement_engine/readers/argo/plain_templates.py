"""A reader of Argo templates that run a pod, and so become leaves of the task tree."""

from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.plain_text import TagReader
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import EMPTY, Constant, Expression
from kfp_placement_engine.readers.tree.tasks import Leaf, ResourceSpec

POD_KINDS = ("container", "script", "containerSet", "resource", "data")
"""Kinds of templates that run a pod; suspend, http and plugin do not."""

_MAX_ATTEMPTS = 1000


def merge(low: Any, high: Any) -> Any:
    """Merge two values: mappings key by key, everything else is taken from `high`."""
    if isinstance(low, dict) and isinstance(high, dict):
        return {**low, **{key: merge(low.get(key), value) for key, value in high.items()}}
    return low if high is None else high


def template_leaf(template: Fields, spec: Fields, tags: TagReader) -> Leaf:
    """Return the leaf of a template that runs a pod.

    Args:
        template: the template with its defaults merged in.
        spec: the Workflow's spec, for what it sets for all pods.
        tags: reader of tags.

    Raises:
        InputError: the template or the spec is malformed.
    """
    place = template.place
    spec = Fields(spec.raw, place)
    patch = Fields(merge(pod_spec_patch(spec, tags), pod_spec_patch(template, tags)), place)
    containers = _containers(template, patch)
    labels, annotations = _metadata(template, spec, tags)
    return Leaf(
        image=tags.text(containers[0].get("image")) if containers else EMPTY,
        resources=_resources(containers, tags),
        labels=labels,
        annotations=annotations,
        node_selectors=_constraint("nodeSelector", template, spec, patch, tags),
        affinities=_affinities(template, spec, patch, tags),
        tolerations=_constraint("tolerations", template, spec, patch, tags),
        claims=_claims(template, spec, containers, tags),
        attempt_limit=_attempts(template, spec, tags),
        caching_enabled=template.get("memoize") is not None,
        defaults=template_defaults(template, tags),
        place=place,
    )


def template_defaults(template: Fields, tags: TagReader) -> dict[str, Any]:
    """Return the values of input parameters that a template sets itself.

    Raises:
        InputError: the template or the spec is malformed.
    """
    defaults = {}
    for fields in template.fields("inputs").each("parameters"):
        value = tags.text(fields.get("value", fields.get("default")))
        if isinstance(value, Constant) and value.value is not None:
            defaults[fields.text("name")] = value.value
    return defaults


def pod_spec_patch(fields: Fields, tags: TagReader) -> dict[str, Any]:
    """Return the `podSpecPatch` of a spec or template; empty if it is known only at run time.

    Raises:
        InputError: the template or the spec is malformed.
    """
    text = tags.plain(fields.get("podSpecPatch"))
    if not text.strip() or "{{" in text:
        return {}
    place = fields.where("podSpecPatch")
    data = text.encode("utf-8", "replace")
    return place.mapping(load_documents(data, name=place.spelled, max_bytes=RUN_MAX_BYTES)[0])


def _containers(template: Fields, patch: Fields) -> list[Fields]:
    """Return the pod's containers, the main one first."""
    containers = [
        template.fields(kind) for kind in ("container", "script") if template.get(kind) is not None
    ]
    containers.extend(template.fields("containerSet").each("containers"))
    containers.extend(template.each("sidecars"))
    for fields in patch.each("containers"):
        if containers and fields.get("name") in ("main", containers[0].get("name")):
            containers[0] = Fields(merge(containers[0].raw, fields.raw), template.place)
    return containers


def _metadata(
    template: Fields, spec: Fields, tags: TagReader
) -> tuple[dict[str, Expression], dict[str, Expression]]:
    merged = merge(spec.mapping("podMetadata"), template.mapping("metadata"))
    metadata = Fields(merged, template.where("metadata"))
    labels_and_annotations = []
    for kind in ("labels", "annotations"):
        texts = metadata.text_mapping(kind)
        labels_and_annotations.append({key: tags.text(text) for key, text in texts.items()})
    return labels_and_annotations[0], labels_and_annotations[1]


def _resources(containers: list[Fields], tags: TagReader) -> tuple[ResourceSpec, ...]:
    specs = []
    for container in containers:
        resources = container.fields("resources")
        requests, limits = resources.mapping("requests"), resources.mapping("limits")
        for name in sorted({*requests, *limits}):
            request = tags.text(requests[name]) if name in requests else None
            limit = tags.text(limits[name]) if name in limits else None
            specs.append(ResourceSpec(Constant(name), request, limit))
    return tuple(specs)


def _constraint(
    key: str, template: Fields, spec: Fields, patch: Fields, tags: TagReader
) -> tuple[Expression, ...]:
    """Return a setting: the template's own or else the Workflow's, then the one of the patches."""
    settings = [template.get(key) or spec.get(key), patch.get(key)]
    return tuple(tags.structure(value) for value in settings if value)


def _affinities(
    template: Fields, spec: Fields, patch: Fields, tags: TagReader
) -> tuple[Expression, ...]:
    for source in (patch, template, spec):
        affinity = source.fields("affinity")
        if affinity:
            own = affinity.get("nodeAffinity")
            return (tags.structure(own),) if own else ()
    return ()


def _claims(
    template: Fields, spec: Fields, containers: list[Fields], tags: TagReader
) -> tuple[Expression, ...]:
    claims: dict[str, Expression] = {}
    for claim in spec.each("volumeClaimTemplates"):
        name = claim.fields("metadata").text("name")
        claims[name] = Constant(name)
    for volume in (*spec.each("volumes"), *template.each("volumes")):
        claim_name = volume.fields("persistentVolumeClaim").get("claimName")
        if claim_name is not None:
            claims[volume.text("name")] = tags.text(claim_name)
    mounted = {
        mount.text("name")
        for container in [*containers, *template.each("initContainers")]
        for mount in container.each("volumeMounts")
    }
    return tuple(claim for name, claim in claims.items() if name in mounted)


def _attempts(template: Fields, spec: Fields, tags: TagReader) -> int:
    holder = template if "retryStrategy" in template else spec
    if holder.get("retryStrategy") is None:
        return 1
    strategy = holder.fields("retryStrategy")
    if strategy.get("limit") is None:
        # Argo then tries until it works.
        return _MAX_ATTEMPTS
    limit = tags.plain(strategy.get("limit"))
    if "{{" in limit:
        return _MAX_ATTEMPTS
    try:
        return 1 + min(strategy.where("limit").count(limit), _MAX_ATTEMPTS)
    except InputError:
        # A negative number is Argo's older form of "no limit".
        if limit.strip().startswith("-"):
            return _MAX_ATTEMPTS
        raise
