"""Lifecycle hooks of tasks and steps, the exit handler among them."""

from collections.abc import Mapping
from typing import Any

from tests.controlplane.argo.calls import Call, Calls, Options
from tests.controlplane.argo.exceptions import ParallelismReached, TemplateError
from tests.controlplane.argo.expressions import should_execute
from tests.controlplane.argo.state import is_finished
from tests.controlplane.argo.substitution import substitute

Json = dict[str, Any]


def exit_hook(holder: Mapping[str, Any]) -> Json | None:
    """The hook that runs when a task, step or Workflow has ended, or None."""
    hook = (holder.get("hooks") or {}).get("exit")
    if hook is not None:
        return dict(hook)
    return {"template": holder["onExit"]} if holder.get("onExit") else None


def exit_hook_done(
    executor: Calls,
    holder: Mapping[str, Any],
    node: Json,
    options: Options,
    scope: Mapping[str, str],
) -> bool:
    """Run the exit hook of a node that has ended; says whether there is nothing to wait for.

    Args:
        executor: executes templates.
        holder: the task or step.
        node: its node.
        options: those of the hook.
        scope: names for the hook's arguments.
    """
    hook = exit_hook(holder)
    run = executor.run
    if hook is None or not run.may_execute(on_exit=True):
        return True
    if not _applies(hook, {**run.globals, **scope}):
        return True
    name = f"{node['name']}.onExit"
    arguments = substitute(hook.get("arguments") or {}, {**run.globals, **scope})
    try:
        done = executor.execute(name, Call(hook["template"], arguments), options)
    except ParallelismReached:
        return False
    except TemplateError:
        done = run.node(name)
    run.add_child(node["name"], name)
    return is_finished(done)


def _applies(hook: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    """Whether a hook's expression, if it has one, holds; names are replaced by their values."""
    expression = hook.get("expression")
    if not expression:
        return True
    for name in sorted(values, key=len, reverse=True):
        if name in expression:
            expression = expression.replace(name, f'"{values[name]}"')
    return should_execute(expression)
