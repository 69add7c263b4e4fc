"""DAG templates: which tasks may start, and what becomes of them."""

from collections.abc import Iterable
from dataclasses import replace

from tests.controlplane.argo.calls import Call, Calls, Options
from tests.controlplane.argo.conditions import should_execute
from tests.controlplane.argo.dag_end import dag_phase
from tests.controlplane.argo.dag_graph import DagGraph
from tests.controlplane.argo.exceptions import ParallelismReached, TemplateError, UnresolvedError
from tests.controlplane.argo.expansion import expand, is_expanded
from tests.controlplane.argo.state import COMPLETED, UNSUCCESSFUL, Json, Run, is_finished
from tests.controlplane.argo.substitution import substitute, substitute_text
from tests.controlplane.argo.templates import template_name

STRICT = ("tasks",)
"""References that must be resolved before a task may start."""


def execute_dag(executor: Calls, node: Json, template: Json, options: Options) -> None:
    """Bring a DAG as far as it goes now.

    Raises:
        TemplateError: it depends on what does not exist.
    """
    graph = DagGraph(executor.run, node, template)
    tasks = _Tasks(executor, graph, options)
    for name in graph.targets:
        tasks.execute(name)
    phase = dag_phase(graph)
    if phase == "Running":
        return
    node["outboundNodes"] = graph.outbound()
    executor.run.mark(node["name"], phase)


class _Tasks:
    """The tasks of one DAG node during one look at it."""

    def __init__(self, executor: Calls, graph: DagGraph, options: Options) -> None:
        self._executor = executor
        self._run: Run = executor.run
        self._graph = graph
        self._inside = Options(boundary=graph.node["id"], on_exit=options.on_exit)
        self._visited: set[str] = set()

    def execute(self, name: str) -> None:
        """Bring a task, and before it what it depends on, as far as it goes now."""
        if name in self._visited:
            return
        self._visited.add(name)
        node = self._graph.task_node(name)
        if node is not None and is_finished(node):
            self._exit_done(name, node)
            return
        for dependency in self._graph.depends[name]:
            self.execute(dependency)
        task = self._ready(name, node)
        if task is not None:
            self._execute_ready(name, task)

    def _exit_done(self, name: str, node: Json) -> bool:
        """Run a finished task's exit hook; says whether there is nothing to wait for."""
        hook = (self._graph.tasks[name].get("hooks") or {}).get("exit")
        if hook is None or node["phase"] not in COMPLETED:
            return True
        values = self._run.globals | self._graph.scope(name) | self._graph.values_of(name)
        call = Call(hook["template"], substitute(hook.get("arguments") or {}, values))
        options = replace(self._inside, on_exit=True, hooked=True)
        hook_name = f"{node['name']}.onExit"
        try:
            done = self._executor.execute(hook_name, call, options)
        except ParallelismReached:
            return False
        except TemplateError:
            done = self._run.node(hook_name)
        self._run.add_child(node["name"], hook_name)
        return is_finished(done)

    # Whether it is a task's turn.

    def _ready(self, name: str, node: Json | None) -> Json | None:
        """The resolved task if it is its turn, else None."""
        try:
            if node is None and not self._dependencies_met(name):
                return None
            return self._resolved(name)
        except UnresolvedError:
            self._run.look_again(1.0)
        except TemplateError as error:
            if node is None:
                self._skip(name, "Error", str(error))
        return None

    def _dependencies_met(self, name: str) -> bool:
        holds = True
        for dependency, phases in self._graph.depends[name].items():
            node = self._graph.task_node(dependency)
            if node is None or not is_finished(node):
                return False
            if not all(is_finished(child) for child in self._hooks_of(node)):
                return False
            holds = holds and node["phase"] in phases
        if holds:
            return True
        self._skip(name, "Omitted", "omitted: depends condition not met")
        return False

    def _hooks_of(self, node: Json) -> list[Json]:
        start = f"{node['name']}."
        return [
            child
            for child in self._run.children(node)
            if child.get("nodeFlag", {}).get("hooked") and child["name"].startswith(start)
        ]

    def _resolved(self, name: str) -> Json:
        """The task with everything replaced that others have said; `when` first."""
        task = self._graph.tasks[name]
        values = {**self._run.globals, **self._graph.scope(name)}
        bare = {key: value for key, value in task.items() if key != "hooks"}
        if task.get("when"):
            when = substitute_text(task["when"], values, STRICT)
            if not is_expanded(task) and not should_execute(when):
                return {**task, "when": when}
        resolved: Json = substitute(bare, values, STRICT)
        return resolved

    # What becomes of it.

    def _execute_ready(self, name: str, task: Json) -> None:
        try:
            tasks = expand(task, self._run.globals)
        except TemplateError as error:
            self._skip(name, "Error", str(error))
            return
        group = self._group(name, task, tasks)
        for entry in tasks:
            if not self._execute_entry(name, entry, group):
                return
        if group is not None:
            self._close_group(group, [entry["name"] for entry in tasks])

    def _group(self, name: str, task: Json, tasks: list[Json]) -> Json | None:
        """The node that stands for all iterations of a loop, if the task is one."""
        if not is_expanded(self._graph.tasks[name]):
            return None
        node = self._graph.task_node(name)
        if node is None and not tasks:
            self._skip(name, "Skipped", "Skipped, empty params")
            return None
        if node is None:
            node_name = self._graph.node_name(name)
            self._graph.connect(name, node_name)
            boundary = self._inside.boundary
            template = template_name(task)
            node = self._run.start_node(
                node_name, "TaskGroup", "Running", template=template, boundary=boundary
            )
        return node

    def _execute_entry(self, name: str, entry: Json, group: Json | None) -> bool:
        """Execute a task or one iteration; says whether to go on with the next iteration."""
        node_name = self._graph.node_name(entry["name"])
        if self._run.node(node_name) is None:
            if group is None:
                self._graph.connect(name, node_name)
            else:
                self._run.add_child(group["name"], node_name)
            if self._is_skipped(node_name, entry):
                return True
        call = Call(template_name(entry), entry.get("arguments") or {})
        try:
            node = self._executor.execute(node_name, call, self._inside)
        except ParallelismReached:
            node = self._run.node(node_name)
        except TemplateError as error:
            self._run.mark(node_name, "Error", f"task '{node_name}' errored: {error}")
            return False
        if node is None:
            return False
        return node["phase"] not in COMPLETED or self._exit_done(name, node)

    def _is_skipped(self, node_name: str, entry: Json) -> bool:
        when = entry.get("when", "")
        try:
            if should_execute(when):
                return False
            phase, message = "Skipped", f"when '{when}' evaluated false"
        except TemplateError as error:
            phase, message = "Error", str(error)
        self._start_skipped(node_name, template_name(entry), phase, message)
        return True

    def _skip(self, name: str, phase: str, message: str) -> None:
        """A task that will not be executed."""
        node_name = self._graph.node_name(name)
        self._graph.connect(name, node_name)
        self._start_skipped(node_name, template_name(self._graph.tasks[name]), phase, message)

    def _start_skipped(self, node_name: str, template: str, phase: str, message: str) -> None:
        boundary = self._inside.boundary
        self._run.start_node(
            node_name, "Skipped", phase, template=template, boundary=boundary, message=message
        )

    def _close_group(self, group: Json, names: Iterable[str]) -> None:
        nodes = [self._graph.task_node(name) for name in names]
        if not all(is_finished(node) for node in nodes):
            return
        phases = [node["phase"] for node in nodes if node and node["phase"] in UNSUCCESSFUL]
        self._run.mark(group["name"], phases[-1] if phases else "Succeeded")
