"""Typed reads of untrusted mappings, and the places that their errors name."""

import pytest

from kfp_placement_engine.exceptions import InputError, LimitError, QuantityError
from kfp_placement_engine.readers.kubernetes.nodes import read_node
from kfp_placement_engine.readers.kubernetes.pods import read_requests
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import UNNAMED, Place
from tests.support.kubernetes import container, node_object, pod_object

FILE = Place("file.yaml")


def fields(**raw):
    return Fields(raw, FILE)


def refusal(read):
    with pytest.raises(InputError) as caught:
        read()
    return str(caught.value)


def test_nothing_is_the_empty_value_of_each_type():
    nothing = fields(x=None)
    for key in ("x", "absent"):
        assert nothing.text(key) == ""
        assert nothing.texts(key) == ()
        assert nothing.text_mapping(key) == nothing.mapping(key) == nothing.resources(key) == {}
        assert nothing.entries(key) == []
        assert nothing.count(key) == nothing.number(key) == 0
        assert nothing.flag(key) is False
        assert nothing.moment(key) is None
        assert not nothing.fields(key)
        assert not nothing.flat(key)
        assert list(nothing.each(key)) == list(nothing.each_flat(key)) == []
        assert list(nothing.each_named(key)) == []


def test_text_is_what_yaml_shows():
    values = fields(a=True, b=3.0, c=0.5, d=7)
    assert [values.text(key) for key in "abcd"] == ["true", "3", "0.5", "7"]
    assert values.text_mapping("absent") == {}
    assert fields(x={"a": False, 1: "b"}).text_mapping("x") == {"a": "false", "1": "b"}


def test_numbers():
    values = fields(a="7", b=7.0, c=2.5)
    assert values.count("a") == values.count("b") == 7
    assert values.number("c") == 2.5


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: fields(x=[1]).text("x"), "file.yaml: x: must be text, is a list"),
        (lambda: fields(x="").name("x"), "file.yaml: x: is empty; a name is needed"),
        (lambda: fields(x={}).entries("x"), "file.yaml: x: must be a list, is a mapping"),
        (lambda: fields(x="y").mapping("x"), "file.yaml: x: must be a mapping, is text"),
        (lambda: fields(x=["a", []]).texts("x"), "file.yaml: x[1]: must be text, is a list"),
        (lambda: fields(x={"a": []}).text_mapping("x"), "file.yaml: x.a: must be text, is a list"),
        (
            lambda: fields(x=101).count("x", maximum=100),
            "file.yaml: x: 101 must be a whole number from 0 to 100",
        ),
        (lambda: fields(x=-1).number("x"), "file.yaml: x: -1 must be a number of 0 or more"),
        (lambda: fields(x=1).flag("x"), "file.yaml: x: must be true or false, is a number"),
        (lambda: fields(x="soon").moment("x"), "file.yaml: x: 'soon' is not a time"),
    ],
)
def test_an_error_names_the_place_of_the_field(read, message):
    assert refusal(read).startswith(message)


def test_a_bad_amount_names_its_place():
    with pytest.raises(QuantityError, match=r"^file\.yaml: x: cpu: 'much' is not a quantity"):
        fields(x={"cpu": "much"}).resources("x")


def test_paths():
    spec = {"spec": {"volumes": [{"name": "a"}, {"name": []}]}}
    below = list(fields(**spec).fields("spec").each("volumes"))[1]
    assert refusal(lambda: below.text("name")).startswith("file.yaml: spec.volumes[1].name: ")
    flat = list(fields(**spec).flat("spec").each_flat("volumes"))[1]
    assert refusal(lambda: flat.text("name")).startswith("file.yaml: name: ")
    named = flat.at(", volume {:.3}", "models")
    assert refusal(lambda: named.text("name")).startswith("file.yaml, volume mod: name: ")
    plain = Fields(flat.raw, UNNAMED)
    assert refusal(lambda: plain.text("name")).startswith("name: ")


def test_mappings_by_name():
    inputs = dict(fields(inputs={"x": {"a": []}}).each_named("inputs"))
    assert refusal(lambda: inputs["x"].text("a")).startswith("file.yaml: inputs.x.a: ")
    odd = fields(inputs={"x": 1})
    assert refusal(lambda: list(odd.each_named("inputs"))).startswith("file.yaml: inputs.x: ")


def test_entries_before_a_wrong_one_are_read():
    for read in (Fields.each, Fields.each_flat):
        entries = read(fields(x=[{"a": "b"}, None, 1]), "x")
        assert [next(entries).text("a"), next(entries).text("a")] == ["b", ""]
        assert "must be a mapping" in refusal(lambda entries=entries: next(entries))


def test_braces_in_a_name_stand_as_they_are():
    place = Place("{0}.yaml").field("{x}").then(": {}", "{y}")
    assert place.spelled == "{0}.yaml: {x}: {y}"


def test_an_error_of_another_kind():
    assert isinstance(FILE.error("too much", LimitError), LimitError)


def test_what_is_right_spells_no_place(monkeypatch):
    spelled: list[Place] = []
    monkeypatch.setattr(Place, "spelled", property(spelled.append))
    pod = pod_object("p", "n", containers=[container({"cpu": "1"})])
    read_requests(Fields(pod, Place("pod")))
    read_node(Fields(node_object("n"), Place("node")))
    assert spelled == []
