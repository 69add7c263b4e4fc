"""Conditions of DAG tasks as KFP writes them: `depends` (what for) and `when` (whether)."""

from tests.controlplane.argo.exceptions import TemplateError


def should_execute(when: str) -> bool:
    """Return whether a resolved `when` holds, a comparison of two words; an empty one does.

    Raises:
        TemplateError: it is none.
    """
    if not when:
        return True
    words = when.split()
    if len(words) != 3 or words[1] not in ("==", "!="):
        raise TemplateError(f"Invalid 'when' expression '{when}'")
    return (words[0] == words[2]) == (words[1] == "==")


def accepted_phases(depends: str) -> dict[str, frozenset[str]]:
    """The tasks that a `depends` names, all of which must end, and the phases each may end in."""
    phases = {}
    for part in filter(None, map(str.strip, depends.split("&&"))):
        name, _, phase = part.partition(".")
        phases[name] = frozenset({phase} if phase else {"Succeeded", "Skipped"})
    return phases
