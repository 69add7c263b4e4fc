"""Templates are executed: once, or in attempts under a Retry node."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.controlplane.argo.calls import Call, Options
from tests.controlplane.argo.dag import execute_dag
from tests.controlplane.argo.durations import parse_duration
from tests.controlplane.argo.exceptions import (
    ParallelismReached,
    Refusal,
    StepTimeout,
    TemplateError,
    TransientError,
)
from tests.controlplane.argo.pods import PodRequest, build_pod
from tests.controlplane.argo.retries import attempt_parameters, policy_of, settle_attempts
from tests.controlplane.argo.state import ACTIVE, UNSUCCESSFUL, Run, is_finished
from tests.controlplane.argo.steps import execute_steps
from tests.controlplane.argo.templates import (
    POD_KINDS,
    fill_template,
    kind_of,
    substitute_again,
)
from tests.controlplane.times import read_time

Json = dict[str, Any]

NODE_KINDS = {"dag": "DAG", "steps": "Steps", "suspend": "Suspend"}


class Executor:
    """Executes templates of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def execute(self, name: str, call: Call, options: Options) -> Json | None:
        """Bring a node as far as it goes now; the node, or None where there is none yet.

        Raises:
            ParallelismReached: as many steps run as may.
            StepTimeout: it waited for its pod past the template's timeout.
            TemplateError: it cannot be executed; its node says so.
        """
        run = self.run
        node = run.node(name)
        if is_finished(node):
            return node
        try:
            template = self._filled(name, call)
        except TemplateError as error:
            self._spoil(name, call, options, error)
            raise
        self._check_timeout(template, node)
        self._check_parallelism(template, node, options.boundary)
        strategy = template.get("retryStrategy") or run.spec.get("retryStrategy")
        if strategy is None:
            return self._execute_once(name, template, call, options)
        return self._execute_attempts(name, template, call, options, strategy)

    def _filled(self, name: str, call: Call) -> Json:
        template = self.run.templates.resolve(call.template)
        local = {"node.name": name, "tasks.name": call.caller, "steps.name": call.caller}
        if template.get("retryStrategy") is None and kind_of(template) in POD_KINDS:
            local["pod.name"] = self.run.pod_name(name, template["name"])
        return fill_template(template, call.arguments, self.run.globals, local)

    def _spoil(self, name: str, call: Call, options: Options, error: Exception) -> None:
        """Say at the node why it cannot be executed."""
        if self.run.node(name) is not None:
            self.run.mark(name, "Error", str(error))
            return
        self.run.start_node(
            name,
            "Skipped",
            "Error",
            template=call.template,
            boundary=options.boundary,
            flag=options.flag,
            message=str(error),
        )

    def _check_timeout(self, template: Json, node: Json | None) -> None:
        if node is None or not template.get("timeout") or node["phase"] != "Pending":
            return
        limit = timedelta(seconds=parse_duration(template["timeout"]))
        if self.run.now > read_time(node["startedAt"]) + limit:
            self.run.mark(node["name"], "Failed", "Step exceeded its deadline")
            raise StepTimeout("Step exceeded its deadline")

    def _check_parallelism(self, template: Json, node: Json | None, boundary: str) -> None:
        run = self.run
        limit = run.spec.get("parallelism")
        if limit is not None and run.active_pods >= int(limit):
            raise ParallelismReached("Max parallelism reached")
        if node is not None and kind_of(template) in ("dag", "steps"):
            self._check_fail_fast(template, node["id"])
            own = template.get("parallelism")
            if own and run.count_pods(node["id"]) >= int(own):
                raise ParallelismReached("Max parallelism reached")
        if boundary and (node is None or node["phase"] not in ACTIVE):
            around = run.templates.resolve(run.nodes[boundary]["templateName"])
            self._check_fail_fast(around, boundary)
            own = around.get("parallelism")
            kinds = ("Pod", "Steps", "DAG")
            if own and run.count(boundary, kinds, ACTIVE) >= int(own):
                raise ParallelismReached("Max parallelism reached")

    def _check_fail_fast(self, template: Json, boundary: str) -> None:
        kinds = ("Pod", "Steps", "DAG")
        if not template.get("failFast") or not self.run.count(boundary, kinds, UNSUCCESSFUL):
            return
        if not self.run.count_pods(boundary):
            message = "template has failed or errored children and failFast enabled"
            self.run.mark(self.run.nodes[boundary]["name"], "Failed", message)
        raise ParallelismReached("Max parallelism reached")

    def _execute_attempts(
        self, name: str, template: Json, call: Call, options: Options, strategy: Mapping[str, Any]
    ) -> Json:
        run = self.run
        parent = run.node(name) or self._start(name, "Retry", template, call, options)
        try:
            proceed = settle_attempts(run, parent, strategy)
        except TemplateError as error:
            run.mark(name, "Error", str(error))
            raise
        if not proceed or is_finished(parent):
            return parent
        attempts = run.attempts(parent)
        last = attempts[-1] if attempts else None
        if last is not None and not is_finished(last):
            number, attempt = len(attempts) - 1, last["name"]
        else:
            number = len(attempts)
            attempt = f"{name}({number})"
            run.add_child(name, attempt)
        local = attempt_parameters(number, last) | {"node.name": attempt}
        if kind_of(template) in POD_KINDS:
            local["pod.name"] = run.pod_name(attempt, template["name"])
        filled = substitute_again(template, run.globals, local)
        inside = replace(options, retried=True)
        child: Json | None
        try:
            child = self._execute_once(attempt, filled, call, inside)
        except TemplateError:
            if policy_of(strategy) not in ("Always", "OnError", "OnTransientError"):
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
            "Pending" if kind in ("Pod", "Suspend") else "Running",
            template=call.template,
            boundary=options.boundary,
            flag=options.flag,
            inputs=template.get("inputs"),
        )

    def _execute_once(self, name: str, template: Json, call: Call, options: Options) -> Json:
        kind = kind_of(template)
        node = self.run.node(name)
        if node is None:
            node = self._start(name, NODE_KINDS.get(kind, "Pod"), template, call, options)
        try:
            if kind == "dag":
                execute_dag(self, node, template, options)
            elif kind == "steps":
                execute_steps(self, node, template, options)
            elif kind == "suspend":
                self._suspend(node, template)
            elif kind in ("container", "script"):
                self._create_pod(node, template, options)
            else:
                raise TemplateError(f"templates of kind {kind} are not played")
        except TransientError as error:
            self.run.look_again(1.0)
            return self.run.mark(name, "Pending", str(error))
        except TemplateError as error:
            self.run.mark(name, "Error", str(error))
            raise
        return self.run.nodes[node["id"]]

    def _suspend(self, node: Json, template: Json) -> None:
        duration = (template["suspend"] or {}).get("duration")
        if duration:
            end = read_time(node["startedAt"]) + timedelta(seconds=parse_duration(duration))
            if self.run.now > end:
                self.run.mark(node["name"], "Succeeded")
                return
            self.run.look_again((end - self.run.now).total_seconds())
        self.run.mark(node["name"], "Running")

    def _create_pod(self, node: Json, template: Json, options: Options) -> None:
        run = self.run
        if node["id"] in run.pods:
            return
        if not run.may_execute(on_exit=options.on_exit):
            message = f"workflow shutdown with strategy: {run.shutdown}"
            run.mark(node["name"], "Failed", message)
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
        run.active_pods += 1
