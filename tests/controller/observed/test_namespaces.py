"""Which namespaces take part; `tests/deploy` compares it with the selectors of admission."""

import pytest

from kfp_placement_controller.observed.namespaces import observe_namespace, takes_part
from kfp_placement_engine.contract.keys import ENABLED_LABEL


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, ""),
        ({"labels": None}, ""),
        ({"labels": {"other": "true"}}, ""),
        ({"labels": {ENABLED_LABEL: "true"}}, "true"),
    ],
)
def test_of_a_namespace_its_label_is_kept(metadata, expected):
    assert observe_namespace({"metadata": metadata}) == expected


@pytest.mark.parametrize("opt_in", [True, False])
def test_a_namespace_that_has_not_been_seen_yet_takes_part(opt_in):
    assert takes_part("team", None, "ours", opt_in=opt_in)
    assert not takes_part("ours", None, "ours", opt_in=opt_in)
    assert not takes_part("kube-system", None, "ours", opt_in=opt_in)
