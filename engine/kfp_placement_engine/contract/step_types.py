"""Words in marks: a step's type guessed from its name, and typing errors in types and schedulers.

A guess is always marked as one.

A type is guessed by this rule, in this order:

1. The name is cut into lower-case words at everything that is not a letter and where a capital
   follows a small letter: `XGBoostTrain-2` becomes `xg boost train`.
2. Pairs that only look like an action are set aside (`training data`, `test set`); a few
   phrases that name one are known as a whole (`train test split`, `fine tune`).
3. The first word that is a command decides (`load-and-train` loads first, so it is Fetch).
4. Otherwise the last word that names an activity decides (`model-training`, `data-ingestion`).

No word known: no type. Only steps that truly predict should be taken for predictions, since they
follow the latency rule; so plurals such as `predictions`, mostly a table, are not evidence.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise, takewhile

from kfp_placement_engine.contract.keys import (
    DEFAULT_SCHEDULER,
    KUBERNETES_SCHEDULER,
    LATENCY_RULED_TYPES,
)
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import Step, StepKind

COMMANDS = {
    "Fetch": "fetch download load import ingest extract read collect pull query gather scrape",
    "Transform": (
        "transform prepare prep preprocess clean cleanse drop split merge join convert normalize "
        "normalise standardize standardise tokenize tokenise encode filter featurize featurise "
        "augment scale impute resample shuffle reshape rename strip dedupe deduplicate"
    ),
    "Training": "train retrain fit finetune pretrain tune",
    "Predict": "predict infer serve forecast",
    "Evaluate": "evaluate eval assess validate benchmark",
}
ACTIVITIES = {
    "Fetch": "fetching fetcher loading loader ingestion extraction collection",
    "Transform": (
        "transformation preparation preprocessing preprocessor cleaning splitting splitter "
        "conversion normalization normalisation tokenization tokenisation encoding augmentation "
        "scaling imputation"
    ),
    "Training": "training trainer retraining fitting finetuning pretraining tuning tuner",
    "Predict": "predicting prediction predictor inference serving forecasting",
    "Evaluate": "evaluation evaluator validation assessment metrics benchmarking",
}
PHRASES = {
    "train test split": "Transform",
    "train validation split": "Transform",
    "train val split": "Transform",
    "fine tune": "Training",
    "fine tuning": "Training",
    "feature engineering": "Transform",
}
PURPOSES = frozenset(
    {"train", "training", "test", "validation", "evaluation", "prediction", "inference"}
)
THINGS = frozenset(
    {"data", "dataset", "datasets", "set", "sets", "table", "tables", "file", "files", "rows"}
)

_TYPE_OF_COMMAND = {word: kind for kind, words in COMMANDS.items() for word in words.split()}
_TYPE_OF_ACTIVITY = {word: kind for kind, words in ACTIVITIES.items() for word in words.split()}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def guess_type(name: str) -> str:
    """Return the probable type of a step of this name as written in the type label, or ""."""
    words = [word.lower() for word in _WORD.findall(name)]
    text = f" {' '.join(words)} "
    for phrase, kind in PHRASES.items():
        if f" {phrase} " in text:
            return kind
    words = _without_things(words)
    for word in words:
        if word in _TYPE_OF_COMMAND:
            return _TYPE_OF_COMMAND[word]
    for word in reversed(words):
        if word in _TYPE_OF_ACTIVITY:
            return _TYPE_OF_ACTIVITY[word]
    return ""


def near_type(step_type: str, ruled_types: Collection[str] = LATENCY_RULED_TYPES) -> str:
    """Return the known type that was probably meant, or "".

    A type of the author's own is as good as any; but one that differs from a known one in a single
    slip (a letter too many, too few or wrong, two swapped) is a typing error.

    Args:
        step_type: type as written.
        ruled_types: step types that follow the latency rule, lower case; they are known, too.
    """
    return _near(step_type, (*COMMANDS, *map(str.title, ruled_types)))


def near_scheduler(name: str) -> str:
    """Return the scheduler name that was probably meant, or "": another one may be anybody's."""
    if name.lower() == "default":
        return KUBERNETES_SCHEDULER
    return _near(name, (DEFAULT_SCHEDULER, KUBERNETES_SCHEDULER))


def near_marks(steps: Iterable[Step], ruled_types: Collection[str]) -> list[Notice]:
    """Return notices of probable typing errors in types and schedulers, once for each task.

    Args:
        steps: steps of a run.
        ruled_types: step types that follow the latency rule, lower case.
    """
    tasks = {step.task: step for step in steps if step.kind is StepKind.CONTAINER}.values()
    return [notice for step in tasks for notice in _near_marks_of(step, ruled_types)]


def _near_marks_of(step: Step, ruled_types: Collection[str]) -> Iterator[Notice]:
    near = near_type(step.type, ruled_types)
    if near:
        message = f"type {step.type!r} is not one of the known types; did you mean {near!r}?"
        yield Notice("near-type", message, step.task)
    near = near_scheduler(step.scheduler)
    if near:
        yield Notice(
            "near-scheduler",
            f"scheduler {step.scheduler!r} is not a usual name; did you mean {near!r}? A pod waits"
            " forever for a scheduler that does not run",
            step.task,
        )


@lru_cache(maxsize=256)  # Most steps of a run write the same.
def _near(written: str, words: tuple[str, ...]) -> str:
    """Return the word that differs in a single slip from `written`; "" also if it is a word."""
    lower = written.lower()
    by_lower_case = {word.lower(): word for word in words}
    if lower in by_lower_case:
        return ""
    return next((word for key, word in by_lower_case.items() if _is_one_slip(lower, key)), "")


def _is_one_slip(written: str, meant: str) -> bool:
    start = _shared_start(written, meant)
    one, other = written[start:], meant[start:]
    end = _shared_start(one[::-1], other[::-1])
    one, other = one[: len(one) - end], other[: len(other) - end]
    return max(len(one), len(other)) <= 1 or (len(one) == 2 and one == other[::-1])


def _shared_start(one: str, other: str) -> int:
    """Return the number of letters that both begin with."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _without_things(words: list[str]) -> list[str]:
    """Drop words that only say what data is for: the first of `training data`, of `test set`."""
    return [
        word
        for word, following in pairwise([*words, ""])
        if not (word in PURPOSES and following in THINGS)
    ]
