"""The one way to change what others write too."""

import pytest

from kfp_placement_kube.client import MAX_TRIES, modify
from kfp_placement_kube.exceptions import ForbiddenError, NotFoundError, WriteConflictError

CONFLICT = WriteConflictError(409, "Conflict", "written in between")


class Shared:
    """A version that others raise before each of the first writes."""

    def __init__(self, *in_between):
        self.version = 1
        self.written = []
        self._in_between = list(in_between)

    def read(self):
        return self.version

    def write(self, version):
        self.written.append(version)
        if self._in_between:
            self.version += 1
            raise self._in_between.pop(0)
        return f"written by {version}"


def test_what_is_known_is_written_by_without_reading_it_again():
    shared = Shared()
    assert modify(1, shared.write, lambda: pytest.fail("read")) == "written by 1"


def test_a_write_goes_out_from_what_others_have_written():
    shared = Shared(CONFLICT, CONFLICT)
    assert modify(1, shared.write, shared.read) == "written by 3"
    assert shared.written == [1, 2, 3]


def test_others_who_never_stop_end_it():
    shared = Shared(*[CONFLICT] * 9)
    with pytest.raises(WriteConflictError):
        modify(1, shared.write, shared.read)
    assert len(shared.written) == MAX_TRIES


def test_other_refusals_end_it_at_once():
    gone, forbidden = NotFoundError(404, "NotFound", "gone"), ForbiddenError(403, "", "no")
    shared = Shared(gone, forbidden)
    with pytest.raises(ForbiddenError):
        modify(1, shared.write, shared.read, retry_on=(WriteConflictError, NotFoundError))
    assert shared.written == [1, 2]
