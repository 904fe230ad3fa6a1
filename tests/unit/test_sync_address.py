import pytest

from thermocline.sync.failures import Refused
from thermocline.sync.ports import address


def test_a_url_says_where_to_send_to():
    for url, sent_to in [
        ("libsql://db-me.turso.io", "https://db-me.turso.io"),
        (" https://db-me.turso.io/ ", "https://db-me.turso.io/"),
        ("HTTPS://host:8443/some/prefix", "https://host:8443/some/prefix"),
        ("libsql://[2001:db8::1]:8080", "https://[2001:db8::1]:8080"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://127.9.9.9:1", "http://127.9.9.9:1"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ]:
        assert address(url).geturl() == sent_to


def test_what_is_no_place_is_refused_without_showing_its_secrets():
    for url in [
        "",
        "db-me.turso.io",
        "wss://db-me.turso.io",
        "file:///var/replica.db",
        "https://",
        "https://host:notaport",
        "https://host:99999",
        "https://[broken",
        "libsql://host?authToken=geheim",
        "https://geheim@host",
        "https://me:geheim@host",
        "https://host/#geheim",
    ]:
        with pytest.raises(Refused) as refused:
            address(url)
        assert refused.value.code == "bad_request"
        assert "geheim" not in refused.value.message + refused.value.hint


def test_nothing_goes_to_another_machine_in_clear():
    for host in ["10.0.0.2:8080", "example.org", "localhost.example.org"]:
        with pytest.raises(Refused) as refused:
            address(f"http://{host}")
        assert refused.value.code == "tls"
