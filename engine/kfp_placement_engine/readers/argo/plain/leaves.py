"""A reader of Argo templates that run a pod, and so become leaves of the task tree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.pod_constraints import Requirement
from kfp_placement_engine.model.run_graph import Retry
from kfp_placement_engine.readers.argo.keys import WORKFLOW_LABEL
from kfp_placement_engine.readers.argo.pod_settings import (
    end_limits,
    has_open_patch,
    pod_resources,
    pod_spec_patch,
    resource_claims,
    retry_rules,
    start_limits,
)
from kfp_placement_engine.readers.argo.tags import TagReader
from kfp_placement_engine.readers.kubernetes.strategic_merge import POD_LISTS, merge
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import Constant, Expression, Runtime, Scope
from kfp_placement_engine.readers.tree.leaf_resources import (
    GAP,
    container_specs,
    gapless,
    init_containers,
)
from kfp_placement_engine.readers.tree.tasks import Leaf, MadeObject
from kfp_placement_engine.readers.tree.values import has_unknown, known_text

_MAX_ATTEMPTS = 1000

_OF_RUN = Requirement(WORKFLOW_LABEL, "In", ("name-of-the-workflow",))
"""Requirement that the pods of a run fulfil, whatever the name of its Workflow."""

_MAX_VARIANTS = 1000
"""Number of patches of one template that are kept after they are read."""

_MAKING_ACTIONS = ("create", "apply", "replace")
"""Actions of a resource template after which its object exists."""

_CONSTRAINTS = ("nodeSelector", "affinity", "tolerations")
"""Settings of where a pod may go."""


_UNKNOWN_OF_POD = (
    "unknown-resources",
    "what its pod requests as a whole is known only at run time and is not used",
)

_UNKNOWN_PATCH = (
    "unknown-patch",
    "its podSpecPatch is known only at run time and is not used",
)


def inside(spec: Fields, caller: Fields) -> Fields:
    """Return the Workflow's spec as it is for pods whose template a DAG or steps template calls.

    What the caller says on where pods may go replaces what the Workflow says, setting by setting
    (Argo's `addSchedulingConstraints`). What calls the caller does not matter.
    """
    own = {key: caller.get(key) for key in _CONSTRAINTS if _is_set(caller, key)}
    return Fields({**spec.raw, **own}, spec.place) if own else spec


def _is_set(holder: Fields, key: str) -> bool:
    """Return whether a setting is there for Argo: an empty affinity is, an empty list is not."""
    return holder.get(key) is not None if key == "affinity" else bool(holder.get(key))


def template_leaf(template: Fields, spec: Fields, tags: TagReader) -> Leaf:
    """Return the leaf of a template that runs a pod.

    Args:
        template: the template with its defaults merged in.
        spec: the Workflow's spec, for what it sets for all pods.
        tags: reader of tags.

    Raises:
        InputError: the template or the spec is malformed.
    """
    spec = Fields(spec.raw, template.place)
    if any(has_open_patch(each, tags) for each in (spec, template)):
        return _OpenTemplate(template, spec, tags).unpatched()
    return _LeafReader(template, spec, tags).leaf()


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


class _OpenTemplate:
    """A template whose patch is read for each step, when its tags are replaced."""

    def __init__(self, template: Fields, spec: Fields, tags: TagReader) -> None:
        self._template = template
        self._spec = spec
        self._tags = tags
        patches = [each.text("podSpecPatch") for each in (spec, template)]
        self._texts = [tags.kept_text(patch) for patch in patches]
        self._leaves: dict[tuple[str | None, ...], Leaf] = {}

    def unpatched(self) -> Leaf:
        """Return the leaf without any patch, which becomes another one in each scope."""
        return replace(self._with_patches("", ""), in_scope=self._in_scope)

    def _in_scope(self, scope: Scope) -> Leaf:
        texts = tuple(known_text(text.evaluate(scope)) for text in self._texts)
        if texts not in self._leaves:
            if len(self._leaves) >= _MAX_VARIANTS:
                self._leaves.clear()
            self._leaves[texts] = self._patched(texts)
        return self._leaves[texts]

    def _patched(self, texts: tuple[str | None, ...]) -> Leaf:
        """Return the leaf with patches in which only tags are left that no value is known for."""
        whole = [gapless(text) or "" for text in texts]
        if None not in texts:
            try:
                return self._with_patches(*(text or "" for text in texts))
            except InputError:
                if whole == [*texts]:
                    raise
        return replace(self._with_patches(*whole), problems=(_UNKNOWN_PATCH,))

    def _with_patches(self, of_spec: str, of_template: str) -> Leaf:
        spec = Fields({**self._spec.raw, "podSpecPatch": of_spec}, self._spec.place)
        template = {**self._template.raw, "podSpecPatch": of_template}
        return _LeafReader(Fields(template, self._template.place), spec, self._tags).leaf()


class _LeafReader:
    """Reader of one template that runs a pod; what it does not set, the Workflow's spec may."""

    def __init__(self, template: Fields, spec: Fields, tags: TagReader) -> None:
        self._template = template
        self._spec = spec
        self._tags = tags
        patches = [pod_spec_patch(each, tags) for each in (spec, template)]
        self._patch = Fields(merge(patches[0], patches[1], POD_LISTS), template.place)
        self._containers = self._patched("containers", self._own_containers())
        affinity = merge(self._stated("affinity"), self._patch.get("affinity"))
        self._affinity = Fields.of(affinity, template.where("affinity"))
        init = list(template.each("initContainers"))
        self._init_containers = self._patched("initContainers", init)

    def leaf(self) -> Leaf:
        """Return the leaf."""
        metadata = merge(self._spec.mapping("podMetadata"), self._template.mapping("metadata"))
        metadata = Fields(metadata, self._template.where("metadata"))
        of_pod = pod_resources(self._template, self._spec, self._patch)
        is_open = has_unknown(of_pod, GAP)
        # What Argo's own container requests is set by an admin, unless a patch says it.
        stating = [
            each
            for each in self._containers
            if each.get("name") != "wait" or each.get("resources") is not None
        ]
        return Leaf(
            image=self._tags.text(self._containers[0].get("image")),
            resources=tuple(
                spec
                for number, each in enumerate(stating)
                for spec in container_specs(each, self._tags.text, number)
            ),
            container_count=len(stating),
            init_containers=init_containers(self._init_containers, self._tags.text),
            pod_resources={} if is_open else of_pod,
            problems=((_UNKNOWN_OF_POD,) if is_open else ()),
            resource_claims=self._resource_claims(),
            made_object=self._made_object(),
            labels=self._texts(metadata, "labels"),
            annotations=self._texts(metadata, "annotations"),
            node_selectors=self._present(
                self._stated("nodeSelector"), self._patch.get("nodeSelector")
            ),
            affinities=self._present(self._affinity.get("nodeAffinity")),
            anti_affinities=self._anti_affinities(),
            of_run=_OF_RUN,
            # Kubernetes' patches replace a list as a whole.
            tolerations=self._present(
                self._patch.get("tolerations") or self._stated("tolerations")
            ),
            claims=self._claims(),
            start_limits=start_limits(self._template, self._tags),
            end_limits=end_limits(self._template, self._patch, self._tags),
            attempt_limit=self._attempts(),
            retry=self._retry(),
            caching_enabled=self._template.get("memoize") is not None,
            defaults=template_defaults(self._template, self._tags),
            place=self._template.place,
        )

    def _own_containers(self) -> list[Fields]:
        """Return the containers of the template, the main one first."""
        template = self._template
        sidecars = list(template.each("sidecars"))
        if template.get("containerSet") is not None:
            together = list(template.fields("containerSet").each("containers"))
            if together:
                return [*together, *sidecars]
        main = template.fields("script" if template.get("script") is not None else "container")
        return [Fields({**main.raw, "name": "main"}, main.place), *sidecars]

    def _patched(self, kind: str, own: Sequence[Fields]) -> Sequence[Fields]:
        """Return containers with those of the patch, which have the names of others or are new."""
        if not self._patch.get(kind):
            return own
        raw = [each.raw for each in own]
        # Beside the containers of the template, the pod has one of Argo.
        made = [{"name": "init"}, *raw] if kind == "initContainers" else [*raw, {"name": "wait"}]
        merged = merge(made, self._patch.entries(kind), POD_LISTS, kind)
        return list(Fields.each_of(merged, self._template.where(kind)))

    def _texts(self, metadata: Fields, kind: str) -> dict[str, Expression]:
        return {key: self._tags.text(text) for key, text in metadata.text_mapping(kind).items()}

    def _resource_claims(self) -> tuple[str, ...]:
        """Return the pod's claims for devices, and those that only a container names."""
        used = (
            claim.name("name")
            for container in (*self._containers, *self._init_containers)
            for claim in container.fields("resources").each("claims")
        )
        stated = resource_claims(self._template, self._spec, self._patch)
        return tuple(dict.fromkeys((*stated, *used)))

    def _made_object(self) -> MadeObject | None:
        if self._template.get("resource") is None:
            return None
        resource = self._template.fields("resource")
        if resource.text("action") not in _MAKING_ACTIONS:
            return None
        conditions = (resource.get("successCondition"), resource.get("failureCondition"))
        text, place = resource.text("manifest"), resource.where("manifest")
        manifest = self._tags.document(text, place) if text else Runtime()
        return MadeObject(manifest, any(conditions))

    def _stated(self, key: str) -> Any:
        """Return what the template, or else the Workflow, says on where the pod may go."""
        return (self._template if _is_set(self._template, key) else self._spec).get(key)

    def _present(self, *settings: Any) -> tuple[Expression, ...]:
        return tuple(self._tags.structure(value) for value in settings if value)

    def _anti_affinities(self) -> tuple[Expression, ...]:
        affinity = self._affinity.get("podAntiAffinity")
        # The name of a Workflow is often made only when it is created.
        tags = self._tags.with_values({"workflow.name": _OF_RUN.values[0]})
        return (tags.structure(affinity),) if affinity else ()

    def _claims(self) -> tuple[Expression, ...]:
        claims: dict[str, Expression] = {}
        for claim in self._spec.each("volumeClaimTemplates"):
            name = claim.fields("metadata").text("name")
            claims[name] = Constant(name)
        holders = (self._spec, self._template, self._patch)
        for volume in (volume for holder in holders for volume in holder.each("volumes")):
            claim_name = volume.fields("persistentVolumeClaim").get("claimName")
            if claim_name is not None:
                claims[volume.text("name")] = self._tags.text(claim_name)
        mounted = {
            mount.text("name")
            for container in (*self._containers, *self._init_containers)
            for mount in container.each("volumeMounts")
        }
        return tuple(claim for name, claim in claims.items() if name in mounted)

    def _strategy(self) -> Fields | None:
        """Return the retry strategy: the template's or else the Workflow's, or None."""
        holder = self._template if "retryStrategy" in self._template else self._spec
        return None if holder.get("retryStrategy") is None else holder.fields("retryStrategy")

    def _retry(self) -> Retry:
        strategy = self._strategy()
        if strategy is None:
            return Retry()
        stated = retry_rules(strategy)
        usual = "Always" if strategy.get("expression") else "OnFailure"
        return stated._replace(policy=stated.policy or usual)

    def _attempts(self) -> int:
        strategy = self._strategy()
        if strategy is None:
            return 1
        if strategy.get("limit") is None:
            # Argo then tries until it works.
            return _MAX_ATTEMPTS
        limit = self._tags.plain(strategy.get("limit"))
        if "{{" in limit:
            return _MAX_ATTEMPTS
        try:
            return 1 + min(strategy.where("limit").count(limit), _MAX_ATTEMPTS)
        except InputError:
            # A negative number is Argo's older form of "no limit".
            if limit.strip().startswith("-"):
                return _MAX_ATTEMPTS
            raise
