"""Templates are executed: once, or in attempts under a Retry node."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.controlplane.argo.calls import Call, Options
from tests.controlplane.argo.dag import execute_dag
from tests.controlplane.argo.exceptions import (
    ParallelismReached,
    Refusal,
    TemplateError,
    TransientError,
)
from tests.controlplane.argo.pods import PodRequest, build_pod
from tests.controlplane.argo.retries import phases_to_retry, settle_attempts
from tests.controlplane.argo.state import ACTIVE, Json, Run, is_finished
from tests.controlplane.argo.substitution import substitute
from tests.controlplane.argo.templates import fill_template
from tests.controlplane.times import read_time


class Executor:
    """Executes templates of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def execute(self, name: str, call: Call, options: Options) -> Json | None:
        """Bring a node as far as it goes now; the node, or None where there is none yet.

        Raises:
            ParallelismReached: as many steps run as may.
            TemplateError: it cannot be executed; its node says so.
        """
        run = self.run
        node = run.node(name)
        if is_finished(node):
            return node
        try:
            template = run.templates.resolve(call.template)
            template = fill_template(template, call.arguments, run.globals)
        except TemplateError as error:
            self._spoil(name, call, options, error)
            raise
        self._check_parallelism(template, node, options.boundary)
        strategy = template.get("retryStrategy")
        if strategy is None:
            return self._execute_once(name, template, call, options)
        return self._execute_attempts(name, template, call, options, strategy)

    def _spoil(self, name: str, call: Call, options: Options, error: Exception) -> None:
        """Make a node that says why it cannot be executed."""
        self.run.start_node(
            name,
            "Skipped",
            "Error",
            template=call.template,
            boundary=options.boundary,
            flag=options.flag,
            message=str(error),
        )

    def _check_parallelism(self, template: Json, node: Json | None, boundary: str) -> None:
        run = self.run
        if node is None and "container" in template:
            pods = [each for each in run.nodes.values() if each["phase"] in ACTIVE]
            _check_limit(run.spec, [each for each in pods if each["id"] in run.pods])
        if node is not None and "dag" in template:
            pods = [each for each in run.active(node["id"]) if each["id"] in run.pods]
            _check_limit(template, pods)
        if boundary and (node is None or node["phase"] not in ACTIVE):
            around = run.templates.resolve(run.nodes[boundary]["templateName"])
            _check_limit(around, run.active(boundary))

    def _execute_attempts(
        self, name: str, template: Json, call: Call, options: Options, strategy: Mapping[str, Any]
    ) -> Json:
        run = self.run
        parent = run.node(name) or self._start(name, "Retry", template, call, options)
        if not settle_attempts(run, parent, strategy) or is_finished(parent):
            return parent
        attempts = run.attempts(parent)
        last = attempts[-1] if attempts else None
        if last is not None and not is_finished(last):
            number, attempt = len(attempts) - 1, last["name"]
        else:
            number = len(attempts)
            attempt = f"{name}({number})"
            run.add_child(name, attempt)
        filled = substitute(template, {"retries": str(number)})
        inside = replace(options, retried=True)
        child: Json | None
        try:
            child = self._execute_once(attempt, filled, call, inside)
        except TemplateError:
            if "Error" not in phases_to_retry(strategy):
                raise
            child = run.node(attempt)
        if is_finished(child) and not is_finished(parent):
            return self._after_attempt(name, call, options, parent)
        return parent

    def _after_attempt(self, name: str, call: Call, options: Options, parent: Json) -> Json:
        """The Retry node learns at once how its attempt ended."""
        try:
            return self.execute(name, call, options) or parent
        except ParallelismReached:
            return parent

    def _start(self, name: str, kind: str, template: Json, call: Call, options: Options) -> Json:
        return self.run.start_node(
            name,
            kind,
            "Pending" if kind == "Pod" else "Running",
            template=call.template,
            boundary=options.boundary,
            flag=options.flag,
            inputs=template.get("inputs"),
        )

    def _execute_once(self, name: str, template: Json, call: Call, options: Options) -> Json:
        kind = "DAG" if "dag" in template else "Suspend" if "suspend" in template else "Pod"
        node = self.run.node(name)
        if node is None:
            node = self._start(name, kind, template, call, options)
        try:
            if kind == "DAG":
                execute_dag(self, node, template, options)
            elif kind == "Suspend":
                self._pause(node, template)
            else:
                self._create_pod(node, template, options)
        except TransientError as error:
            self.run.look_again(1.0)
            return self.run.mark(name, "Pending", str(error))
        except TemplateError as error:
            self.run.mark(name, "Error", str(error))
            raise
        return self.run.nodes[node["id"]]

    def _pause(self, node: Json, template: Json) -> None:
        pause = timedelta(seconds=float(template["suspend"]["duration"]))
        over = read_time(node["startedAt"]) + pause
        if over > self.run.now:
            self.run.look_again((over - self.run.now).total_seconds())
        else:
            self.run.mark(node["name"], "Succeeded")

    def _create_pod(self, node: Json, template: Json, options: Options) -> None:
        run = self.run
        if node["id"] in run.pods:
            return
        pod = build_pod(run, PodRequest(node["name"], template, options.on_exit))
        if pod is None:
            return
        try:
            run.cluster.create_pod(pod)
        except Refusal as refusal:
            if refusal.reason == "AlreadyExists":
                return
            kind = TransientError if refusal.is_transient else TemplateError
            raise kind(str(refusal)) from refusal
        run.pods[node["id"]] = pod


def _check_limit(template: Json, active: list[Json]) -> None:
    limit = template.get("parallelism")
    if limit and len(active) >= int(limit):
        raise ParallelismReached("Max parallelism reached")
