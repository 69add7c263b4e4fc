"""Which namespaces take part; `tests/deploy` compares it with the selectors of admission."""

import pytest

from kfp_placement_controller.observed.namespaces import (
    ObservedNamespace,
    observe_namespace,
    takes_part,
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
    assert takes_part("team", None, "ours", opt_in=opt_in)
    assert not takes_part("ours", None, "ours", opt_in=opt_in)
    assert not takes_part("kube-system", None, "ours", opt_in=opt_in)


@pytest.mark.parametrize("all_pipelines", [True, False])
def test_what_it_says_of_pipelines_does_not_make_it_take_part(all_pipelines):
    assert not takes_part("team", ObservedNamespace("", all_pipelines), "ours", opt_in=True)
    assert not takes_part("team", ObservedNamespace("false", all_pipelines), "ours", opt_in=False)
