"""Projects in the format of PSPLIB, for tests."""

from collections.abc import Sequence

Row = tuple[int, tuple[int, int], tuple[int, ...]]
"""Duration, requests and successors of a job."""

SMALL: Sequence[Row] = (
    (0, (0, 0), (2, 3)),
    (4, (2, 0), (4,)),
    (3, (2, 1), (4,)),
    (0, (0, 0), (5,)),
    (5, (1, 2), (6,)),
    (0, (0, 0), ()),
)
"""Two jobs that exclude each other, a milestone, a last job: 3 + 4 + 5 = 12 s at the least."""

_RULE = 72 * "*"


def project_text(jobs: Sequence[Row]) -> str:
    """A file with these jobs, and 3 and 2 units of two resources."""
    relations = [
        "".join(f"{number:3} " for number in (at, 1, len(after), *after)).rstrip()
        for at, (_, _, after) in enumerate(jobs, start=1)
    ]
    durations = [
        "".join(f"{number:3} " for number in (at, 1, seconds, *requests)).rstrip()
        for at, (seconds, requests, _) in enumerate(jobs, start=1)
    ]
    lines = [
        _RULE,
        "file with basedata            : small.bas",
        _RULE,
        "projects                      :  1",
        f"jobs (incl. supersource/sink ):  {len(jobs)}",
        "horizon                       :  99",
        "RESOURCES",
        "  - renewable                 :  2   R",
        "  - nonrenewable              :  0   N",
        "  - doubly constrained        :  0   D",
        _RULE,
        "PRECEDENCE RELATIONS:",
        "jobnr.    #modes  #successors   successors",
        *relations,
        _RULE,
        "REQUESTS/DURATIONS:",
        "jobnr. mode duration  R 1  R 2",
        72 * "-",
        *durations,
        _RULE,
        "RESOURCEAVAILABILITIES:",
        "  R 1  R 2",
        "  3   2",
        _RULE,
    ]
    return "\n".join(lines) + "\n"
