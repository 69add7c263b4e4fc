"""Keys of runs and claims, and progress that nobody follows."""

import pickle

import pytest

from kfp_placement_engine.model.keys import ClaimKey, RunKey
from kfp_placement_engine.model.progress import no_progress


@pytest.mark.parametrize("kind", [RunKey, ClaimKey])
def test_a_key_is_looked_up_like_a_pair_and_goes_between_processes(kind):
    key = kind("team-a", "data")
    assert (key.namespace, key.name) == ("team-a", "data")
    assert {("team-a", "data"): 1}[key] == 1
    assert pickle.loads(pickle.dumps(key)) == key


def test_progress_may_be_told_to_nobody():
    no_progress(0.5, "reading")
