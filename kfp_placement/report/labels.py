"""Names short enough for bars and boxes; the whole name is in the tooltip and in the table."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kfp_placement.report.shortening import distinct
from kfp_placement.report.visible import clip, shown, width
from kfp_placement_engine.model.plan import PlannedStep

_CONTROL_FLOW = re.compile(
    r"(?:condition|condition-branches|exit-handler|for-loop)-\d+(?:\[(?:\d+|\*)\])?"
)
_NUMBERED = re.compile(r"[-_](?:ID)?\d+")
_LONGEST = 200

# Shares of the font size, of the widest of the common sans-serif fonts (DejaVu Sans, Verdana).
_NARROW = frozenset("iljtfrI.,:;|!'`()[]{}/\\- \"")
_BROAD = frozenset("mwMW@%&")
_NARROW_SHARE, _BROAD_SHARE, _CAPITAL_SHARE, _OTHER_SHARE = 0.42, 0.98, 0.74, 0.65
_WIDE_SHARE = 1.0
_BOLD = 1.08


def display_name(step: PlannedStep) -> str:
    """The name that its author gave the task, "" where that says no more than the task's id.

    The ids of `train-2` and `train_ID0000002` are made from the name `train`.
    """
    own = step.task.rpartition(".")[2].removesuffix("[*]")
    rest = own.removeprefix(step.display_name)
    made_of_it = rest != own and (not rest or _NUMBERED.fullmatch(rest))
    return "" if made_of_it else step.display_name


def title(step: PlannedStep) -> str:
    """The step's name behind the one that its author gave: `xgboost (train-7)`."""
    shown_name = display_name(step)
    return f"{shown_name} ({step.name})" if shown_name else step.name


def short_name(step: PlannedStep) -> str:
    """The author's name for the step, else its name without conditions and loops: `work-2 [0,1]`.

    KFP names those itself (`condition-4`, `for-loop-1`); nested, they fill any bar with words that
    say nothing, and the indexes that tell iterations apart would be cut out.
    """
    shown_name = display_name(step)
    if not shown_name:
        return _short(step.name, step.iteration)
    indexes = ",".join(map(str, step.iteration))
    return f"{shown_name} [{indexes}]" if indexes else shown_name


def short_task(step: PlannedStep) -> str:
    """The same for a step as a whole: `work-2 [*]`."""
    shown_name, indexes = display_name(step), ("*",) * step.task.count("[*]")
    if not shown_name:
        return _short(step.task, indexes)
    return f"{shown_name} [{','.join(indexes)}]" if indexes else shown_name


def told_names(steps: Sequence[PlannedStep]) -> dict[str, str]:
    """Each step's name as sentences say it: the one its author gave, if no other step has it.

    The table shows the author's name too; a step without one has its own, whole.
    """
    told = {step.name: short_name(step) if display_name(step) else step.name for step in steps}
    counts = Counter(told.values())
    return {
        step.name: told[step.name] if counts[told[step.name]] == 1 else title(step)
        for step in steps
    }


def unlike(labels: Mapping[str, str], pixels: float, size: float, *, bold: bool) -> dict[str, str]:
    """Labels by what they stand for, short enough, no two alike.

    Two tasks may have one display name, and tasks of one name may be in several groups: a label
    that several have is followed by what it stands for.
    """
    counts = Counter(labels.values())
    whole = {
        key: f"{label} ({key})" if counts[label] > 1 else label for key, label in labels.items()
    }
    short = fit_all(whole.values(), pixels, size, bold=bold)
    return {key: short[label] for key, label in whole.items()}


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Pixels that text takes at most in common fonts."""
    total = sum(map(_share, text)) * size
    return total * _BOLD if bold else total


def fit(text: str, pixels: float, size: float, *, bold: bool = False) -> str:
    """Shorten text in the middle until it fits; "" where not even a few letters would."""
    text = shown(text, _LONGEST)
    if text_width(text, size, bold=bold) <= pixels:
        return text
    for length in range(len(text) - 1, 3, -1):
        shorter = clip(text, length)
        if text_width(shorter, size, bold=bold) <= pixels:
            return shorter
    return ""


def fit_all(
    texts: Iterable[str], pixels: float, size: float, *, bold: bool = False
) -> dict[str, str]:
    """The same for texts side by side: those that differ look different."""
    safe = _safe(texts)
    short = distinct(
        safe.values(),
        lambda form: fit(form, pixels, size, bold=bold),
        lambda form: text_width(form, size, bold=bold) <= pixels,
    )
    return {text: short[form] for text, form in safe.items()}


def _safe(texts: Iterable[str]) -> dict[str, str]:
    """Each text made visible and no longer than any drawing has room for, no two alike."""
    safe: dict[str, str] = {}
    taken: set[str] = set()
    alike: Counter[str] = Counter()
    for text in dict.fromkeys(texts):
        form = base = shown(text, _LONGEST)
        while form in taken:
            alike[base] += 1
            form = f"{base}~{alike[base] + 1}"
        taken.add(form)
        safe[text] = form
    return safe


def _short(name: str, indexes: tuple[object, ...]) -> str:
    parts = [part for part in name.split(".") if not _CONTROL_FLOW.fullmatch(part)]
    if not parts or len(name) > _LONGEST:
        return name
    rest = ".".join(parts)
    # Indexes still in the name: no iteration of a loop that KFP named.
    if len(parts) == name.count(".") + 1 or not indexes:
        return rest
    return f"{rest} [{','.join(map(str, indexes))}]"


def _share(char: str) -> float:
    if char in _NARROW:
        return _NARROW_SHARE
    if char in _BROAD:
        return _BROAD_SHARE
    if char.isascii():
        return _CAPITAL_SHARE if char.isupper() else _OTHER_SHARE
    return _WIDE_SHARE if width(char) > 1 or char == "…" else _CAPITAL_SHARE
