"""Where a model may be, and the keys for it."""

from pathlib import Path

import msgspec
import pytest

from thermocline.daemon.errors import ConfigInvalid, InvalidInput
from thermocline.daemon.llm.access import (
    is_allowed,
    is_insecure,
    is_named,
    key_file,
    parts_of,
    read_keys,
    style_of,
    target_of,
)
from thermocline.daemon.llm.wire import Setup


def test_what_is_no_address_of_a_server_is_refused_without_repeating_it():
    for url in [
        "", "localhost:8080", "ftp://localhost/x", "file:///etc/passwd", "unix:/run/x.sock",
        "http://", "http://user:secret@localhost/", "http://user@localhost/", "http://[::1",
        "http://localhost:99999/", "http://local host/", "http://localhost/\r\nX: y",
        "javascript:alert(1)",
    ]:  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            parts_of(url)
        assert caught.value.field == "llm_endpoint"
        assert "secret" not in caught.value.message


def test_this_device_is_allowed_another_by_the_configuration_and_where_clouds_keep_keys_never():
    here = ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1")
    elsewhere = ("10.0.0.1", "192.168.1.7", "93.184.216.34", "2001:db9::1")
    nowhere = (
        "169.254.169.254", "169.254.0.1", "::ffff:169.254.169.254", "fe80::1%eth0", "fd00:ec2::254",
        "100.100.100.200", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255",
        "not an address",
    )  # fmt: skip
    for address in here + elsewhere + nowhere:
        assert is_allowed(address, anywhere=False) is (address in here)
        assert is_allowed(address, anywhere=True) is (address not in nowhere)


def test_a_host_is_named_as_a_whole():
    for url, hosts, named in [
        ("http://model.lan:8080/complete", ["model.lan"], True),
        ("http://Model.LAN:8080/complete", ["model.lan:8080"], True),
        ("http://model.lan:8081/complete", ["MODEL.lan:8080"], False),
        ("https://model.lan/complete", ["model.lan:443"], True),
        ("http://evil-model.lan/", ["model.lan"], False),
        ("http://model.lan.evil.org/", ["model.lan"], False),
        ("http://[2001:db8::1]:8080/", ["[2001:db8::1]"], True),
        ("http://model.lan/", [], False),
    ]:
        assert is_named(url, hosts) is named


def test_the_protocol_is_told_from_the_url():
    for url, style, target in [
        ("http://localhost:8080/complete", "plain", "http://localhost:8080/complete"),
        ("http://localhost:11434/v1", "openai", "http://localhost:11434/v1/chat/completions"),
        ("http://localhost:11434/v1/", "openai", "http://localhost:11434/v1/chat/completions"),
        (
            "http://localhost/v1/chat/completions#x",
            "openai",
            "http://localhost/v1/chat/completions",
        ),
        ("https://integrate.api.example/chat", "openai", "https://integrate.api.example/chat"),
        ("https://api.z.ai/chat", "openai", "https://api.z.ai/chat"),
        ("http://localhost/v10/x", "plain", "http://localhost/v10/x"),
    ]:
        assert style_of(url) == style
        assert target_of(url) == target


def test_plain_http_to_another_device_could_be_overheard():
    for url, insecure in [
        ("https://api.example.org/v1", False), ("http://localhost:11434", False),
        ("http://127.0.0.1/v1", False), ("http://[::1]/v1", False), ("http://model.lan/v1", True),
        ("http://192.168.1.2/v1", True), ("http://localhost.evil.org/", True),
    ]:  # fmt: skip
        assert is_insecure(url) is insecure


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
