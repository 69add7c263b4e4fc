"""A reader of the template of a pod whose patch is known: what it says, else what the spec says."""

from collections.abc import Sequence
from typing import Any

from kfp_placement_engine.model.pod_constraints import Requirement
from kfp_placement_engine.model.run_graph import Retry
from kfp_placement_engine.readers.argo.keys import WORKFLOW_LABEL
from kfp_placement_engine.readers.argo.plain.inputs_outputs import input_defaults
from kfp_placement_engine.readers.argo.plain.limits import locks
from kfp_placement_engine.readers.argo.pod_settings import pod_fields, pod_spec_patch, retry_rules
from kfp_placement_engine.readers.argo.tags import TagReader
from kfp_placement_engine.readers.kubernetes.strategic_merge import POD_LISTS, merge
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.forms import key_advice
from kfp_placement_engine.readers.tree.expressions import Constant, Expression, Runtime
from kfp_placement_engine.readers.tree.leaves import (
    Leaf,
    MadeObject,
    container_specs,
    init_containers,
)
from kfp_placement_engine.readers.tree.values import GAP, has_unknown

_MAX_ATTEMPTS = 1000

_OF_RUN = Requirement(WORKFLOW_LABEL, "In", ("name-of-the-workflow",))
"""Requirement that the pods of a run fulfil, whatever the name of its Workflow."""

_MAKING_ACTIONS = ("create", "apply", "replace")
"""Actions of a resource template after which its object exists."""

_ALSO_BY_ARGO = ("supervisor", "artifact-plugin-")
"""Beginnings of the names of containers that Argo may add."""

_CONSTRAINTS = ("nodeSelector", "affinity", "tolerations")
"""Settings of where a pod may go."""

_UNKNOWN_OF_POD = (
    "unknown-resources",
    "what its pod requests as a whole is known only at run time and is not used",
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


class PodLeafReader:
    """Reader of one template that runs a pod; what it does not set, the Workflow's spec may."""

    def __init__(self, template: Fields, spec: Fields, tags: TagReader) -> None:
        """Take a template and what the Workflow sets for all pods.

        Args:
            template: the template with its defaults merged in.
            spec: the Workflow's spec, at the template's place.
            tags: reader of tags.

        Raises:
            InputError: the template or the spec is malformed.
        """
        self._template = template
        self._spec = spec
        self._tags = tags
        patches = [pod_spec_patch(each, tags) for each in (spec, template)]
        self._patch = Fields(merge(patches[0], patches[1], POD_LISTS), template.place)
        self._problems: list[tuple[str, str]] = []
        self._containers = self._patched("containers", self._own_containers())
        affinity = merge(self._stated("affinity"), self._patch.get("affinity"))
        self._affinity = Fields.of(affinity, template.where("affinity"))
        init = list(template.each("initContainers"))
        self._init_containers = self._patched("initContainers", init)

    def leaf(self) -> Leaf:
        """Return the leaf.

        Raises:
            InputError: the template or the spec is malformed.
        """
        metadata = merge(self._spec.mapping("podMetadata"), self._template.mapping("metadata"))
        metadata = Fields(metadata, self._template.where("metadata"))
        of_pod = pod_fields(self._template, self._spec, self._patch, self._tags)
        is_open = has_unknown(of_pod.pod_resources, GAP)
        # What Argo's own containers request is set by an admin, unless a patch says it.
        own = ("main", "wait") if self._is_by_argo() else ("wait",)
        stating = [
            each
            for each in self._containers
            if each.get("name") not in own or each.get("resources") is not None
        ]
        attempts, retry = self._retries()
        return Leaf(
            image=self._tags.text(self._containers[0].get("image")),
            resources=tuple(
                spec
                for number, each in enumerate(stating)
                for spec in container_specs(each, self._tags.text, number)
            ),
            container_count=len(stating),
            init_containers=init_containers(self._init_containers, self._tags.text),
            pod_resources={} if is_open else of_pod.pod_resources,
            problems=(*self._problems, *((_UNKNOWN_OF_POD,) if is_open else ())),
            resource_claims=self._all_claims(of_pod.resource_claims),
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
            start_limits=of_pod.start_limits,
            end_limits=of_pod.end_limits,
            attempt_limit=attempts,
            retry=retry,
            caching_enabled=self._template.get("memoize") is not None,
            locks=locks(self._template, self._tags),
            defaults=input_defaults(self._template, self._tags),
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

    def _is_by_argo(self) -> bool:
        """Return whether the main container is Argo's own executor (`newExecContainer`)."""
        return any(self._template.get(kind) is not None for kind in ("resource", "data"))

    def _patched(self, kind: str, own: Sequence[Fields]) -> Sequence[Fields]:
        """Return containers with those of the patch, which have the names of others or are new."""
        if not self._patch.get(kind):
            return own
        raw = [each.raw for each in own]
        # Beside the containers of the template, the pod has one of Argo.
        made = [{"name": "init"}, *raw] if kind == "initContainers" else [*raw, {"name": "wait"}]
        merged = merge(made, self._patch.entries(kind), POD_LISTS, kind)
        containers = list(Fields.each_of(merged, self._template.where(kind)))
        names = [each.text("name") for each in containers[: len(made)]]
        for added in containers[len(made) :]:
            name = added.text("name")
            is_open = "{{" in name or GAP in name
            if not (is_open or added.get("image") or name.startswith(_ALSO_BY_ARGO)):
                problem = (
                    f"its podSpecPatch adds container {name!r:.80} without an image, so Kubernetes"
                    f" will refuse its pod; {key_advice(name, names, 'containers')}"
                )
                self._problems.append(("patched-container", problem))
        return containers

    def _texts(self, metadata: Fields, kind: str) -> dict[str, Expression]:
        return {key: self._tags.text(text) for key, text in metadata.text_mapping(kind).items()}

    def _all_claims(self, stated: tuple[str, ...]) -> tuple[str, ...]:
        """Return the pod's claims for devices, and those that only a container names."""
        used = (
            claim.name("name")
            for container in (*self._containers, *self._init_containers)
            for claim in container.fields("resources").each("claims")
        )
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

    def _retries(self) -> tuple[int, Retry]:
        """Return the largest number of attempts, and the rules of retries."""
        holder = self._template if "retryStrategy" in self._template else self._spec
        if holder.get("retryStrategy") is None:
            return 1, Retry()
        strategy = holder.fields("retryStrategy")
        stated, limit = retry_rules(strategy), self._tags.plain(strategy.get("limit")).strip()
        usual = "Always" if strategy.get("expression") else "OnFailure"
        rules = stated._replace(policy=stated.policy or usual)
        if strategy.get("limit") is None or limit.startswith("-") or "{{" in limit:
            # Argo tries until it works; a negative number is its older form of that.
            return _MAX_ATTEMPTS, rules
        return 1 + min(strategy.where("limit").count(limit), _MAX_ATTEMPTS), rules
