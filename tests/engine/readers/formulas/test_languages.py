"""Expressions by the rules of their own language; what its engine refuses is unknown."""

import time

import pytest

from kfp_placement_engine.readers.formulas.cel_condition import CelCondition
from kfp_placement_engine.readers.formulas.computed import read_computed
from kfp_placement_engine.readers.formulas.when_condition import WhenCondition
from kfp_placement_engine.readers.tree.expressions import (
    EMPTY,
    Constant,
    Input,
    Joined,
    Runtime,
    Scope,
)
from kfp_placement_engine.readers.tree.values import KnownValue

VALUES = {"mode": "fast", "rows": 3, "rate": 0.5, "on": True, "big": 3.0, "none": None}
SCOPE = Scope({name: KnownValue(value) for name, value in VALUES.items()})


def cel(text: str) -> bool | None:
    """Whether a condition of KFP holds; `x` stands for the input x, and `made` for an output."""
    for name in (*VALUES, "made"):
        text = text.replace(f"<{name}>", f"inputs.parameter_values['{name}']")
    sources = {name: Input(name) for name in VALUES} | {"made": Runtime()}
    return CelCondition(text, sources).cases(SCOPE).holds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<mode> == 'fast'", True),
        ("!(<mode> == 'full') && (<mode> == 'fast')", True),
        ("!(<mode> == 'full') && !(<mode> == 'fast')", False),
        ("<on> == true", True),
        ("int(<rows>) > 3", False),
        ("int(<rows>) >= 3 && <rate> < 1.0", True),
        ("double(3) == <big>", True),
        ("<mode> in ['slow', 'fast'] ? <on> : false", True),
        ("<made> == 'x' && <mode> == 'full'", False),
        ("<mode> == 'fast' || <made> == 'x'", True),
        ("<made> == 'x' || <mode> == 'full'", None),
        ("<mode> == 3", False),
        # KFP's driver refuses these, and the run fails.
        ("<mode> > 3", None),
        ("int(<mode>) == 3", None),
        ("<none> == 'x'", None),
        ("<mode>", None),
        ("<absent> == 'x'", None),
        ("'int(inputs.parameter_values['rows'])' == 'x'", None),
        ("<rows> == 1 + ", None),
    ],
)
def test_conditions_of_kfp_are_cel(text, value):
    assert cel(text) is value


def when(*parts: object) -> bool | None:
    """Whether `when` holds; None among its parts is a tag whose value the run makes."""
    expressions = tuple(Runtime() if part is None else Constant(part) for part in parts)
    expression = Joined(expressions) if len(expressions) > 1 else expressions[0]
    return WhenCondition("text", expression).cases(Scope()).holds


@pytest.mark.parametrize(
    ("parts", "value"),
    [
        (("false",), False),
        (("true == true",), True),
        (("heads", " == heads"), True),
        (("'he ads' == \"he ads\"",), True),
        (("3 > 2.5 && 0x10 == 16",), True),
        (("3 == '3'",), False),
        (("a in (b, a)",), True),
        (("!(a == b) ? true : false",), True),
        (("7 % 4 == 3 && 2 ** 3 == 8",), True),
        ((None, " == x && false"), False),
        (("true || ", None, " == x"), True),
        ((None, " == x"), None),
        (("'", None, "' == x"), None),
        # Argo refuses these: a minus between two texts, a field, an open quote, no boolean.
        (("my-value == my-value",), None),
        (("v1.2 == v1.2",), None),
        (("'a == a",), None),
        (("a",), None),
        (("a &&!b",), None),
        ((" == x",), None),
        (("a > 1",), None),
    ],
)
def test_when_is_govaluate_after_its_tags_are_replaced(parts, value):
    assert when(*parts) is value


def computed(text: str) -> str | None:
    value = read_computed(text, _SOURCES.get).evaluate(Scope())
    return value.value if isinstance(value, KnownValue) else None


class _Sources(dict):
    def get(self, name, _default=None):
        texts = {
            "retries": "0",
            "inputs.parameters.n": "3",
            "inputs.parameters.my-size": "6Gi",
            "inputs.parameters.json": '{"size": {"cpu": 2, "tags": ["a"]}}',
        }
        return Constant(texts[name]) if name in texts else Runtime()


