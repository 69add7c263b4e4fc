"""PodSets for Kueue: never less than the peak, and less than a unit more."""

import re

from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.contract.quota_units import (
    MAX_OWN_POD_SETS,
    MAX_UNITS,
    QuotaUnits,
    quota_units,
    units_needed,
)
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.units.resources import add_to, without_zeros

GPU, OTHER_GPU = "nvidia.com/gpu", "amd.com/gpu"
RUN = QuotaUnits("run", 1, {"kfp-placement.dev/runs": 1})
GIBIBYTE = 2**30

AMOUNTS = {
    "cpu": st.integers(0, 10**7),
    "memory": st.integers(0, 2**45),
    "pods": st.integers(0, 10**4),
    "ephemeral-storage": st.integers(0, 2**45),
    GPU: st.integers(0, 2000),
    OTHER_GPU: st.integers(0, 9),
}


def of_resources(names: list[str]) -> st.SearchStrategy[dict[str, int]]:
    """Amounts of some resources."""
    return st.fixed_dictionaries({}, optional={name: AMOUNTS[name] for name in names})


@st.composite
def demands(draw, least: Demand | None = None) -> Demand:
    """A demand as plans have them: no share is more than the peak."""
    peak = draw(of_resources(list(AMOUNTS)))
    if least is not None:
        peak = {name: min(amount, least.peak.get(name, 0)) for name, amount in peak.items()}
    shares = {
        device: {device: peak[device]}
        | {name: draw(st.integers(0, peak[name])) for name in ("cpu", "memory") if name in peak}
        for device in (GPU, OTHER_GPU)
        if peak.get(device)
    }
    return Demand(peak=without_zeros(peak), accelerator_shares=shares)


def total(units: tuple[QuotaUnits, ...]) -> dict[str, int]:
    """What podSets request together."""
    result: dict[str, int] = {}
    for each in units:
        add_to(result, {name: each.count * amount for name, amount in each.requests.items()})
    return result


@given(demands())
def test_together_they_are_less_than_a_unit_above_the_peak(demand):
    """Of each resource but `pods`, whatever accelerators request of CPU and memory."""
    units = quota_units(demand)
    requested = total(units)
    wanted = {name: amount for name, amount in demand.peak.items() if name != "pods"}
    assert requested.keys() == {*wanted, "kfp-placement.dev/runs"}
    for name, amount in wanted.items():
        unit = max(each.requests.get(name, 0) for each in units)
        assert amount <= requested[name] < amount + unit


@given(demands())
def test_there_are_few_podsets_of_reasonable_counts(demand):
    units = quota_units(demand)
    assert units[0] == RUN
    assert len({each.name for each in units}) == len(units) <= MAX_OWN_POD_SETS
    for each in units:
        assert 1 <= each.count <= MAX_UNITS
        assert all(amount > 0 for amount in each.requests.values())
        assert re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", each.name)


@given(demands())
def test_a_unit_of_much_is_less_than_a_hundredth(demand):
    """Unless an accelerator's podSet has all of it."""
    for each in quota_units(demand):
        (name, amount), *_ = each.requests.items()
        if name in ("cpu", "memory") and each.count > 1:
            least = 10 if name == "cpu" else 2**20
            assert amount == least or amount < demand.peak[name] / 100


@given(demands())
def test_all_units_are_needed_at_first_and_none_at_the_end(demand):
    units = quota_units(demand)
    assert units_needed(units, demand) == {each.name: each.count for each in units}
    assert units_needed(units, Demand()) == {each.name: each is units[0] for each in units}


@given(st.data())
def test_units_needed_later_cover_the_peak_then_as_far_as_there_are_any(data):
    """Accelerators are given back with their CPU, even if other steps need CPU by then."""
    first = data.draw(demands())
    units, later = quota_units(first), data.draw(demands(least=first))
    needed = units_needed(units, later)
    kept = tuple(QuotaUnits(each.name, needed[each.name], each.requests) for each in units)
    assert all(needed[each.name] <= each.count for each in units)
    for name, amount in later.peak.items():
        own = [each for each in units if each.requests.keys() == {name}]
        all_kept = all(needed[each.name] == each.count for each in own)
        is_shared = name in ("cpu", "memory") and len(first.accelerator_shares) > 0
        covered = total(kept).get(name, 0) >= amount
        assert name == "pods" or covered or (is_shared and all_kept)


