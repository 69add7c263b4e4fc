"""YAML and JSON within limits: every refusal names the file, the place, and what to do."""

import json
from itertools import pairwise

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.exceptions import EngineError, InputError, InputNotFoundError, LimitError
from kfp_placement_engine.readers.text.documents import (
    MAX_DEPTH,
    load_documents,
    parse_json,
    read_file,
)
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.text.yaml_events import MAX_ALIASED_VALUES
from tests.support.effort import cpu_seconds
from tests.support.run_data import data_files

MIB = 2**20


def load(data: bytes | str, max_bytes: int = MIB, **options) -> list:
    raw = data.encode() if isinstance(data, str) else data
    return load_documents(raw, name="file.yaml", max_bytes=max_bytes, **options)


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("a: 1", [{"a": 1}]),
        ("a: 1\n---\nb: 2\n---\n", [{"a": 1}, {"b": 2}]),
        ("---\n---\na: 1\n...\n", [{"a": 1}]),
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}]),
        ("[1, 2]", [[1, 2]]),
        ("{a: 1}", [{"a": 1}]),
        ('{"a": 1,}', [{"a": 1}]),
        ("{a: 1}\n---\n{b: 2}", [{"a": 1}, {"b": 2}]),
        ("\ufeff{}", [{}]),
        ("# only\na: b # c", [{"a": "b"}]),
        ("- 1\n- two", [[1, "two"]]),
        ("just text", ["just text"]),
    ],
)
def test_yaml_and_json_are_told_apart_by_content(text, documents):
    assert load(text) == documents


def test_utf_16_with_its_mark_is_read():
    """What Windows shells write when output is sent to a file."""
    assert load("a: é".encode("utf-16")) == [{"a": "é"}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("0x1F", 31),
        ("0o17", "0o17"),
        ("0777", 511),
        ("0b101", 5),
        ("1_000", 1000),
        ("-7", -7),
        ("1.5", 1.5),
        ("1.0e+3", 1000.0),
        ("1e3", "1e3"),
        ("12e4", "12e4"),
        (".5", 0.5),
        ("-.inf", float("-inf")),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!int '7'", 7),
        ("!!float 1", 1),
        ("!!null ''", None),
        ("1.2.3", "1.2.3"),
        ("y", "y"),
        ("+", "+"),
        ("0x", "0x"),
        ("-", [None]),
    ],
)
def test_scalars_are_those_of_kubernetes_tools(text, value):
    """Times and base-60 numbers stay text."""
    assert load(f"- {text}" if text != "-" else "-")[0] == ([value] if text != "-" else value)


@pytest.mark.parametrize(
    "path",
    [*data_files("kfp-2.17.0/pipelines", "*.yaml"), *data_files("labelled/workflows", "*.yaml")],
)
def test_real_files_are_what_pyyaml_makes_of_them(path):
    documents = yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader)
    assert load(path.read_bytes()) == [document for document in documents if document is not None]


def test_keys_are_always_text():
    """`n`, `on`, `1` and null as names of parameters."""
    assert load("n: 1\non: 2\n1: 3\nnull: 4\n1.0: 5") == [
        {"n": 1, "on": 2, "1": 3, "null": 4, "1.0": 5}
    ]


def test_anchors_aliases_and_merges_are_followed():
    text = (
        "base: &b {x: 1, y: 2}\nuse: *b\nmerged: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}\n*b : 1"
    )
    with pytest.raises(InputError, match="keys must be text"):
        load(text)
    document = load(text.rsplit("\n", 1)[0])[0]
    assert document["use"] == {"x": 1, "y": 2}
    assert document["merged"] == {"x": 1, "y": 3}
    assert document["both"] == {"x": 1, "y": 2, "z": 4}
    assert load("a: &k name\nb: {*k : 1}")[0]["b"] == {"name": 1}


def test_many_harmless_aliases_are_accepted():
    text = "base: &b {labels: {a: b}}\n" + "".join(f"k{number}: *b\n" for number in range(5000))
    assert len(load(text)[0]) == 5001


