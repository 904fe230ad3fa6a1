"""Failures of a remote: their names, how long is waited, and what is no address."""

import json
import sqlite3
import ssl
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
import pytest
from libsql_client.client import LibsqlError

from thermocline.sync.failures import (
    QuotaSpent,
    Refused,
    RowTooLarge,
    SchemaMissing,
    SyncError,
    TryLater,
    Waiting,
    classify,
    from_answer,
    pause,
    retrying,
)
from thermocline.sync.ports import address

WHERE: Any = SimpleNamespace(
    ssl=True, host="db.example", port=443, is_ssl=True, real_url="https://x"
)


def reading(error: SyncError) -> tuple[type[SyncError], str]:
    return type(error), error.code


# The codes of an answer's body, with the status that they may come with.
CODES = [
    ("SQLITE_CONSTRAINT", 500, "UNIQUE constraint failed: t.id", Refused, "constraint"),
    ("SQLITE_CONSTRAINT_PRIMARYKEY", 200, "PRIMARY KEY", Refused, "constraint"),
    ("SQL_PARSE_ERROR", 400, "syntax error around L1:6", Refused, "sql"),
    ("SQL_INPUT_ERROR", 200, "ambiguous column name: id", Refused, "sql"),
    ("SQL_MANY_STATEMENTS", 400, "more than one statement", Refused, "sql"),
    ("SQL_NO_STATEMENT", 400, "does not contain any statement", Refused, "sql"),
    ("ARGS_INVALID", 200, "value for parameter ?2 not found", Refused, "sql"),
    ("ARGS_INVALID", 200, "string or blob too big", RowTooLarge, "too_large"),
    ("SQLITE_TOOBIG", 200, "string or blob too big", RowTooLarge, "too_large"),
    ("RESPONSE_TOO_LARGE", 400, "Response is too large", RowTooLarge, "too_large"),
    ("AUTH_JWT_INVALID", 401, "The JWT is invalid", Refused, "unauthorized"),
    ("AUTH_HTTP_HEADER_MISSING", 400, "no header", Refused, "unauthorized"),
    ("AUTH_FORBIDDEN", 403, "no write permission", Refused, "forbidden"),
    ("SQLITE_BUSY", 200, "database is locked", TryLater, "busy"),
    ("SQLITE_BUSY_SNAPSHOT", 500, "database is locked", TryLater, "busy"),
    ("TRANSACTION_TIMEOUT", 200, "the transaction took too long", TryLater, "busy"),
    ("TRANSACTION_BUSY", 200, "another transaction", TryLater, "busy"),
    ("STREAM_EXPIRED", 400, "the stream has expired", TryLater, "busy"),
    ("BLOCKED", 403, "reads are blocked; upgrade your plan", QuotaSpent, "quota"),
    ("BLOCKED", 200, "writes are blocked", QuotaSpent, "quota"),
    ("SQLITE_UNKNOWN", 500, "no such table: objects", SchemaMissing, "schema_missing"),
    ("SQLITE_UNKNOWN", 200, "no such table: objects", SchemaMissing, "schema_missing"),
    ("SQL_INPUT_ERROR", 200, "no such column: seq (at 7)", SchemaMissing, "schema_missing"),
    ("SQLITE_UNKNOWN", 200, "t has no column named seq", SchemaMissing, "schema_missing"),
    ("SQLITE_UNKNOWN", 200, "malformed JSON", Refused, "sql"),
    ("SQLITE_READONLY", 200, "attempt to write a readonly database", Refused, "forbidden"),
    ("SQLITE_CORRUPT", 200, "database disk image is malformed", Refused, "damaged"),
    ("SQLITE_FULL", 200, "database or disk is full", TryLater, "disk_full"),
    ("SQLITE_IOERR_WRITE", 500, "disk I/O error", TryLater, "disk_error"),
    ("UNKNOWN", 200, "a word of a later release", Refused, "sql"),
    ("SOMETHING_NEW", 503, "a word of a later release", TryLater, "server"),
    ("HRANA_PROTO_ERROR", 200, "Server did not return a result", TryLater, "not_json"),
    # Of an answer that is too long the server says no more.
    ("", 500, "Internal Error: `Could not execute batch`", RowTooLarge, "too_large"),
]


