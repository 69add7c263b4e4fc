"""Result of `plan` and `demo`: the plan in the format asked for, and the exit code."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement_engine.views.formatting import counted, shown

if TYPE_CHECKING:
    from kfp_placement.planning import PlanAnswer
    from kfp_placement_engine.plans.plan import Plan

_MAX_NAMES = 5
"""Steps without a node that are named."""


def rendered(plan_answer: "PlanAnswer", output_format: str, target: Path | None) -> str:
    """Return the plan, and the answer to the changes asked for, in a format.

    Args:
        plan_answer: plan and answer.
        output_format: one of `FORMATS`.
        target: file that the text goes to; None = stdout, whose width and colours count.
    """
    if output_format in ("json", "yaml"):
        from kfp_placement_engine.render.plan_json import plan_json, plan_yaml

        return {"json": plan_json, "yaml": plan_yaml}[output_format](
            plan_answer.plan, plan_answer.answer
        )
    from kfp_placement_engine.views.plans.detail import PAGE, TEXT, WIDE
    from kfp_placement_engine.views.plans.view import plan_view

    detail = {"html": PAGE, "wide": WIDE}.get(output_format, TEXT)
    past_runs = plan_answer.prepared.known_past.text
    view = plan_view(plan_answer.plan, detail, past_runs=past_runs, answer=plan_answer.answer)
    if output_format == "html":
        from kfp_placement_engine.render.html import html_page

        return html_page(view)
    from kfp_placement.cli.output import text_style
    from kfp_placement_engine.render.text import document_text

    return document_text(view, text_style(target))


def report_unplaced_of_answer(plan_answer: "PlanAnswer", *, is_shown: bool) -> ExitCode:
    """Name steps that fit no node, in the plan or after changes, on stderr; return the exit code.

    The changes asked for may leave a step without a node even if the plan itself has none.

    Args:
        plan_answer: plan, and answer to the changes.
        is_shown: whether the answer was printed on the terminal.
    """
    code = report_unplaced(plan_answer.plan)
    if code is not ExitCode.OK or plan_answer.answer is None:
        return code
    from kfp_placement_engine.plans.what_if import ChangedPlan
    from kfp_placement_engine.views.plans.what_if import end_sentence

    if not isinstance(plan_answer.answer, ChangedPlan) or not plan_answer.answer.plan.unschedulable:
        return ExitCode.OK
    if not is_shown:
        click.echo(end_sentence(plan_answer.plan, plan_answer.answer), err=True)
    return ExitCode.UNSCHEDULABLE


def report_unplaced(plan: "Plan") -> ExitCode:
    """Name steps that get no node on stderr, whatever the format; return the exit code."""
    if not plan.unschedulable:
        return ExitCode.OK
    names = ", ".join(shown(name, 60) for name, _ in plan.unschedulable[:_MAX_NAMES])
    more = ", ..." if len(plan.unschedulable) > _MAX_NAMES else ""
    count = counted(len(plan.unschedulable), "step")
    verb = "gets" if len(plan.unschedulable) == 1 else "get"
    click.echo(f"{count} of {len(plan.steps):,} {verb} no node: {names}{more}", err=True)
    return ExitCode.UNSCHEDULABLE
