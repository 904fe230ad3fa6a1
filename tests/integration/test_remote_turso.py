"""What only a remote over HTTP has: tokens, restarts, and servers that are none."""

import asyncio
import gzip
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from daemon_process import until

from thermocline.sync.failures import QuotaSpent, Refused, RowTooLarge, SyncError, TryLater
from thermocline.sync.ports import SqlStatement, Usage
from thermocline.sync.row_format import Value
from thermocline.sync.turso import Limits, TursoRemote, connect

ONE = [SqlStatement("SELECT 1")]
TABLE = [SqlStatement("CREATE TABLE IF NOT EXISTS t (a PRIMARY KEY)")]
COUNT = [SqlStatement("SELECT count(*) FROM t")]
RESULT = {"result": {"cols": [], "rows": [], "affected_row_count": 0}}
Connect = Callable[..., Awaitable[TursoRemote]]
Serve = Callable[..., Awaitable[str]]


@pytest.fixture
async def connected() -> AsyncIterator[Connect]:
    """`connect`, with everything closed after the test."""
    async with AsyncExitStack() as stack:

        async def make(*args: Any, **options: Any) -> TursoRemote:
            remote = await connect(*args, **options)
            stack.push_async_callback(remote.close)
            return remote

        yield make


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """`serve(handler)` runs a web server that answers every call so, and gives its URL."""
    async with AsyncExitStack() as stack:

        async def start(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> str:
            runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            listener = socket.create_server(("127.0.0.1", 0))
            await web.SockSite(runner, listener).start()
            return f"http://127.0.0.1:{listener.getsockname()[1]}"

        yield start


def answering(*args: Any, **options: Any) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(*args, **options)

    return handler


async def value(remote: TursoRemote, statements: list[SqlStatement]) -> Value:
    return (await remote.batch(statements))[-1].rows[0][0]


async def failure(remote: TursoRemote, statements: list[SqlStatement] = ONE) -> SyncError:
    with pytest.raises(SyncError) as raised:
        await remote.batch(statements)
    return raised.value


@pytest.mark.parametrize("statements", [TABLE, TABLE + COUNT], ids=["alone", "in a batch"])
async def test_only_a_good_token_opens_the_database(
    connected, sqld_with_auth, make_sqld, statements
):
    stranger = make_sqld(auth=True)
    tokens = {
        "good": sqld_with_auth.token(),
        "none": None,
        "nonsense": "nonsense",
        "of another": stranger.token(),
        "expired": sqld_with_auth.token(expires_in=-3600),
        "reading": sqld_with_auth.token(read_only=True),
    }
    errors = {}
    for name, token in tokens.items():
        remote = await connected(sqld_with_auth.url, token)
        try:
            await remote.batch(statements)
        except Refused as error:
            errors[name] = error
    assert all("token" in error.hint for error in errors.values())
    assert not any(str(tokens[name]) in str(error) for name, error in errors.items())
    assert {name: error.code for name, error in errors.items()} == {
        "none": "unauthorized",
        "nonsense": "unauthorized",
        "of another": "unauthorized",
        "expired": "unauthorized",
        "reading": "forbidden",
    }
    reader = await connected(sqld_with_auth.url, tokens["reading"])
    assert await value(reader, COUNT) == 0


@pytest.mark.parametrize("token", ["two\r\nlines", "two words", "schlüssel", "\0"])
async def test_a_token_that_can_be_none_is_refused_without_showing_it(token):
    with pytest.raises(Refused) as refused:
        await connect("https://db.example", token)
    assert refused.value.code == "unauthorized"
    assert token not in str(refused.value)


async def test_the_token_is_nowhere_to_be_read(connected, serve, caplog):
    token = "eyJhbGci." + "geheim" * 100

    async def repeat(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {token}"
        said = f"wrong {request.headers['Authorization']}"
        return web.json_response({"message": said, "code": "AUTH_JWT_INVALID"}, status=401)

    with caplog.at_level(logging.DEBUG):
        remote = await connected(await serve(repeat), token)
        error = await failure(remote)
    assert error.code == "unauthorized"
    shown = f"{error} {error!r} {error.hint} {remote!r} {vars(error)} {caplog.text}"
    assert "geheim" not in shown
    assert error.__cause__ is None
    assert error.__suppress_context__


async def test_without_a_token_no_header_is_sent_and_a_path_is_kept(connected, serve):
    seen: list[tuple[str, str, bool, str | None]] = []

    async def note(request: web.Request) -> web.Response:
        headers = request.headers
        length = headers.get("Content-Length")
        seen.append((request.method, request.path, "Authorization" in headers, length))
        return web.json_response(RESULT)

    remote = await connected(await serve(note) + "/some/prefix/")
    await remote.batch(ONE)
    await failure(remote, ONE + ONE)
    assert [call[:3] for call in seen] == [
        ("POST", "/some/prefix/v2/pipeline", False),
        ("POST", "/some/prefix/v2/pipeline", False),
    ]
    assert all(length for *_, length in seen)


@pytest.mark.parametrize("known", ["/v1/", "/v2/"])
async def test_the_older_path_is_tried_after_a_404_and_the_one_that_answers_is_remembered(
    connected, serve, sqld, known
):
    paths: list[str] = []

    async def forward(request: web.Request) -> web.Response:
        paths.append(request.path)
        if not request.path.startswith(known):
            return web.Response(status=404)
        async with (
            aiohttp.ClientSession() as session,
            session.post(sqld.url + request.path, data=await request.read()) as response,
        ):
            return web.Response(body=await response.read(), content_type="application/json")

    remote = await connected(await serve(forward))
    for statements in (TABLE, COUNT, COUNT + COUNT):
        await remote.batch(statements)
    old = ["/v2/pipeline", "/v1/execute", "/v1/execute", "/v1/batch"]
    assert paths == (old if known == "/v1/" else ["/v2/pipeline"] * 3)
    # The server is replaced by one that knows the other path alone.
    known = "/v2/" if known == "/v1/" else "/v1/"
    assert await value(remote, COUNT) == 0
    assert await value(remote, COUNT + COUNT) == 0


@pytest.mark.parametrize("without_path", ["/v1/", "/v2/"])
async def test_every_answer_is_counted_as_the_account_is_charged(
    connected, make_sqld, without_path
):
    sqld = make_sqld(without_path=without_path).start()
    used: list[Usage] = []
    remote = await connected(sqld.url, count=used.append)
    await remote.batch(TABLE)
    inserts = [SqlStatement("INSERT INTO t VALUES (?)", (number,)) for number in range(50)]
    await remote.batch(inserts)
    await remote.batch([SqlStatement("INSERT INTO t VALUES (7777)")])
    await remote.batch([SqlStatement("SELECT a FROM t WHERE a > 25")])
    assert (await failure(remote, [*COUNT, inserts[0]])).code == "constraint"
    total = sum(used, start=Usage())
    assert total.rows_written > 100
    # The server adds to its account a moment after the answer.
    counted = (total.rows_read, total.rows_written)
    await until(lambda: sqld.cost() == counted, f"{counted} is on the account")
    # The exact number depends on how long the statements took.
    assert min(total.bytes_sent, total.bytes_received) > 300


async def test_a_server_that_is_away_is_missed_until_it_is_back(connected, sqld):
    remote = await connected(sqld.url)
    await remote.batch(TABLE)
    sqld.stop()
    for _ in range(2):
        error = await failure(remote, COUNT)
        assert (type(error), error.code) == (TryLater, "offline")
    sqld.start()
    assert await value(remote, COUNT) == 0


async def test_a_restart_between_two_calls_goes_unnoticed(connected, sqld):
    remote = await connected(sqld.url)
    await remote.batch(TABLE)
    for _ in range(2):
        # Several connections are open, and every one of them is dead afterwards.
        await asyncio.gather(*[remote.batch(COUNT) for _ in range(5)])
        sqld.restart()
        assert await value(remote, COUNT) == 0


async def test_a_frozen_server_is_not_waited_for_without_end(connected, sqld):
    remote = await connected(sqld.url, limits=Limits(total=0.4, read=0.2))
    await remote.batch(TABLE)
    sqld.pause()
    error = await failure(remote)
    assert (type(error), error.code) == (TryLater, "timeout")
    sqld.resume()
    assert await value(remote, COUNT) == 0


HTML = "<html>Welcome to the hotel; <form>log in</form></html>"
FAULT = '{"type": "error", "error": {"message": "broken", "code": %s}}'
BLOCKED = '"BLOCKED"'
PRETENDERS = [
    (answering(text=HTML, content_type="text/html"), TryLater, "not_json"),
    (answering(text=HTML, content_type="application/json"), TryLater, "not_json"),
    (answering(text="", content_type="application/json"), TryLater, "not_json"),
    (answering(text="[1, 2]", content_type="application/json"), TryLater, "not_json"),
    (answering(body=b"x?", headers={"Content-Encoding": "deflate"}), TryLater, "not_json"),
    (answering(text='{"ok": true}', content_type="application/json"), TryLater, "not_json"),
    (answering(text='{"result": 7}', content_type="application/json"), TryLater, "not_json"),
    (answering(text='{"result": {"rows": 1}}'), TryLater, "not_json"),
    (answering(text='{"results": []}'), TryLater, "not_json"),
    (answering(text='{"results": [{"type": "ok"}]}'), TryLater, "not_json"),
    (answering(text='{"results": [{"type": "error", "error": 7}]}'), TryLater, "not_json"),
    (answering(text=f'{{"results": [{FAULT % "null"}]}}'), TryLater, "server"),
    (answering(text=f'{{"results": [{FAULT % BLOCKED}]}}'), QuotaSpent, "quota"),
    (answering(text="[" * 100_000, content_type="application/json"), TryLater, "not_json"),
    (answering(text=HTML, content_type="text/html", status=511), TryLater, "not_json"),
    (answering(text=HTML, content_type="text/html", status=502), TryLater, "server"),
    (answering(text="no database here", status=404), Refused, "not_found"),
    (answering(text='{"message": "quota", "code": "BLOCKED"}'), QuotaSpent, "quota"),
    (answering(text='{"error": "broken"}', status=500), TryLater, "server"),
]


@pytest.mark.parametrize(("handler", "kind", "code"), PRETENDERS)
async def test_whatever_answers_is_recognised(connected, serve, handler, kind, code):
    remote = await connected(await serve(handler))
    for statements in (ONE, ONE + ONE):
        error = await failure(remote, statements)
        assert (type(error), error.code) == (kind, code)
        assert "hotel" not in error.message


@pytest.mark.parametrize("status", [429, 503])
async def test_a_pause_that_is_asked_for_is_known(connected, serve, status):
    handler = answering(text="slow", status=status, headers={"Retry-After": "42"})
    error = await failure(await connected(await serve(handler)))
    assert isinstance(error, TryLater)
    assert error.retry_after == 42.0


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed_with_the_token(connected, serve, status):
    visitors = []

    async def elsewhere(request: web.Request) -> web.Response:
        visitors.append(request.headers.get("Authorization"))
        return web.json_response(RESULT)

    target = await serve(elsewhere)
    portal = answering(status=status, headers={"Location": f"{target}/v1/execute"})
    error = await failure(await connected(await serve(portal), "token"))
    assert (error.code, visitors) == ("not_json", [])


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 65536)


def packed(_request: web.Request) -> Awaitable[web.Response]:
    body = gzip.compress(b" " * 30_000_000)
    return answering(body=body, headers={"Content-Encoding": "gzip"})(_request)


@pytest.mark.parametrize("handler", [endless, packed])
async def test_no_answer_can_fill_the_memory(connected, serve, handler):
    remote = await connected(await serve(handler), limits=Limits(answer_bytes=1_000_000))
    error = await failure(remote)
    assert isinstance(error, RowTooLarge)
    assert "1000000 bytes" in error.message


@pytest.mark.parametrize(
    ("spoken", "codes"),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"result"', {"offline"}),
        (b"HTTP/1.1 200 OK\r\n", {"offline"}),
        (b"", {"offline"}),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", {"not_json"}),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", {"not_json"}),
    ],
    ids=["cut off", "cut off early", "silent", "another protocol", "endless header"],
)
async def test_an_answer_that_breaks_off_or_is_no_http_passes_by_itself(connected, spoken, codes):
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(spoken)
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        remote = await connected(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        error = await failure(remote)
    assert isinstance(error, TryLater)
    assert error.code in codes


async def test_a_server_that_nobody_vouches_for_is_not_trusted(connected, sqld):
    remote = await connected(sqld.url.replace("http:", "https:"), "token")
    error = await failure(remote)
    assert (type(error), error.code) == (Refused, "tls")