def test_a_code_decides_before_the_status():
    for code, status, message, kind, word in CODES:
        error = from_answer(status, code, message)
        assert reading(error) == (kind, word)
        assert message in error.message
        assert error.hint


STATUSES = [
    (400, Refused, "bad_request"), (401, Refused, "unauthorized"), (403, Refused, "forbidden"),
    (404, Refused, "not_found"), (405, Refused, "bad_request"), (408, TryLater, "timeout"),
    (413, RowTooLarge, "too_large"), (429, TryLater, "throttled"), (500, TryLater, "server"),
    (501, Refused, "bad_request"), (502, TryLater, "server"), (503, TryLater, "server"),
    (504, TryLater, "server"), (505, Refused, "bad_request"), (511, TryLater, "not_json"),
    (200, TryLater, "not_json"), (302, TryLater, "not_json"), (999, Refused, "bad_request"),
]  # fmt: skip


def test_without_a_code_the_status_decides():
    for status, kind, word in STATUSES:
        error = from_answer(status, "", "")
        assert reading(error) == (kind, word)
        assert error.message.endswith(f"HTTP status {status}")


def ssl_error(kind: type[ssl.SSLError]) -> aiohttp.ClientConnectorSSLError:
    return aiohttp.ClientConnectorSSLError(WHERE, kind(1, "[SSL] it broke"))


def untrusted() -> Exception:
    return aiohttp.ClientConnectorCertificateError(
        WHERE, ssl.SSLCertVerificationError(1, "certificate has expired")
    )


EXCEPTIONS = [
    (aiohttp.ClientConnectionError("gone"), TryLater, "offline"),
    (aiohttp.ClientConnectorError(WHERE, ConnectionRefusedError(111, "no")), TryLater, "offline"),
    (aiohttp.ClientConnectorDNSError(WHERE, OSError(-3, "no name")), TryLater, "offline"),
    (aiohttp.ClientOSError(104, "connection reset"), TryLater, "offline"),
    (aiohttp.ServerDisconnectedError(), TryLater, "offline"),
    (aiohttp.ClientPayloadError("answer cut off"), TryLater, "offline"),
    (aiohttp.ServerTimeoutError("read"), TryLater, "timeout"),
    (aiohttp.ConnectionTimeoutError("connect"), TryLater, "timeout"),
    (TimeoutError(), TryLater, "timeout"),
    (aiohttp.ClientResponseError(WHERE, (), message="bad status line"), TryLater, "not_json"),
    (json.JSONDecodeError("no", "<html>", 0), TryLater, "not_json"),
    (msgspec.DecodeError("no"), TryLater, "not_json"),
    (untrusted(), Refused, "tls"),
    (ssl_error(ssl.SSLError), Refused, "tls"),
    (ssl_error(ssl.SSLEOFError), TryLater, "offline"),
    (ssl.SSLCertVerificationError(1, "self-signed"), Refused, "tls"),
    (aiohttp.InvalidURL("http://["), Refused, "bad_request"),
    (ConnectionResetError(104, "reset"), TryLater, "offline"),
    (ZeroDivisionError("a fault of ours"), Refused, "bad_request"),
    (LibsqlError("UNIQUE constraint failed", "SQLITE_CONSTRAINT"), Refused, "constraint"),
]


def test_an_exception_is_known_by_its_class_an_ancestor_or_the_name_of_sqlite_s_error():
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError) as missing:
        connection.execute("SELECT * FROM nowhere")
    with pytest.raises(sqlite3.IntegrityError) as violated:
        connection.executescript("CREATE TABLE t (a PRIMARY KEY); INSERT INTO t VALUES (1), (1)")
    connection.close()
    for error, kind, word in [
        *EXCEPTIONS,
        (missing.value, SchemaMissing, "schema_missing"),
        (violated.value, Refused, "constraint"),
    ]:
        assert reading(classify(error)) == (kind, word)


def test_a_message_is_one_short_line_without_control_characters():
    error = from_answer(400, "", "a\x1b[31m\r\nb\u202e" + "x" * 5000)
    assert "\x1b" not in error.message
    assert "\n" not in error.message
    assert "\u202e" not in error.message
    assert len(error.message) < 400