_SOURCES = _Sources()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(sprig.int(retries)+1)*8", "8"),
        ("sprig.add(1, '2', 3)", "6"),
        ("sprig.sub(1, 3)", "-2"),
        ("sprig.mul(2, 3, 4)", "24"),
        ("sprig.div(-7, 2)", "-3"),
        ("sprig.div(7, 0)", None),
        ("sprig.mod(-7, 3)", "-1"),
        ("sprig.max(1, asInt('4') - 1)", "3"),
        ("sprig.min(5, '3')", "3"),
        ("sprig.default('2', '')", "2"),
        ("sprig.default('2', '7')", "7"),
        ("sprig.replace('-', '_', 'a-b-c')", "a_b_c"),
        ("replace('a-b', '-', '+')", "a+b"),
        ("asInt(inputs.parameters.n) * 2", "6"),
        ("asFloat(inputs.parameters.n) / 2", "1.5"),
        ("7 / 2 * 2", "7"),
        ("inputs.parameters['my-size']", "6Gi"),
        ("inputs.parameters.n == '3' ? 'gpu' : 'cpu'", "gpu"),
        ("sprig.ternary('1', '0', inputs.parameters.n == '3')", "1"),
        ("jsonpath(inputs.parameters.json, '$.size.cpu')", "2"),
        ("jsonpath(inputs.parameters.json, '$.size.tags[0]')", "a"),
        ("string(2 ** 3) + 'Gi'", "8Gi"),
        ("toJson([1, 'a'])", '[1,"a"]'),
        ("toJson({cpu: inputs.parameters.n, 'a b': {x: [1]}})", '{"a b":{"x":[1]},"cpu":"3"}'),
        ("{'a': 'b', (inputs.parameters.n): {}}['3']", "{}"),
        ("{a: 'b'}.a", "b"),
        ("toJson({})", "{}"),
        ("toJson({1: 2})", None),
        ("toJson({a})", None),
        ("toJson({a: 1", None),
        ("'abc' contains 'b' and not (1 > 2)", "true"),
        ("inputs.parameters.n > 2", None),
        ("inputs.parameters.n + 1", None),
        ("steps.a.outputs.result", None),
        ("nil", None),
        ("1 / 0", None),
        ("10 ** 400", None),
        ("9223372036854775807 + 1", None),
        ("sprig.env('HOME')", None),
        ("unheard(1)", None),
        ("asInt('x')", None),
        ("[1][5]", None),
    ],
)
def test_what_argo_computes_is_expr_with_sprig(text, value):
    assert computed(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "true" + ")" * 10_000,
        "!" * 10_000 + "true",
        "a == " * 10_000 + "a",
        "1 + " * 10_000 + "1",
        "true && " * 200_000 + "true",
        "'" + "x" * 1_000_000,
        "[" * 10_000,
        "true ? " * 5_000,
        "\ue0000\ue001 == \ue0001\ue001",
        "9" * 5_000 + " == 1",
        "9" * 400 + " == 1",
        "0x" + "f" * 400 + " == 1",
        "a.b" * 3_000,
        "",
    ],
)
def test_expressions_beyond_the_limits_are_unknown(text):
    assert cel(text) is None
    assert when(text) is None
    assert computed(text) is None


def test_a_long_row_of_operands_needs_no_depth():
    assert when("a == b || " * 1_000 + "true") is True
    assert cel("<on> == true && " * 400 + "<on> == false") is False


def test_an_empty_when_is_no_condition_that_holds_or_not():
    assert WhenCondition("", EMPTY).cases(Scope()).holds is None


@pytest.mark.parametrize(
    ("text", "pattern", "matched"),
    [
        ("main", "^(main|release-.*)$", True),
        ("release-1.2", "^(main|release-.*)$", True),
        ("my-main", "^(main|release-.*)$", False),
        ("v1.2.3", "^v[0-9]+\\\\.[0-9]+", True),
        ("xmainx", "main", True),
        # Python's patterns are others, or would take long.
        ("main", "(?i)MAIN", None),
        ("aaaa", "(a+)+$", None),
        ("a" * 500, ".*.*.*x", None),
        ("main", "(", None),
        ("main", "ma*+in", None),
    ],
)
def test_known_text_matches_simple_patterns_of_go(text, pattern, matched):
    start = time.process_time()
    assert when(f"'{text}' =~ '{pattern}'") is matched
    assert when(f"'{text}' !~ '{pattern}'") is (None if matched is None else not matched)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("x = 3", True),
        ("a in (a)", True),
        ("main == main && b", True),
        ("foo-bar == foo-bar", True),
        ("a == a", False),
        ("x IN (x, y)", False),
        ("'x' =~ '(?i)X'", True),
    ],
)
def test_a_when_without_a_value_that_is_known_to_plans_is_named(text, is_named):
    """Argo refuses all but the last, which only plans cannot compute."""
    assert bool(WhenCondition(text, Constant(text)).problem(Scope())) is is_named


def test_an_expression_inside_of_a_when_decides_or_is_named():
    def read(text: str) -> WhenCondition:
        return WhenCondition("", Joined((read_computed(text, Input), Constant(" == fast"))))

    assert read("mode").cases(SCOPE).holds is True
    assert not read("mode").problem(SCOPE)
    assert read("sprig.nonsense(mode)").problem(SCOPE)
    assert read("mode +").problem(SCOPE)
    assert not read("made").problem(SCOPE)
