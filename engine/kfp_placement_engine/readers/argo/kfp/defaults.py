"""Settings that an administrator makes for all pods of KFP's Workflows.

An administrator sets them in the Workflow's spec, its `templateDefaults`, its `podSpecPatch` or the
template of KFP's executors. When a pod is made, KFP's driver adds the task's own settings, which
take precedence.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kfp_placement_engine.contract.gates import PREFERRED, REQUIRED
from kfp_placement_engine.readers.argo.pod_settings import (
    has_open_patch,
    pod_fields,
    pod_spec_patch,
    retry_rules,
    with_defaults,
)
from kfp_placement_engine.readers.argo.tags import TagReader
from kfp_placement_engine.readers.argo.workflow_templates import WorkflowTemplates
from kfp_placement_engine.readers.kubernetes.strategic_merge import merge
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import Constant, Expression
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.values import GAP, has_unknown


class _TemplateDefaults(NamedTuple):
    """Settings of a Workflow for the pods of one template.

    Attributes:
        selector, tolerations, affinity: constraints, as in the Workflow; empty = none.
        of_pod: fields of a leaf that are about its pod as a whole, by name.
    """

    selector: Mapping[str, str]
    tolerations: Any
    affinity: Any
    of_pod: Mapping[str, Any]


class WorkflowDefaults:
    """Constraints that a Workflow sets for the pods of each of its templates."""

    def __init__(self, spec: Fields, templates: WorkflowTemplates) -> None:
        """Read the constraints of a spec.

        Args:
            spec: the Workflow's spec, at the place of its file.
            templates: templates of the same spec, by name.

        Raises:
            InputError: the spec is malformed.
        """
        self._spec = spec
        self._templates = templates
        self._defaults = spec.mapping("templateDefaults")
        self._tags = TagReader({}, {})
        self._patch = self._known_patch()
        self._by_template: dict[str, _TemplateDefaults] = {}

    def _known_patch(self) -> dict[str, Any]:
        """Return the patch of all pods; empty if a part of it is known only at run time."""
        if has_open_patch(self._spec, self._tags):
            return {}
        patch = pod_spec_patch(self._spec, self._tags)
        return {} if has_unknown(patch, GAP) else patch

    def under(self, leaf: Leaf, template: str) -> Leaf:
        """Return the leaf with the defaults of its pod's template; its own settings win.

        Args:
            leaf: leaf of the task, as KFP describes it.
            template: name of the task's template.

        Raises:
            InputError: the spec is malformed.
        """
        defaults = self._by_template.get(template)
        if defaults is None:
            defaults = self._by_template[template] = self._of_template(template)
        if defaults.of_pod:
            own = {"end_limits": leaf.end_limits} if leaf.end_limits else {}
            leaf = replace(leaf, **{**defaults.of_pod, **own})
        return replace(
            leaf,
            node_selectors=(*_constant(defaults.selector), *leaf.node_selectors),
            # Kubernetes' patches replace a list as a whole, so the task's own list wins.
            tolerations=leaf.tolerations or _constant(defaults.tolerations),
            affinities=self._affinities(leaf, defaults.affinity),
        )

    def _of_template(self, template: str) -> _TemplateDefaults:
        pod = self._templates.template(self._pod_template(template))
        merged = with_defaults(self._defaults, pod)
        patch = Fields(self._patch, self._spec.place)
        of_pod = pod_fields(merged, self._spec, patch, self._tags)._asdict()
        # KFP itself states no rules of retries.
        of_pod["retry"] = retry_rules(merged.fields("retryStrategy"))
        return _TemplateDefaults(
            selector={
                **self._spec.place.text_mapping(self._constraint(pod, "nodeSelector")),
                **self._spec.place.text_mapping(self._patch.get("nodeSelector")),
            },
            tolerations=self._patch.get("tolerations") or self._constraint(pod, "tolerations"),
            affinity=merge(self._constraint(pod, "affinity"), self._patch.get("affinity")),
            of_pod={name: value for name, value in of_pod.items() if any(value)},
        )

    def _pod_template(self, template: str) -> str:
        """Return the name of the template that makes the pod.

        The template of a KFP executor is a DAG of one task, which names the pod's template.
        """
        dag = self._templates.template(template).fields("dag")
        tasks = dag.entries("tasks")
        if not tasks:
            return template
        return Fields.of(tasks[0], dag.place).text("template")

    def _constraint(self, pod: Fields, key: str) -> Any:
        return pod.get(key) or self._defaults.get(key) or self._spec.get(key)

    def _affinities(self, leaf: Leaf, affinity: Any) -> tuple[Expression, ...]:
        """Return the task's own terms, and the defaults for kinds of terms that it does not set."""
        fields = Fields.of(affinity, self._spec.place).fields("nodeAffinity")
        kinds = {REQUIRED, PREFERRED}
        for own in leaf.affinities:
            kinds -= set(own.value) if isinstance(own, Constant) else kinds
        left = {kind: fields.get(kind) for kind in sorted(kinds) if fields.get(kind)}
        return (*leaf.affinities, Constant(left)) if left else leaf.affinities


def _constant(value: object) -> tuple[Expression, ...]:
    return (Constant(value),) if value else ()
