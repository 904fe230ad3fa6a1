"""Keys for models, from files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from thermocline.daemon.errors import ConfigInvalid
from thermocline.daemon.llm.access import key_file, read_keys
from thermocline.daemon.llm.wire import Setup


@pytest.fixture
def key_text(tmp_path: Path):
    def write(content: bytes) -> Path:
        file = tmp_path / "keys"
        file.write_bytes(content)
        return file

    return write


def test_a_key_alone_is_for_the_main_model_and_several_go_by_provider(key_text):
    assert read_keys(None) == {}
    assert read_keys(key_text(b"sk-alone\n")) == {"": "sk-alone"}
    several = {"openai": "sk-1", "azure": {"api_key": "sk-2", "api_version": "v"}}
    assert read_keys(key_text(msgspec.json.encode(several))) == several


def test_anything_else_is_refused_without_showing_it(key_text):
    for content in (
        *(b"", b"sk-secret two", b'{"openai": 5}', b'{"openai": "sk-secret"', b"sk-\xff"),
    ):
        with pytest.raises(ConfigInvalid, match="expected a key and nothing else") as caught:
            read_keys(key_text(content))
        assert "secret" not in caught.value.message


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigInvalid, match=r"cannot read the models' keys in .*none: No such"):
        read_keys(tmp_path / "none")


def test_the_configured_file_comes_before_systemds_credential(tmp_path):
    (tmp_path / "llm-keys").write_text("k")
    env = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert key_file("/etc/key", env) == Path("/etc/key")
    assert key_file(None, env) == tmp_path / "llm-keys"
    assert key_file(None, {"CREDENTIALS_DIRECTORY": str(tmp_path / "x")}) is None
    assert key_file(None, {}) is None
    assert str(key_file("~/key", {})).startswith("/")


def test_a_place_that_cannot_be_looked_at_is_named(tmp_path):
    # A name that no disk takes is refused to every user, also to root.
    folder = tmp_path / ("x" * 300)
    with pytest.raises(ConfigInvalid, match=r"cannot read the models' keys in .*: File name too"):
        key_file(None, {"CREDENTIALS_DIRECTORY": str(folder)})
    with pytest.raises(ConfigInvalid, match="cannot find ~no-such-user/key: no user has"):
        key_file("~no-such-user/key", {})


def test_a_setup_goes_through_the_pipe_and_is_never_shown():
    setup = Setup({"openai": "sk-secret"}, "openai/m", "http://localhost", {"azure": "https://x"})
    assert msgspec.json.decode(msgspec.json.encode(setup), type=Setup) == setup
    assert "secret" not in repr(setup)
    assert "secret" not in f"{[setup]}"
