"""The store of packages: equal ones once, and no namespace fills it at the cost of others."""

import pytest

from kfp_placement_controller.packages.package_store import PackageStore
from kfp_placement_engine.model.keys import RunKey

A, B, OTHER = RunKey("team", "a"), RunKey("team", "b"), RunKey("other", "a")


@pytest.fixture
def store():
    return PackageStore(most_bytes=10)


def test_equal_packages_are_kept_once(store):
    first, second = bytes(bytearray(b"123456")), bytes(bytearray(b"123456"))
    assert store.put(A, first) == store.put(B, second) == []
    assert store.get(A) is store.get(B) is first
    assert store.size_bytes == 6
    store.discard(A)
    assert (store.get(A), store.get(B)) == (b"", first)
    store.discard(B)
    assert store.size_bytes == 0


def test_the_run_that_was_used_least_recently_loses_its_package(store):
    store.put(A, b"aaaa")
    store.put(B, b"bbbb")
    store.used(A)
    assert store.put(RunKey("team", "c"), b"cccc") == [B]
    assert (store.get(A), store.get(B)) == (b"aaaa", b"")


def test_a_namespace_that_fills_the_store_drops_its_own_packages(store):
    store.put(OTHER, b"oo")
    assert store.put(A, b"aaaaa") == []
    assert store.put(B, b"bbbbb") == [A]
    assert store.get(OTHER) == b"oo"


def test_a_newer_package_of_a_run_replaces_the_older_one(store):
    store.put(A, b"1234567")
    assert store.put(A, b"89") == []
    assert (store.get(A), store.size_bytes) == (b"89", 2)
