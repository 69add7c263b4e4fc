"""The expression languages of run files.

KFP's conditions are in CEL, Argo's `{{=...}}` and `depends` in expr-lang, and Argo's `when` in
govaluate. They differ in their tokens and in how strongly operators bind.
"""

import re

from kfp_placement_engine.readers.formulas.syntax import Language

_COMMON = (
    r"\s*(?:(?P<number>%s)|(?P<text>%s)|(?P<name>%s)|(?P<gap>\ue000[0-9]+\ue001)|(?P<symbol>%s))"
)
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_NUMBER = r"0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in")

CEL = Language(
    tokens=re.compile(
        _COMMON % (_NUMBER, _QUOTED, _NAME, r"&&|\|\||[=!<>]=|[-+*/%!<>?:()\[\].,]"), re.DOTALL
    ),
    infix={"||": 20, "&&": 30, **dict.fromkeys(_COMPARISONS, 40), "+": 50, "-": 50}
    | dict.fromkeys("*/%", 60),
    prefix={"!": 90, "-": 90},
    words={"true": True, "false": False, "null": None},
)

EXPR = Language(
    tokens=re.compile(
        _COMMON
        % (
            _NUMBER,
            _QUOTED + "|`[^`]*`",
            _NAME,
            r"&&|\|\||[=!<>]=|\*\*|\?\?|\?\.|\.\.|[-+*/%^!<>?:()\[\]{}.,|]",
        ),
        re.DOTALL,
    ),
    infix={"||": 20, "or": 20, "&&": 30, "and": 30, **dict.fromkeys(_COMPARISONS, 40)}
    | dict.fromkeys(("contains", "startsWith", "endsWith", "matches"), 40)
    | {"..": 45, "+": 50, "-": 50, **dict.fromkeys("*/%", 60), "**": 80, "^": 80, "??": 95},
    prefix={"!": 99, "not": 55, "-": 70, "+": 70},
    right=frozenset({"**", "^"}),
    words={"true": True, "false": False, "nil": None},
)

GOVALUATE = Language(
    tokens=re.compile(
        _COMMON
        % (
            r"0x[0-9a-fA-F]+|[0-9.]+",
            r"""['"](?:[^'"\\]|\\.)*['"]|\[(?:[^\]\\]|\\.)*\]""",
            r"[^\W\d_](?:[\w.]|\\.)*",
            # Symbols without space between them are one token; the language does not have `&&!`.
            r"[()]|[^\w\s()\[\]'\"\ue000]+",
        ),
        re.DOTALL,
    ),
    infix={"??": 10, "||": 20, "&&": 30, **dict.fromkeys((*_COMPARISONS, "IN", "=~", "!~"), 40)}
    | {"&": 45, "|": 45, "^": 45, "<<": 48, ">>": 48, "+": 50, "-": 50}
    | {**dict.fromkeys("*/%", 60), "**": 80},
    prefix={"!": 90, "-": 90, "~": 90},
    plain_words=True,
)
