"""Settings of pods that an Argo template makes, or that the Workflow's spec makes for all pods."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kfp_placement_engine.model.run_graph import Retry
from kfp_placement_engine.readers.argo.tags import TagReader, has_open_tags
from kfp_placement_engine.readers.kubernetes.start_limits import DEADLINE, SETTINGS
from kfp_placement_engine.readers.kubernetes.strategic_merge import POD_LISTS, merge
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import Expression

POD_KINDS = ("container", "script", "containerSet", "resource", "data")
"""Kinds of templates that run a pod; suspend, http and plugin do not."""

_KINDS = (*POD_KINDS, "dag", "steps", "suspend", "http", "plugin")
"""Kinds of templates, each of which has one."""

_TEMPLATE_LISTS = {
    **POD_LISTS,
    "sidecars": "name",
    "tolerations": "key",
    "parameters": "name",
    "artifacts": "name",
}
"""Lists of a template that its defaults are merged into, with the key of their entries."""


class PodFields(NamedTuple):
    """Fields of a `Leaf` that are about its pod as a whole.

    Attributes:
        pod_resources: requests and limits of the pod, as written; empty = there are none.
        resource_claims: names of its claims for devices.
        start_limits: Argo's limits of the time until it runs, by setting.
        end_limits: limit of the time that it may take, by setting.
    """

    pod_resources: dict[str, Any]
    resource_claims: tuple[str, ...]
    start_limits: dict[str, Expression]
    end_limits: dict[str, Expression]


def with_defaults(defaults: Mapping[str, Any], template: Fields) -> Fields:
    """Return a template with the Workflow's `templateDefaults`, as Argo merges them.

    The defaults of another kind of template do not count.
    """
    if not defaults:
        return template
    own = next((kind for kind in _KINDS if template.get(kind) is not None), "")
    low = {key: value for key, value in defaults.items() if key == own or key not in _KINDS}
    return Fields(merge(low, template.raw, _TEMPLATE_LISTS), template.place)


def has_open_patch(fields: Fields, tags: TagReader) -> bool:
    """Return whether the `podSpecPatch` can be read only when its tags are replaced."""
    return has_open_tags(tags.plain(fields.get("podSpecPatch")))


def pod_spec_patch(fields: Fields, tags: TagReader) -> dict[str, Any]:
    """Return the `podSpecPatch` of a spec or template; tags stay in its values.

    Raises:
        InputError: the template or the spec is malformed.
    """
    text = tags.plain(fields.get("podSpecPatch"))
    if not text.strip():
        return {}
    place = fields.where("podSpecPatch")
    return place.mapping(tags.raw_documents(text, place)[0])


def pod_fields(template: Fields, spec: Fields, patch: Fields, tags: TagReader) -> PodFields:
    """Return what a template says of its pod as a whole.

    Args:
        template: the template with its defaults merged in.
        spec: the Workflow's spec, whose values count if the template has none.
        patch: the `podSpecPatch`.
        tags: reader of tags.

    Raises:
        InputError: a value is not a mapping, or a claim has no name.
    """
    resources = template.mapping("podResources") or spec.mapping("podResources")
    holder = template if template.get("resourceClaims") else spec
    claims = (*holder.each("resourceClaims"), *patch.each("resourceClaims"))
    limits = {setting: template.get(setting) for setting in SETTINGS}
    seconds = patch.get(DEADLINE, template.get(DEADLINE))
    return PodFields(
        merge(resources, patch.mapping("resources")),
        tuple(dict.fromkeys(claim.name("name") for claim in claims)),
        {setting: tags.text(value) for setting, value in limits.items() if value is not None},
        {} if seconds is None else {DEADLINE: tags.text(seconds)},
    )


def retry_rules(strategy: Fields) -> Retry:
    """Return the policy that a retry strategy names, and whether it wants another node each time.

    Raises:
        InputError: the strategy is malformed.
    """
    elsewhere = strategy.fields("affinity").get("nodeAntiAffinity") is not None
    return Retry(strategy.text("retryPolicy"), elsewhere)
