"""One try for each run: our own defect in planning one must not hide all the others."""

import logging
from collections.abc import Callable

from kfp_placement_engine.model.keys import RunKey

_LOG = logging.getLogger(__name__)


def attempt(run: RunKey, do: Callable[[], object], refuse: Callable[[str], None]) -> None:
    """Do something about a run, which anybody may have written.

    Args:
        run: which.
        do: does it.
        refuse: what follows if that fails; takes what to say of it.
    """
    try:
        do()
    except Exception as error:
        _LOG.exception("run %s/%s: defect in planning", *run)
        refuse(f"a defect of the planner: {type(error).__name__}: {error!s:.200}")
