"""Volume claims of a run: existing ones, those that the run makes, and the steps' use of them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kfp_placement_engine.model.node_rules.constraints import shared_modes
from kfp_placement_engine.model.run_graph import RunClaim
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.readers.kubernetes.quotas import claim_usage
from kfp_placement_engine.readers.tree.expressions import Scope
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.notices import NoticeCollector
from kfp_placement_engine.readers.tree.tasks import WORKSPACE_CLAIM
from kfp_placement_engine.readers.tree.values import (
    KnownValue,
    Missing,
    Produced,
    Value,
    known_list,
    known_text,
)

_WORKSPACE_MARKS = ("{{$.workspace_path}}", "/kfp-workspace")
"""Marks of a path in the workspace: KFP's driver mounts it where an input value has one."""


class ClaimRegistry:
    """Registry of a run's claims, each with a name that is unique in the run."""

    def __init__(self, run_claims: Iterable[RunClaim], notices: NoticeCollector) -> None:
        self._notices = notices
        self._claims = {claim.name: claim for claim in run_claims}
        self._created: dict[str, str] = {}
        self._fillers: set[str] = set()
        workspace = self._claims.get(WORKSPACE_CLAIM)
        self._workspace = workspace is not None
        self._workspace_ties = workspace is None or not shared_modes(workspace.access_modes)
        self._workspace_users: set[str] = set()

    def claims(self) -> tuple[RunClaim, ...]:
        """Return the claims in the order in which they were added."""
        return tuple(self._claims.values())

    def add_created(self, leaf: Leaf, step: str, scope: Scope) -> None:
        """Note the claim that a createpvc step makes."""
        modes = known_list(leaf.access_modes.evaluate(scope)) or []
        name = known_text(leaf.claim_name.evaluate(scope)) or ""
        access_modes = tuple(mode for mode in modes if isinstance(mode, str))
        size, storage_class = (known_text(each.evaluate(scope)) for each in leaf.claim_size)
        usage = claim_usage(size, storage_class)
        if name in self._claims and not self._claims[name].created_by:
            # A step before this one names the claim without waiting for its creation.
            mounted = self._claims[name]
            claim = replace(mounted, access_modes=access_modes, created_by=step, usage=usage)
        else:
            unique = self._unique(name or step)
            claim = RunClaim(unique, access_modes, created_by=step, usage=usage)
        self._claims[claim.name] = claim
        self._created[step] = claim.name

    def add_user(
        self, leaf: Leaf, step: str, task: str, scope: Scope, artifacts: Mapping[str, Value]
    ) -> tuple[str, ...]:
        """Note a step and return the claims that it mounts; steps before it come first."""
        names: list[str] = []
        if self._workspace and self._needs_workspace(leaf, scope, artifacts):
            names.append(WORKSPACE_CLAIM)
            self._workspace_users.add(step)
            if leaf.fills_workspace:
                self._fillers.add(step)
        elif self._workspace and self._workspace_ties:
            self._warn_of_paths(leaf, task, scope)
        for expression in leaf.claims:
            names.extend(self._mounted(expression.evaluate(scope), task))
        return tuple(dict.fromkeys(names))

    def _warn_of_paths(self, leaf: Leaf, task: str, scope: Scope) -> None:
        """Warn of values that may be paths in the workspace; they are known only at run time.

        KFP's driver mounts the workspace where an input is such a path, whoever made it.
        """
        for name, value in scope.inputs.items():
            if not isinstance(value, Produced) or name in leaf.numeric_inputs:
                continue
            makers = [step for step, _ in value.sources if step in self._workspace_users]
            if makers:
                self._notices.add(
                    "workspace-path",
                    f"input {name!r:.80} comes from {task_of(makers[0]):.120}, which works in the"
                    " workspace: if it is a path there, KFP mounts the workspace here too, and both"
                    " steps need one node, which this plan does not know; pass"
                    " dsl.WORKSPACE_PATH_PLACEHOLDER to both, and no path between them",
                    task,
                )
                return

    def _needs_workspace(self, leaf: Leaf, scope: Scope, artifacts: Mapping[str, Value]) -> bool:
        if leaf.uses_workspace:
            return True
        for value in scope.inputs.values():
            if isinstance(value, KnownValue) and isinstance(value.value, str):
                text = value.value
                if any(mark in text for mark in _WORKSPACE_MARKS):
                    return True
        return bool(self._fillers) and any(
            producer in self._fillers
            for value in artifacts.values()
            if isinstance(value, Produced)
            for producer, _ in value.sources
        )

    def _mounted(self, value: Value, task: str) -> list[str]:
        if isinstance(value, Produced):
            return [self._made_by(step, key, task) for step, key in value.sources]
        if isinstance(value, Missing):
            return [self._named_by(value.parameter)]
        name = known_text(value)
        if name is None or "{{" in name:
            self._notices.add(
                "unknown-claim",
                "which volume claim it mounts is known only at run time; its volume is not planned",
                task,
            )
            return []
        return [self._existing(name)] if name else []

    def _made_by(self, step: str, key: str, task: str) -> str:
        if step in self._created:
            return self._created[step]
        self._notices.add(
            "unknown-claim",
            f"mounts a volume claim whose name {step:.120} makes at run time; "
            "it counts as ReadWriteOnce",
            task,
        )
        return self._existing(f"{key} of {step}")

    def _named_by(self, parameter: str) -> str:
        self._notices.add(
            "unknown-claim",
            f"parameter {parameter:.80} names a volume claim that steps mount, but it has"
            " no value; the claim counts as ReadWriteOnce, so its users share a node",
        )
        return self._existing(f"parameter {parameter}")

    def _existing(self, name: str) -> str:
        """Add a claim that the run does not make, unless it was added before; return its name."""
        self._claims.setdefault(name, RunClaim(name))
        return name

    def _unique(self, name: str) -> str:
        candidate, number = name, 2
        while candidate in self._claims:
            candidate, number = f"{name}-{number}", number + 1
        return candidate
