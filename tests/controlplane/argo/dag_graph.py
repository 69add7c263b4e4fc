"""The tasks of one DAG node: what each depends on, and what it may refer to."""

from collections import deque

from tests.controlplane.argo.conditions import accepted_phases
from tests.controlplane.argo.exceptions import TemplateError
from tests.controlplane.argo.names import node_id
from tests.controlplane.argo.state import Json, Run
from tests.controlplane.argo.templates import as_text, parameters_of


class DagGraph:
    """The tasks of one DAG.

    Attributes:
        run: the run it belongs to.
        node: the DAG's own node.
        tasks: tasks of the DAG, by name.
        depends: task -> the tasks that it depends on, and the phases each may end in.
        targets: the tasks that nobody depends on.
    """

    def __init__(self, run: Run, node: Json, template: Json) -> None:
        self.run = run
        self.node = node
        self.tasks: dict[str, Json] = {task["name"]: task for task in template["dag"]["tasks"]}
        self.depends = {name: self._depends_of(task) for name, task in self.tasks.items()}
        needed = {name for names in self.depends.values() for name in names}
        self.targets = sorted(self.tasks.keys() - needed)

    def _depends_of(self, task: Json) -> dict[str, frozenset[str]]:
        phases = accepted_phases(task.get("depends", ""))
        for name in phases:
            if name not in self.tasks:
                message = f"task '{task['name']}' depends on '{name}', which does not exist"
                raise TemplateError(message)
        return phases

    def node_name(self, task: str) -> str:
        """The name of a task's node."""
        return f"{self.node['name']}.{task}"

    def node_id(self, task: str) -> str:
        """The id of a task's node."""
        return node_id(self.run.name, self.node_name(task))

    def task_node(self, task: str) -> Json | None:
        """The node of a task, or None."""
        return self.run.node(self.node_name(task))

    def connect(self, task: str, node_name: str) -> None:
        """Hang a node on the last nodes of what its task depends on, or on the DAG itself."""
        if not self.depends[task]:
            self.run.add_child(self.node["name"], node_name)
            return
        for dependency in self.depends[task]:
            node = self.task_node(dependency)
            for key in self.run.outbound(node["id"]) if node else []:
                self.run.add_child(self.run.nodes[key]["name"], node_name)

    def outbound(self) -> list[str]:
        """The last nodes of the targets."""
        nodes = [self.task_node(name) for name in self.targets]
        return [key for node in nodes if node for key in self.run.outbound(node["id"])]

    # What tasks say.

    def scope(self, task: str) -> dict[str, str]:
        """Return the values that a task may refer to: those of all that comes before it."""
        values: dict[str, str] = {}
        for ancestor in self._ancestors(task):
            values |= self.values_of(ancestor)
        return values

    def values_of(self, task: str) -> dict[str, str]:
        """Names and texts of a task's outputs; KFP has no outputs of loops and DAGs."""
        node = self.task_node(task)
        attempts = self.run.attempts(node) if node else []
        last = attempts[-1] if attempts else node
        return {
            f"tasks.{task}.outputs.parameters.{entry['name']}": as_text(entry["value"])
            for entry in parameters_of(last and last.get("outputs"))
        }

    def _ancestors(self, task: str) -> list[str]:
        ancestors: dict[str, None] = {}
        waiting = deque(self.depends[task])
        while waiting:
            ancestor = waiting.popleft()
            if ancestor not in ancestors:
                ancestors[ancestor] = None
                waiting.extend(self.depends[ancestor])
        return list(ancestors)
