"""Quantities, durations and latencies: exact, both ways, and refused with the value named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.units.durations import (
    MAX_DURATION_SECONDS,
    MAX_LATENCY_MS,
    parse_duration,
    parse_latency_ms,
)
from kfp_placement_engine.units.quantities import (
    MAX_QUANTITY,
    format_resource,
    format_resources,
    parse_cpu,
    parse_quantity,
    parse_resource,
    parse_resources,
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
def test_quantities_are_read_as_kubernetes_reads_them(text, amount):
    """Fractions are rounded up, as Kubernetes does."""
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500m", 500), ("2", 2000), (0.5, 500), (1, 1000), ("1.0005", 1001), ("1k", 1_000_000)],
)
def test_cpu_is_in_milli_cpu(text, amount):
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
def test_other_text_is_no_quantity(text):
    """The message shows the value."""
    with pytest.raises(QuantityError, match="quantity") as caught:
        parse_quantity(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("4GB", "4G or 4Gi"),
        ("4 gb", "4G or 4Gi"),
        ("4g", "4G or 4Gi"),
        ("1.5TiB", "1.5Ti"),
        ("512mb", "512M or 512Mi"),
        ("64KB", "64k or 64Ki"),
        ("64 Kibyte", "64Ki"),
        ("4G iB", "for example 4Gi, 500M or 2"),
        ("4 cores", "for example 4Gi, 500M or 2"),
    ],
)
def test_a_size_in_bytes_is_answered_with_kubernetes_units(text, advice):
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value).endswith(f"; write {advice}")
    for each in advice.split(" or ") if "example" not in advice else ():
        assert parse_quantity(each) > 0


@pytest.mark.parametrize("text", ["9223372036854775808", "16Ei", "1e400", 1e300, 10**59])
def test_a_quantity_beyond_64_bits_is_refused(text):
    with pytest.raises(QuantityError, match="beyond"):
        parse_quantity(text)


def test_a_bad_entry_of_a_resource_list_is_named():
    assert parse_resources({"cpu": "1", "memory": "1Gi"}) == {"cpu": 1000, "memory": 2**30}
    with pytest.raises(QuantityError, match="memory: 'lots'"):
        parse_resources({"cpu": "1", "memory": "lots"})


@given(st.integers(0, MAX_QUANTITY), st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]))
def test_amounts_are_written_so_that_they_are_read_again(amount, name):
    amount = amount // 1000 if name == "cpu" else amount
    assert parse_resource(name, format_resource(name, amount)) == amount


def test_amounts_are_written_shortly():
    amounts = {"cpu": 2500, "memory": 2**31, "nvidia.com/gpu": 2, "ephemeral-storage": 0}
    texts = {"cpu": "2500m", "memory": "2Gi", "nvidia.com/gpu": "2", "ephemeral-storage": "0"}
    assert format_resources(amounts) == texts
    assert format_resource("cpu", 2000) == "2"
    assert format_resource("memory", 1_000_000) == "1000000"


@given(anything)
def test_whatever_comes_is_read_or_refused(value):
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
