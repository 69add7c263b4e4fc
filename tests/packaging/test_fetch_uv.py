"""Fetching uv with nothing but Python's standard library."""

import hashlib
import io
import json
import zipfile
from email.message import EmailMessage

import pytest
from fetch_uv import (
    JSON_INDEX,
    FetchError,
    Index,
    Platform,
    Wheel,
    choose_wheel,
    fetch_uv,
    parse_index,
)
from package_index import IndexSettings

GLIBC = Platform("manylinux", (2, 36), "x86_64")
PAGE = "https://index.example/simple/uv/"
# As the public index lists them.
TAGS = [
    "linux_armv6l",
    "macosx_10_12_x86_64",
    "macosx_11_0_arm64",
    "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "manylinux_2_28_aarch64",
    "musllinux_1_1_x86_64",
    "win_amd64",
]


def wheels(version="1.2.3"):
    names = [f"uv-{version}-py3-none-{tag}.whl" for tag in TAGS]
    return [Wheel(name, PAGE + name, "0" * 64) for name in [f"uv-{version}.tar.gz", *names]]


def a_wheel():
    """The bytes of a wheel with one program."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("uv-1.2.3.data/scripts/uv", b"program")
        archive.writestr("uv/__init__.py", b"")
    return buffer.getvalue()


def an_index(wheel, sha256):
    """Answers like an index that offers this wheel."""
    name = "uv-1.2.3-py3-none-manylinux_2_17_x86_64.whl"
    fragment = f"#sha256={sha256}" if sha256 else ""
    page = f'<a href="../../files/{name}{fragment}">{name}</a>'.encode()
    return {
        PAGE: (page, "text/html"),
        f"https://index.example/files/{name}": (wheel, "application/octet-stream"),
    }.__getitem__


@pytest.mark.parametrize(
    ("here", "tag"),
    [
        (GLIBC, "manylinux_2_17_x86_64.manylinux2014_x86_64"),
        (
            Platform("manylinux", (2, 17), "aarch64"),
            "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        ),
        (
            Platform("musllinux", (1, 2), "aarch64"),
            "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        ),
        (Platform("musllinux", (1, 2), "x86_64"), "musllinux_1_1_x86_64"),
        (Platform("macosx", (14, 2), "arm64"), "macosx_11_0_arm64"),
        (Platform("macosx", (10, 15), "x86_64"), "macosx_10_12_x86_64"),
    ],
)
def test_the_wheel_of_this_platform_is_chosen(here, tag):
    chosen = choose_wheel(wheels(), "1.2.3", here)
    assert chosen is not None
    assert chosen.filename == f"uv-1.2.3-py3-none-{tag}.whl"


@pytest.mark.parametrize(
    ("here", "version"),
    [
        (Platform("manylinux", (2, 12), "x86_64"), "1.2.3"),
        (Platform("manylinux", (2, 36), "sparc64"), "1.2.3"),
        (GLIBC, "1.2.4"),
    ],
)
def test_no_wheel_of_another_version_or_for_an_unknown_or_old_platform_is_chosen(here, version):
    assert choose_wheel(wheels(version), "1.2.3", here) is None


def test_json_page_is_read():
    page = {
        "files": [
            {"filename": "a.whl", "url": "../f/a.whl", "hashes": {"sha256": "aa"}, "yanked": False},
            {"filename": "b.whl", "url": "https://other.example/b.whl", "hashes": {}},
            {"filename": "c.whl", "url": "c.whl", "hashes": {}, "yanked": "broken"},
        ]
    }
    assert parse_index(json.dumps(page).encode(), JSON_INDEX, PAGE) == [
        Wheel("a.whl", "https://index.example/simple/f/a.whl", "aa"),
        Wheel("b.whl", "https://other.example/b.whl", ""),
    ]


def test_html_page_is_read():
    page = b"""<!DOCTYPE html><html><body><a href="/">up</a>
      <a href="../../f/a%2Bb.whl#sha256=aa" data-requires-python="&gt;=3.8">a+b.whl</a><br/>
      <a data-yanked="broken" href="c.whl#sha256=cc">c.whl</a><a name="x">d</a>
      </body></html>"""
    assert parse_index(page, "text/html; charset=utf-8", PAGE)[1:] == [
        Wheel("a+b.whl", "https://index.example/f/a%2Bb.whl", "aa")
    ]


@pytest.mark.parametrize(("sha256", "words"), [("0" * 64, "wrong SHA-256"), ("", "no SHA-256")])
def test_a_wheel_that_cannot_be_checked_is_not_used(tmp_path, sha256, words):
    get = an_index(a_wheel(), sha256)
    with pytest.raises(FetchError, match=words):
        fetch_uv("1.2.3", tmp_path, IndexSettings("https://index.example/simple"), GLIBC, get)
    assert list(tmp_path.iterdir()) == []


def test_the_next_index_is_asked_when_the_first_fails(tmp_path):
    answers = an_index(a_wheel(), hashlib.sha256(a_wheel()).hexdigest())

    def get(url):
        if "broken" in url:
            raise OSError("connection refused")
        return answers(url)

    settings = IndexSettings("https://broken.example", ("https://index.example/simple",))
    fetch_uv("1.2.3", tmp_path, settings, GLIBC, get)
    assert [file.name for file in tmp_path.iterdir()] == ["uv"]
    assert (tmp_path / "uv").read_bytes() == b"program"
    assert (tmp_path / "uv").stat().st_mode & 0o777 == 0o755


def test_the_message_says_what_each_index_answered_and_hides_the_password(tmp_path):
    def get(url):
        if "broken" in url:
            raise OSError("connection refused")
        return b"", "text/html"

    settings = IndexSettings("https://me:secret@broken.example", ("https://empty.example",))
    with pytest.raises(FetchError) as caught:
        fetch_uv("1.2.3", tmp_path, settings, GLIBC, get)
    message = str(caught.value)
    assert "broken.example: connection refused" in message
    assert "empty.example has no uv 1.2.3" in message
    assert "secret" not in message


def test_credentials_of_the_url_are_sent_to_that_host_only(monkeypatch):
    seen = []

    class Response(io.BytesIO):
        headers = EmailMessage()

    def urlopen(request, **_):
        seen.append((request.full_url, request.unredirected_hdrs.get("Authorization")))
        return Response(b"")

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    index = Index()
    for url in [
        "https://me:a%40b@index.example/simple/uv/",
        "https://index.example/files/uv.whl",
        "https://files.example/uv.whl",
    ]:
        index.get(url)
    assert seen == [
        ("https://index.example/simple/uv/", "Basic bWU6YUBi"),
        ("https://index.example/files/uv.whl", "Basic bWU6YUBi"),
        ("https://files.example/uv.whl", None),
    ]
