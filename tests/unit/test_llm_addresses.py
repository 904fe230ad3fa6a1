"""Where a caller's own endpoint may be."""

import pytest

from thermocline.daemon.errors import InvalidInput
from thermocline.daemon.llm.access import (
    is_allowed,
    is_insecure,
    is_named,
    parts_of,
    style_of,
    target_of,
)


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