def test_a_secret_that_the_server_repeats_does_not_come_through_nor_garbles_a_message():
    secret = "eyJ" + "s" * 600
    error = classify(LibsqlError(f"bad token {secret}", "AUTH_JWT_INVALID"), secret)
    assert "sss" not in error.message + repr(error) + str(error)
    error = classify(LibsqlError("Cannot connect to t", "SERVER_ERROR"), "t")
    assert "Cannot connect to [hidden]" in error.message


def test_a_pause_is_read_without_the_clock_of_this_device():
    for asked, seconds in [
        ("120", 120.0), (" 0 ", 0.0), ("Sat, 21 Nov 2026 04:02:00 GMT", 120.0),
        ("Sat, 21 Nov 2026 03:00:00 GMT", 0.0), ("Tue, 21 Nov 2056 03:00:00 GMT", 86_400.0),
        ("999999999", 86_400.0), ("-5", None), ("nan", None), ("1e9", None), ("٣", None),
        ("soon", None), ("", None),
    ]:  # fmt: skip
        assert pause(asked, "Sat, 21 Nov 2026 04:00:00 GMT") == seconds


def test_a_moment_says_nothing_without_a_date_to_compare_it_with():
    for date in ["", "no date", "Sat, 21 Nov 2026 04:00:00"]:
        assert pause("Sat, 21 Nov 2026 04:02:00 GMT", date) is None


LIMITS = [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]


class Top(Random):
    """Draws the highest number every time."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


class Tries:
    """A call that fails with each error in turn and then succeeds; it notes every wait."""

    def __init__(self, *errors: Exception) -> None:
        self.errors: Iterator[Exception] = iter(errors)
        self.told: list[tuple[str, float]] = []
        self.slept: list[float] = []

    async def __call__(self) -> str:
        for error in self.errors:
            raise error
        return "done"

    async def run(self, waiting: Waiting | None = None, random: Random | None = None) -> str:
        tenacious = retrying(
            waiting or Waiting(), sleep=self.sleep, before_wait=self.tell, random=random or Top()
        )
        return await tenacious(self)

    def tell(self, error: TryLater, seconds: float) -> None:
        assert len(self.slept) == len(self.told), "it is told before it sleeps"
        self.told.append((error.code, seconds))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_the_waits_double_from_five_seconds_to_five_minutes():
    tries = Tries(*[TryLater("offline")] * 8)
    assert await tries.run() == "done"
    assert tries.slept == LIMITS
    assert tries.told == [("offline", seconds) for seconds in LIMITS]


async def test_each_wait_is_drawn_from_all_of_its_range():
    tries = Tries(*[TryLater("offline")] * 2000)
    await tries.run(Waiting(first=8.0, longest=8.0), Random(4))
    assert all(0.0 <= seconds <= 8.0 for seconds in tries.slept)
    eighths = {int(seconds) for seconds in tries.slept}
    assert eighths == set(range(8))
    assert sum(tries.slept) / len(tries.slept) == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize(
    ("errors", "slept"),
    [
        # Others were asked for the same pause.
        (
            [TryLater("throttled", retry_after=77.0), TryLater("throttled", retry_after=0.5)],
            [77.0 + 5.0, 0.5 + 10.0],
        ),
        # A spent quota is left alone for an hour at least.
        (
            [QuotaSpent("quota"), QuotaSpent("quota", retry_after=9000.0)],
            [3600.0 + 5.0, 9000.0 + 10.0],
        ),
    ],
)
async def test_a_pause_that_was_asked_for_is_never_cut_short(errors, slept):
    tries = Tries(*errors)
    await tries.run()
    assert tries.slept == slept


@pytest.mark.parametrize(
    "error", [Refused("tls"), RowTooLarge("too_large"), SchemaMissing("schema_missing"), KeyError()]
)
async def test_what_does_not_pass_by_itself_is_raised_at_once(error):
    tries = Tries(TryLater("offline"), error)
    with pytest.raises(type(error)) as raised:
        await tries.run()
    assert raised.value is error
    assert len(tries.slept) == 1


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
