"""Lists come in pages, and only one page is kept at a time."""

import weakref
from unittest.mock import Mock

import pytest

from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import GarbledError
from kfp_placement_kube.kinds import PODS
from kfp_placement_kube.requests import Requests

CLIENT = KubeClient(transport=Mock())


class Metadata(dict):
    """Of one object; unlike a dict it can be watched as it goes."""


class Server:
    """Answers three pages, and sees which objects of earlier ones are still kept."""

    foreign_page = None

    def __init__(self):
        self.given = []
        self.kept_at_next = []

    def ask(self, verb, kind, path, *, query):
        page = int(query["continue"] or 0)
        if page == self.foreign_page:
            return {"hello": "proxy"}
        self.kept_at_next.append(sum(each() is not None for each in self.given))
        # The middle one is empty, as a server may answer.
        objects = [Metadata(name=f"{page}-{number}") for number in range(0 if page == 1 else 4)]
        self.given += map(weakref.ref, objects)
        further = {"continue": str(page + 1)} if page < 2 else {}
        items = [{"metadata": each} for each in objects]
        return {"items": items, "metadata": {"resourceVersion": "7", **further}}


@pytest.fixture
def server(monkeypatch):
    """Answers whatever a client asks."""
    server = Server()
    monkeypatch.setattr(
        Requests, "ask", lambda _self, *args, **options: server.ask(*args, **options)
    )
    return server


def test_a_page_is_gone_when_the_next_one_is_read(server):
    names = []
    for item in CLIENT.list(PODS).items:
        names.append(item["metadata"]["name"])
        del item
    assert names == [f"{page}-{number}" for page in (0, 2) for number in range(4)]
    assert server.kept_at_next == [0, 0, 0]


def test_the_pages_themselves_keep_none(server):
    """Whoever takes them one by one decides what to keep."""
    pages = CLIENT.pages(PODS)
    assert [len(next(pages).items) for _ in range(3)] == [4, 0, 4]
    assert next(pages, None) is None
    assert server.kept_at_next == [0, 0, 0]


@pytest.mark.parametrize("page", range(3))
def test_a_proxy_s_answer_is_not_the_end_of_a_list(server, page):
    server.foreign_page = page
    with pytest.raises(GarbledError, match="/api/v1/pods: the answer is not a list"):
        list(CLIENT.pages(PODS))
