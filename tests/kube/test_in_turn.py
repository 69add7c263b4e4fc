"""Items of many owners, of which one gives thousands."""

from kfp_placement_kube.in_turn import InTurn


def test_each_owner_gives_one_in_turn():
    items = InTurn[str]()
    for item in ("many-0", "many-1", "many-2", "one-0"):
        items.put(item.partition("-")[0], item)
    assert [items.take() for _ in range(5)] == ["many-0", "one-0", "many-1", "many-2", None]
    assert len(items) == 0


def test_when_there_are_too_many_the_owner_of_most_loses_the_last():
    items = InTurn[str](most=3)
    assert [items.put("many", f"many-{number}") for number in range(4)] == [None] * 3 + ["many-3"]
    assert items.put("one", "one-0") == "many-2"
    assert [items.take() for _ in range(len(items))] == ["many-0", "one-0", "many-1"]
    assert items.put("one", "one-1") is None
