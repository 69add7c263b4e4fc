"""Which namespaces take part; `tests/deploy` compares it with the selectors of admission."""

import pytest

from kfp_placement_controller.observed.namespaces import (
    Namespaces,
    ObservedNamespace,
    observe_namespace,
)
from kfp_placement_engine.contract.keys import ENABLED_LABEL, PIPELINES_LABEL


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, ("", False)),
        ({"labels": None}, ("", False)),
        ({"labels": {"other": "true"}}, ("", False)),
        ({"labels": {ENABLED_LABEL: "true"}}, ("true", False)),
        ({"labels": {PIPELINES_LABEL: "all"}}, ("", True)),
        ({"labels": {PIPELINES_LABEL: "marked"}}, ("", False)),
        ({"labels": {PIPELINES_LABEL: "All", ENABLED_LABEL: 7}}, ("", False)),
        ({"labels": {PIPELINES_LABEL: ["all"]}}, ("", False)),
    ],
)
def test_of_a_namespace_its_labels_are_kept(metadata, expected):
    assert observe_namespace({"metadata": metadata}) == expected


@pytest.mark.parametrize("opt_in", [True, False])
def test_a_namespace_that_has_not_been_seen_yet_takes_part(opt_in):
    namespaces = Namespaces("ours", opt_in)
    assert namespaces.takes_part("team")
    assert not namespaces.takes_part("ours")
    assert not namespaces.takes_part("kube-system")


@pytest.mark.parametrize("all_pipelines", [True, False])
def test_what_it_says_of_pipelines_does_not_make_it_take_part(all_pipelines):
    for opt_in, enabled in ((True, ""), (False, "false")):
        seen = {"team": ObservedNamespace(enabled, all_pipelines)}
        assert not Namespaces("ours", opt_in, seen).takes_part("team")
