"""Quantities, durations and latencies: exact, both ways, and refused with the value named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.quantities import (
    MAX_DURATION_SECONDS,
    MAX_LATENCY_MS,
    MAX_QUANTITY,
    format_duration,
    format_resource,
    format_resources,
    parse_cpu,
    parse_duration,
    parse_latency_ms,
    parse_quantity,
    parse_resource,
    parse_resources,
    plain_decimal,
)

anything = st.one_of(
    st.text(max_size=80),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.lists(st.integers(), max_size=2),
    st.from_regex(r"[-+]?[0-9.]{0,12}([a-zA-Zµ]{0,3}|[eE][-+]?[0-9]{0,4})", fullmatch=True),
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1", 1),
        (7, 7),
        ("1Ki", 1024),
        ("1.5Gi", 1_610_612_736),
        ("2G", 2_000_000_000),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("100m", 1),
        ("1n", 1),
        (".5Mi", 524_288),
        ("5.", 5),
        ("+5", 5),
        (0.5, 1),
        (1e-07, 1),
        (" 2Gi ", 2_147_483_648),
        ("9223372036854775807", MAX_QUANTITY),
    ],
)
def test_quantities_are_read_as_kubernetes_reads_them(text: object, amount: int) -> None:
    """Fractions are rounded up, as Kubernetes does."""
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500m", 500), ("2", 2000), (0.5, 500), (1, 1000), ("1.0005", 1001), ("1k", 1_000_000)],
)
def test_cpu_is_in_milli_cpu(text: object, amount: int) -> None:
    assert parse_cpu(text) == amount
    assert parse_resource("cpu", text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "500q",
        "",
        "Gi",
        "1Gib",
        "-1",
        "-0.1Gi",
        "1 Gi",
        "٣",
        "1e",
        "0x10",
        True,
        None,
        [],
        "9" * 500,
    ],
)
def test_other_text_is_no_quantity(text: object) -> None:
    """The message shows the value."""
    with pytest.raises(QuantityError, match="quantity") as caught:
        parse_quantity(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["9223372036854775808", "16Ei", "1e400", 1e300, 10**59])
def test_a_quantity_beyond_64_bits_is_refused(text: object) -> None:
    with pytest.raises(QuantityError, match="beyond"):
        parse_quantity(text)


def test_a_bad_entry_of_a_resource_list_is_named() -> None:
    assert parse_resources({"cpu": "1", "memory": "1Gi"}) == {"cpu": 1000, "memory": 2**30}
    with pytest.raises(QuantityError, match="memory: 'lots'"):
        parse_resources({"cpu": "1", "memory": "lots"})


@given(st.integers(0, MAX_QUANTITY), st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]))
def test_amounts_are_written_so_that_they_are_read_again(amount: int, name: str) -> None:
    amount = amount // 1000 if name == "cpu" else amount
    assert parse_resource(name, format_resource(name, amount)) == amount


def test_amounts_are_written_shortly() -> None:
    amounts = {"cpu": 2500, "memory": 2**31, "nvidia.com/gpu": 2, "ephemeral-storage": 0}
    texts = {"cpu": "2500m", "memory": "2Gi", "nvidia.com/gpu": "2", "ephemeral-storage": "0"}
    assert format_resources(amounts) == texts
    assert format_resource("cpu", 2000) == "2"
    assert format_resource("memory", 1_000_000) == "1000000"


@given(anything)
def test_whatever_comes_is_read_or_refused(value: object) -> None:
    """Nothing but a number within limits, or a QuantityError."""
    for parse, limit in (
        (parse_quantity, MAX_QUANTITY),
        (parse_cpu, MAX_QUANTITY),
        (parse_duration, MAX_DURATION_SECONDS),
        (parse_latency_ms, MAX_LATENCY_MS),
    ):
        try:
            number = parse(value)
        except QuantityError:
            continue
        assert 0 <= number <= limit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20m", 1200.0),
        ("1h30m", 5400.0),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
        ("2d", 172_800.0),
        ("90", 90.0),
        (90, 90.0),
        (0.25, 0.25),
        (1e-05, 1e-05),
        ("1m0.5s", 60.5),
        ("3us", 3e-06),
        ("3µs", 3e-06),
        ("0", 0.0),
        ("7.", 7.0),
    ],
)
def test_durations_are_go_s_and_days_and_bare_seconds(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "abc", "20", "1h 30m", "5 m", "m", "1y", "--1s", float("nan"), float("inf"), True]
)
def test_other_text_is_no_duration(text: object) -> None:
    """Only the bare number among these is one."""
    if text == "20":
        assert parse_duration(text) == 20.0
        return
    with pytest.raises(QuantityError, match="duration"):
        parse_duration(text)


def test_negative_and_absurd_durations_are_refused() -> None:
    with pytest.raises(QuantityError, match="negative"):
        parse_duration("-5m")
    with pytest.raises(QuantityError, match="negative"):
        parse_duration(-0.5)
    with pytest.raises(QuantityError, match="ten years"):
        parse_duration("4000d")
    with pytest.raises(QuantityError, match="an hour"):
        parse_latency_ms("2h")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("0.289", 0.289), ("0.8ms", 0.8), ("300us", 0.3), ("1s", 1000.0), (40.1, 40.1), ("0.1", 0.1)],
)
def test_latencies_are_exact_and_bare_ones_are_milliseconds(
    text: object, milliseconds: float
) -> None:
    assert parse_latency_ms(text) == milliseconds


@given(st.floats(0, MAX_LATENCY_MS))
def test_a_latency_written_plainly_is_read_exactly(milliseconds: float) -> None:
    assert parse_latency_ms(f"{plain_decimal(milliseconds)}ms") == milliseconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.8, "800ms"),
        (0.0832, "83ms"),
        (0.00512, "5.1ms"),
        (1e-5, "0.01ms"),
        (1e-9, "0s"),
        (0.9994, "999ms"),
        (0.9996, "1s"),
        (3.25, "3.25s"),
        (45, "45s"),
        (1200, "20m"),
        (5400, "1h30m"),
        (187_200, "2d4h"),
        (59.7, "1m"),
        (3661, "1h1m"),
    ],
)
def test_durations_for_people_have_at_most_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