def test_cpu_that_only_accelerators_had_is_given_back_with_them():
    """All CPU was requested beside GPUs; a step without one may come later."""
    units = quota_units(Demand({"cpu": 4000, GPU: 2}, {GPU: {"cpu": 4000, GPU: 2}}))
    assert units_needed(units, Demand({"cpu": 1000})) == {"run": 1, "nvidia-com-gpu": 0}


def test_cpu_and_memory_are_cut_into_round_units():
    peak = {"cpu": 53_000, "memory": 156 * GIBIBYTE, "pods": 14}
    assert quota_units(Demand(peak=peak)) == (
        RUN,
        QuotaUnits("cpu", 106, {"cpu": 500}),
        QuotaUnits("memory", 156, {"memory": GIBIBYTE}),
    )


def test_an_accelerator_has_its_share_of_cpu_and_memory():
    """Three workers of 4 CPU, 16 GiB and a GPU, and what the step itself and a driver request."""
    share = {"cpu": 12_000, "memory": 48 * GIBIBYTE, GPU: 3, "pods": 3}
    peak = {"cpu": 13_100, "memory": 50 * GIBIBYTE, GPU: 3, "pods": 5}
    assert quota_units(Demand(peak=peak, accelerator_shares={GPU: share})) == (
        RUN,
        QuotaUnits("nvidia-com-gpu", 3, {GPU: 1, "cpu": 4000, "memory": 16 * GIBIBYTE}),
        QuotaUnits("cpu", 110, {"cpu": 10}),
        QuotaUnits("memory", 128, {"memory": 16 * 2**20}),
    )


def test_shares_that_are_more_than_the_peak_together_are_cut_in_proportion():
    """One after another the steps take 6 CPU, each kind of accelerator on its own nodes."""
    shares = {GPU: {"cpu": 6000, GPU: 2}, OTHER_GPU: {"cpu": 3000, OTHER_GPU: 1}}
    units = quota_units(Demand({"cpu": 6000, GPU: 2, OTHER_GPU: 1}, shares))
    assert units == (
        RUN,
        QuotaUnits("amd-com-gpu", 1, {OTHER_GPU: 1, "cpu": 2000}),
        QuotaUnits("nvidia-com-gpu", 2, {GPU: 1, "cpu": 2000}),
    )


def test_one_gpu_is_given_back_though_cpu_is_still_needed():
    share = {"cpu": 1000, GPU: 1}
    units = quota_units(Demand({"cpu": 2000, GPU: 1}, {GPU: share}))
    needed = units_needed(units, Demand({"cpu": 1000}))
    assert needed == {"run": 1, "nvidia-com-gpu": 0, "cpu": 100}


def test_more_than_eight_are_eight_the_last_with_all_that_is_left():
    """Nothing of it is lost, and it is given back as a whole."""
    peak = {f"x.io/d{number}": number for number in range(1, 10)} | {"cpu": 1000}
    shares = {name: {name: amount, "cpu": 10} for name, amount in peak.items() if name != "cpu"}
    units = quota_units(Demand(peak, shares))
    assert len(units) == MAX_OWN_POD_SETS
    assert units[-1].count == 1
    assert set(units[-1].requests) == {"x.io/d7", "x.io/d8", "x.io/d9", "cpu"}
    assert {name: amount for name, amount in total(units).items() if name in peak} == peak
    assert units_needed(units, Demand({"cpu": 10}))["others"] == 1
    assert units_needed(units, Demand())["others"] == 0


def test_names_differ_even_where_those_of_resources_hardly_do():
    """Resources are named by authors, podSets must have names of their own."""
    long = "x.io/" + "a" * 90
    peak = {"a.b/c": 1, "a-b/c": 2, "a-b/c-1": 3, long: 4, long + "b": 5}
    names = [each.name for each in quota_units(Demand(peak))]
    assert len(set(names)) == 6
    assert max(map(len, names)) <= 63


@given(st.lists(of_resources([*AMOUNTS]), max_size=4), demands())
def test_podsets_that_others_have_written_are_read_whatever_they_request(requested, demand):
    """Nothing, or zeros, too; what requests nothing is kept."""
    units = [QuotaUnits(f"u{index}", index, each) for index, each in enumerate(requested)]
    needed = units_needed(units, demand)
    assert all(0 <= needed[each.name] <= each.count for each in units)
    nothing = [each for each in units if not without_zeros(each.requests)]
    assert all(needed[each.name] == each.count for each in nothing)
