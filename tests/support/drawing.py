"""Profiles of hypothesis: `make test` draws the same examples every time, `make fuzz` new ones."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

# No setting of hypothesis names what it draws from modules.
_CONSTANTS_OF_MODULES = "_get_local_constants"

THE_SAME = "the-same"
FUZZ = "fuzz"
"""The profile that looks for new examples: pytest's `--hypothesis-profile=fuzz`."""


def register_profiles() -> None:
    """Make both profiles known, and take the first unless an option of pytest says otherwise.

    Call it before any test is imported: `@settings(...)` takes what it does not name from the
    profile of the moment. All that hypothesis would choose differently where CI is true is named.
    """
    common: dict[str, Any] = {
        # How long an example takes says more about the machine than about the code.
        "deadline": None,
        "suppress_health_check": [HealthCheck.too_slow],
        # What an earlier run has found is known to one checkout only. What must be tried every
        # time becomes an `@example`.
        "database": None,
        "print_blob": True,
    }
    settings.register_profile(THE_SAME, derandomize=True, **common)
    settings.register_profile(FUZZ, derandomize=False, **common)
    settings.load_profile(THE_SAME)


def draw_nothing_from_the_code() -> None:
    """Draw from the strategies alone, unless the profile looks for new examples.

    Hypothesis also draws numbers and texts that are in our code: in the modules that happen to be
    imported by then, which differ from process to process, and only if no folder above is called
    `tests`. Besides, another number somewhere should not give all tests other examples.
    """
    if not settings().derandomize:
        return
    # What is replaced must be there, so that a hypothesis that does this in another way is noticed.
    assert callable(getattr(providers, _CONSTANTS_OF_MODULES))
    nothing = Constants()
    setattr(providers, _CONSTANTS_OF_MODULES, lambda: nothing)
