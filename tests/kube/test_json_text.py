"""JSON of the API server at any depth."""

import json

import pytest

from kfp_placement_kube.json_text import MAX_DEPTH, read_json


def nested(levels, inner='"end"'):
    return '{"a":[' * levels + inner + "]}" * levels


def test_an_object_as_deep_as_the_parser_reads_is_read_whole():
    parsed = read_json(nested(200).encode())
    assert parsed == json.loads(nested(200))


def test_one_object_too_deep_does_not_hide_its_neighbours():
    text = f'{{"items":[{{"name":"first"}},{nested(4000)},{{"name":"last"}}]}}'
    items = read_json(text.encode())["items"]
    assert items[0] == {"name": "first"}
    assert items[2] == {"name": "last"}
    depth, inner = 2, items[1]
    while inner is not None:
        inner = inner["a"] if isinstance(inner, dict) else inner[0]
        depth += 1
    assert depth == MAX_DEPTH


def test_brackets_in_text_are_text():
    text = f'[{nested(2000)}, "]}}\\"[[", {{"k]": "\\\\"}}]'
    assert read_json(text.encode())[1:] == [']}"[[', {"k]": "\\"}]


@pytest.mark.parametrize("text", ["", "{", '{"a":}', "[" * 2000, "}" * 2000, '"' + '\\"' * 10**6])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        read_json(text.encode())