def bomb(levels: int = 9, width: int = 9) -> str:
    lines = ["a0: &a0 [x, x, x]"]
    for level in range(1, levels + 1):
        inner = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} [{inner}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        bomb(),
        bomb(levels=60, width=2),
        bomb().replace("[", "{k: [").replace("]", "]}"),
        "a: &a [1]\nb: [" + "*a, " * 10 + "]\n" + bomb().replace("a", "z"),
        "m: &m {a: 1}\n" + "n: &n {<<: [" + "*m, " * 500_000 + "*m]}",
    ],
    ids=["lists", "doubling", "mappings", "mixed", "merges"],
)
def test_bombs_are_refused_quickly(text):
    def refuse() -> None:
        with pytest.raises(LimitError, match=r"line \d+: aliases repeat more than"):
            load(text, 16 * MIB)

    harmless = "a: [" + "1, " * (MAX_ALIASED_VALUES // 2) + "1]"
    assert cpu_seconds(refuse) < 2 * cpu_seconds(load, harmless, 16 * MIB)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"---\n---\n", "no document"),
        (b"# nothing\n", "no document"),
        (b"null", "no document"),
        (b"a: [1", "line 2"),
        (b"a: b: c", "line 1"),
        (b"a: 1\n b: 2", "line 2"),
        (b"\ta: 1", "line 1"),
        (b'{"a": 1}\n{"b": }', "line 2"),
        (b'{"a": 1} x', "line 1"),
        (b"a: &x [*x]", "line 1"),
        (b"a: *gone", "has no anchor"),
        (b"a: 1\nb: 2\na: 3", "line 3: key 'a' appears twice"),
        (b'{"a": 1,\n "b": {"c": 1,\n "c": 2}}', "line 3: key 'c' appears twice"),
        (b"? [1]\n: 2", "keys must be text"),
        (b"? {a: 1}\n: 2", "keys must be text"),
        (b"a: !!python/object/apply:os.system ['true']", "is not allowed; write plain values"),
        (b"a: !custom x", "tag !custom is not allowed"),
        (b"!!set {a, b}\n--- !other {a: 1}", "tag !other is not allowed"),
        (b"a: !!int x", "does not fit its tag"),
        (b"<<: 1", "<< merges something"),
        (b"a: " + b"9" * 5000, "number of 5000 characters"),
        (b"a: 0x" + b"f" * 4998, "number of 5000 characters"),
        (b"[" + b"9" * 5000 + b"]", "not valid JSON"),
        (b'["\\ud800"]', "surrogate"),
        (b"a: \x01", "YAML"),
        (b"a\x00b", "binary"),
        (b"\x1f\x8b\x08\x00", "compressed"),
        (b"PK\x03\x04", "compressed"),
        (b"a: \xff\xfe", "line 1: byte 0xff"),
        (b"a: 1\nb: \xe9", "line 2: byte 0xe9 is not UTF-8"),
        (b"%YAML 9.9\n---\na: 1", "YAML"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_place(data, problem):
    with pytest.raises(InputError, match=problem) as caught:
        load(data)
    assert str(caught.value).startswith("file.yaml")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b"- " * 100_000,
        b"".join(b" " * depth + b"a:\n" for depth in range(1500)),
        b"a: " + b"{b: " * 500 + b"1" + b"}" * 500,
    ],
    ids=["open", "lists", "objects", "dashes", "block", "flow"],
)
def test_deep_nesting_is_refused(data):
    with pytest.raises(LimitError, match="deep"):
        load(data, 16 * MIB)


def test_the_depth_limit_is_the_same_for_both():
    mixed = '[{"a":' * (MAX_DEPTH // 2) + "1" + "}]" * (MAX_DEPTH // 2)
    for text in ("[" * MAX_DEPTH + "]" * MAX_DEPTH, mixed, "- " * (MAX_DEPTH - 1) + "1"):
        assert load(text)
    deeper = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
    for text in (deeper, f"[{mixed}]", "- " * (MAX_DEPTH + 1) + "1"):
        with pytest.raises(LimitError, match=f"deeper than {MAX_DEPTH}"):
            load(text)


def test_brackets_in_text_are_no_nesting():
    text = json.dumps({"a": "[" * 500, "b": '\\"{' * 500})
    assert load(text) == [json.loads(text)]


def test_progress_goes_from_nothing_to_all():
    """For JSON by objects, for YAML by bytes."""
    items = [{"name": f"n{number}", "labels": {"a": "b"}} for number in range(20_000)]
    for text in (json.dumps(items), yaml.dump(items[:4000], Dumper=yaml.CSafeDumper)):
        shares: list[float] = []
        load(text, 16 * MIB, progress=lambda share, _, shares=shares: shares.append(share))
        assert shares[0] == 0.0
        assert shares[-1] == 1.0
        assert shares == sorted(shares)
        assert len(shares) > 3
        assert max(b - a for a, b in pairwise(shares)) < 0.9


def test_unwanted_parts_of_objects_are_dropped():
    """Saves most of the memory that a dump of pods takes."""
    text = '{"metadata": {"name": "a", "managedFields": [{"b": 1}]}, "env": "kept"}'
    document = load(text, drop=frozenset({"managedFields", "env"}))[0]
    assert document == {"metadata": {"name": "a"}, "env": "kept"}


def test_embedded_json_is_read_with_its_place():
    assert parse_json('{"a": [1]}', place=Place("file: argument x")) == {"a": [1]}
    assert parse_json("null", place=Place("")) is None
    for text in ("", "{", "1 2", '{"a": 1, "a": 2}', "[" * 500 + "]" * 500, "NaN"):
        with pytest.raises(InputError, match="file: argument x"):
            parse_json(text, place=Place("file: argument x"))


def test_files_that_cannot_be_read_are_named(tmp_path):
    path = tmp_path / "run.yaml"
    with pytest.raises(InputNotFoundError, match="no such file"):
        read_file(path, max_bytes=MIB)
    with pytest.raises(InputError, match="is a folder"):
        read_file(tmp_path, max_bytes=MIB)
    path.write_bytes(b"x" * 11)
    assert read_file(path, max_bytes=11) == b"x" * 11
    with pytest.raises(LimitError, match="larger than"):
        read_file(path, max_bytes=10)
    with pytest.raises(EngineError):
        read_file("nul\0byte", max_bytes=10)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcxyz-_.", min_size=1, max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(plain.filter(lambda value: value is not None))
def test_what_yaml_and_json_write_is_read_again(value):
    assert load(json.dumps([value])) == [[value]]
    assert load(json.dumps([value], ensure_ascii=False)) == [[value]]
    assert load(yaml.safe_dump([value], allow_unicode=True)) == [[value]]


@given(st.binary(max_size=200) | st.text("{}[]:,-\n &*!'\"ab1<#|>?", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data):
    try:
        load(data)
    except InputError as error:
        str(error).encode("utf-8")
