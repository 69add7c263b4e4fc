"""What the bootstrap learns from this machine's settings for pip and uv."""

from pathlib import Path

import pytest
from package_index import PUBLIC_INDEX, IndexSettings, read_settings, uv_environment

MIRROR = "https://user:secret@mirror.example/simple"
NO_FILES = {"PIP_CONFIG_FILE": "/dev/null"}


@pytest.fixture
def home(tmp_path):
    """A home folder without any configuration."""
    return tmp_path


def test_without_settings_the_public_index_is_asked(home):
    settings = read_settings(NO_FILES, home)
    assert settings == IndexSettings(PUBLIC_INDEX)
    assert settings.is_public


def test_pip_variables_are_carried_over_to_uv(home):
    environment = {
        **NO_FILES,
        "PIP_INDEX_URL": MIRROR,
        "PIP_EXTRA_INDEX_URL": "https://a.example https://b.example",
        "PIP_CERT": "/company.pem",
    }
    settings = read_settings(environment, home)
    assert not settings.is_public
    assert uv_environment(settings, environment) == {
        "UV_DEFAULT_INDEX": MIRROR,
        "UV_INDEX": "https://a.example https://b.example",
        "SSL_CERT_FILE": "/company.pem",
    }


@pytest.mark.parametrize("place", [".config/pip/pip.conf", ".pip/pip.conf"])
def test_pip_configuration_files_are_read(home, place):
    file = home / place
    file.parent.mkdir(parents=True)
    file.write_text(f"[global]\nindex-url = {MIRROR}\n[install]\ncert = /company.pem\n")
    settings = read_settings({}, home)
    assert settings == IndexSettings(MIRROR, certificates="/company.pem")


def test_named_configuration_file_wins_over_the_home_folder(home):
    user, named = home / ".pip/pip.conf", home / "named.conf"
    user.parent.mkdir()
    user.write_text("[global]\nindex_url = https://weaker.example\n")
    named.write_text(f"[global]\nindex_url = {MIRROR}\n")
    assert read_settings({"PIP_CONFIG_FILE": str(named)}, home).index_url == MIRROR


def test_broken_configuration_file_is_skipped_with_a_word(home, capsys):
    file = home / ".pip/pip.conf"
    file.parent.mkdir()
    file.write_text("no section\n")
    assert read_settings({}, home).index_url == PUBLIC_INDEX
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_what_is_set_for_uv_stays_as_it_is(home, name):
    environment = {**NO_FILES, name: f"company={MIRROR}", "PIP_INDEX_URL": "https://pip.example"}
    settings = read_settings(environment, home)
    assert settings.index_url == MIRROR
    assert uv_environment(settings, environment, system_certificates=()) == {}


def test_system_certificates_serve_where_none_are_named(home):
    bundle = home / "bundle.crt"
    bundle.touch()
    absent = str(home / "absent.crt")
    assert uv_environment(IndexSettings(), {}, (absent, str(bundle))) == {
        "SSL_CERT_FILE": str(bundle)
    }
    assert uv_environment(IndexSettings(), {}, (absent,)) == {}


def test_certificates_of_the_environment_are_kept(home):
    environment = {**NO_FILES, "SSL_CERT_FILE": "/chosen.pem", "PIP_CERT": "/other.pem"}
    settings = read_settings(environment, home)
    assert settings.certificates == "/chosen.pem"
    assert uv_environment(settings, environment, (str(Path(__file__)),)) == {}
