"""Steps templates of plain Workflows: groups of parallel steps, one after the other."""

from dataclasses import replace
from typing import Any

from tests.controlplane.argo.calls import Call, Calls, Options
from tests.controlplane.argo.exceptions import ParallelismReached, StepTimeout, TemplateError
from tests.controlplane.argo.expansion import expand
from tests.controlplane.argo.expressions import should_execute
from tests.controlplane.argo.hooks import exit_hook_done
from tests.controlplane.argo.scope import collected_outputs, declared_outputs, outputs_of
from tests.controlplane.argo.state import COMPLETED, UNSUCCESSFUL, goes_on_after, is_finished
from tests.controlplane.argo.substitution import substitute

Json = dict[str, Any]


def execute_steps(executor: Calls, node: Json, template: Json, options: Options) -> None:
    """Bring a steps template as far as it goes now.

    Raises:
        TemplateError: its outputs cannot be resolved.
    """
    run = executor.run
    scope: dict[str, str] = {}
    groups = template["steps"]
    for number, group in enumerate(groups):
        steps = _Group(executor, node, number, options, scope)
        steps.start()
        if not steps.execute(group):
            return
        if steps.node["phase"] in UNSUCCESSFUL:
            node["outboundNodes"] = steps.outbound()
            run.mark(node["name"], "Failed", steps.node.get("message"))
            return
        scope |= steps.values_of(group)
        if number == len(groups) - 1:
            node["outboundNodes"] = steps.outbound()
    outputs = declared_outputs(template, {**run.globals, **scope})
    if outputs is not None:
        node["outputs"] = outputs
    run.mark(node["name"], "Succeeded")


class _Group:
    """One group of steps during one look at it."""

    def __init__(
        self, executor: Calls, parent: Json, number: int, options: Options, scope: dict[str, str]
    ) -> None:
        self._executor = executor
        self._run = executor.run
        self._parent = parent
        self._number = number
        self._name = f"{parent['name']}[{number}]"
        self._inside = Options(boundary=parent["id"], on_exit=options.on_exit)
        self._scope = scope

    @property
    def node(self) -> Json:
        """The group's node."""
        node = self._run.node(self._name)
        assert node is not None
        return node

    def start(self) -> None:
        """Make the group's node and hang it on the group before."""
        run = self._run
        if run.node(self._name) is not None:
            return
        run.start_node(self._name, "StepGroup", "Running", boundary=self._parent["id"])
        if self._number == 0:
            run.add_child(self._parent["name"], self._name)
            return
        before = run.node(f"{self._parent['name']}[{self._number - 1}]")
        assert before is not None
        for key in before.get("children", []) or [before["id"]]:
            ends = run.outbound(key) if key != before["id"] else [key]
            for end in ends:
                run.add_child(run.nodes[end]["name"], self._name)

    def execute(self, group: list[Json]) -> bool:
        """Bring the group as far as it goes now; says whether it has ended."""
        if is_finished(self.node):
            return True
        try:
            steps = self._resolved(group)
        except TemplateError as error:
            self._run.mark(self._name, "Error", str(error))
            return True
        for step in steps:
            if not self._execute_step(step):
                return is_finished(self.node)
        return self._close({step["name"]: step for step in steps})

    def _resolved(self, group: list[Json]) -> list[Json]:
        values = {**self._run.globals, **self._scope}
        found: list[Json] = []
        for step in group:
            bare = {key: value for key, value in step.items() if key not in ("hooks", "onExit")}
            kept = {key: step[key] for key in ("hooks", "onExit") if key in step}
            resolved = {**substitute(bare, values, ("steps",)), **kept}
            found.extend(expand(resolved, values))
        return found

    def _execute_step(self, step: Json) -> bool:
        """Execute a step; says whether to go on with the group."""
        run, name = self._run, f"{self._name}.{step['name']}"
        try:
            if not should_execute(step.get("when", "")):
                if run.node(name) is None:
                    message = f"when '{step['when']}' evaluated false"
                    self._skip(name, step, "Skipped", message)
                return True
            call = Call(step["template"], step.get("arguments") or {}, step["name"])
            node = self._executor.execute(name, call, self._inside)
        except ParallelismReached:
            node = run.node(name)
        except StepTimeout as error:
            run.mark(self._name, "Failed", str(error))
            return False
        except TemplateError as error:
            if run.node(name) is None:
                self._skip(name, step, "Error", str(error))
            run.add_child(self._name, name)
            message = f"step group deemed errored due to child {name} error: {error}"
            run.mark(self._name, "Error", message)
            return False
        if node is not None:
            run.add_child(self._name, name)
        return True

    def _skip(self, name: str, step: Json, phase: str, message: str) -> None:
        self._run.start_node(
            name,
            "Skipped",
            phase,
            template=step["template"],
            boundary=self._parent["id"],
            message=message,
        )
        self._run.add_child(self._name, name)

    def _close(self, steps: dict[str, Json]) -> bool:
        """End the group if all its steps have ended; says whether it has."""
        run, children = self._run, self._run.children(self.node)
        done = len(children) >= len(steps)
        for child in children:
            step = steps.get(child["name"].removeprefix(f"{self._name}."), {})
            done = is_finished(child) and self._hook_done(step, child) and done
        if not done:
            return False
        for child in children:
            step = steps.get(child["name"].removeprefix(f"{self._name}."), {})
            if child["phase"] in UNSUCCESSFUL and not goes_on_after(step, child["phase"]):
                run.mark(self._name, "Failed", f"child '{child['id']}' failed")
                return True
        run.mark(self._name, "Succeeded")
        return True

    def _hook_done(self, step: Json, node: Json) -> bool:
        if node["phase"] not in COMPLETED:
            return True
        options = replace(self._inside, on_exit=True, hooked=True)
        values = {**self._scope, **outputs_of(self._run, f"steps.{step.get('name', '')}", node)}
        return exit_hook_done(self._executor, step, node, options, values)

    def values_of(self, group: list[Json]) -> dict[str, str]:
        """What later groups may refer to."""
        values: dict[str, str] = {}
        for step in group:
            prefix, name = f"steps.{step['name']}", f"{self._name}.{step['name']}"
            node = self._run.node(name)
            if node is not None:
                values |= outputs_of(self._run, prefix, node)
                continue
            children = self._run.children(self.node)
            items = [child for child in children if child["name"].startswith(f"{name}(")]
            values |= collected_outputs(prefix, items)
        return values

    def outbound(self) -> list[str]:
        """The last nodes of the group."""
        return [key for child in self.node.get("children", []) for key in self._run.outbound(child)]
