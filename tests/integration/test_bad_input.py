"""What careless, broken and hostile callers send: each gets its error, and nothing is stored.

Every kind of mistake is made once, over the socket.
"""

import itertools
import json
import select
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

DEEP = 10_000
CODES = {400: "invalid", 413: "too_large"}


@pytest.fixture(scope="module")
def call(shared_daemon: Any, calls_of: Any) -> Any:
    """Calls of one agent, which has a pair: each test leaves it as it was."""
    call = calls_of(shared_daemon, "careless")
    call.ok("PUT", "/api/kv/k", {"value": "so that the agent is there"})
    return call


@pytest.fixture(autouse=True)
def _nothing_stored_and_alive(call: Any) -> Iterator[None]:
    """After each test the daemon serves on, and its agent has no memory."""
    yield
    assert call("GET", "/api/health").body == {"status": "ok"}
    assert call.total() == 0


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


# Fields: those of a memory beside its text, the status, and the field that the error names.

FIELDS: list[tuple[dict[str, Any], int, str]] = [
    *(({"text": text}, 400, "text") for text in ("", "\t\r\n", "\u3000\u2003", "a\0b", 7, None)),
    ({"text": "é" * 32_769}, 413, "text"),
    *(({"importance": value}, 400, "importance") for value in (-1, 1.0001, 11, True, "0.5", None)),
    *(({"category": value}, 400, "category") for value in (
        "../..", "", " ", "/", "a/../b", "./a", "a//b", "a/ /b", "a\\b", "a\nb", "a\u2028b",
        "a\x7f", "_schema_version", "a/_b", 7,
    )),
    *(({"category": value}, 413, "category") for value in (
        "x" * 65, "/".join(["c" * 60] * 4), "q/" * 30_000,
    )),
    ({"type": "vague"}, 400, "type"),
    ({"tags": "a,b"}, 400, "tags"),
    ({"tags": [str(n) for n in range(33)]}, 400, "tags"),
    ({"tags": ["t" * 65]}, 413, "tags[0]"),
    *(({"tags": ["a", value]}, 400, "tags[1]") for value in (1, "a\0")),
    *(({"position": value}, 400, "position") for value in (-1, 2**53 + 1)),
    ({"metadata": {"urls": [str(n) for n in range(65)]}}, 400, "metadata.urls"),
    ({"metadata": {"commands": ["u" * 2049]}}, 413, "metadata.commands[0]"),
    ({"metadata": {"paths": ["/ok/ok", "/a\0b"]}}, 400, "metadata.paths[1]"),
    ({"data": "d" * 65_600}, 413, "data"),
    *(({"expires": value}, 400, "expires") for value in (
        "yesterday", "0d", "0s", 0, -1, 3_600, "3600", "2020-01-01", "-7d", "7", "7x", "d", "7dd",
        "7 days", "9" * 15 + "y", "9" * 500 + "d", "1d" * 60, 1e300, True, "٧d",
    )),
    ({"expires": "7d", "ttl": "7d"}, 400, "ttl"),
    *(({"created_at": value}, 400, "created_at") for value in (
        -1, 253_402_300_800, 1_700_000_000_000, True, "", "yesterday", "2026", "2026-13-01",
        "1969-12-31", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9" * 10_000,
        "١٧٠٠٠٠٠٠٠٠",
    )),
    *(({name: "s" * 4001}, 413, name) for name in ("subject", "outcome", "event", "source")),
    ({"subject": "a\0"}, 400, "subject"),
    # Fields that a caller cannot give, or gives twice.
    *(({name: "x"}, 400, name) for name in ("id", "score", "writer", "Text", "content")),
]  # fmt: skip


def test_a_field_that_is_wrong_is_named(call):
    for fields, status, field in FIELDS:
        memory = {"text": "x", **fields}
        refused = call("POST", "/api/memory", memory)
        assert refused.refusal() == (status, CODES[status], field), fields
        assert len(refused.body["error"]["message"]) < 200
        batch = {"memories": [{"text": "good"}, memory]}
        refused = call("POST", "/api/memory/batch", batch).refusal()
        assert refused == (status, CODES[status], f"memories[1].{field}")


def test_an_unknown_field_is_refused_in_every_body(call):
    batch = "/api/memory/batch"
    for method, target, body, field in (
        ("POST", batch, {"memories": [{"text": "x"}], "more": 1}, "more"),
        ("POST", batch, {"memories": [{"text": "x", "more": 1}]}, "memories[0].more"),
        ("POST", "/api/recall", {"query": "x", "more": 1}, "more"),
        ("POST", "/api/recall", {"query": "x", "weights": {"more": 1}}, "weights.more"),
        ("POST", "/api/metadata", {"text": "x", "more": 1}, "more"),
        ("PUT", "/api/memory/abcd", {"more": 1}, "more"),
        ("PUT", "/api/tree", {"path": "a", "more": 1}, "more"),
        ("PUT", "/api/kv/k", {"value": "v", "more": 1}, "more"),
        ("POST", "/api/tree/prune", {"dry_run": True}, "dry_run"),
        ("DELETE", "/api/kv/k", {"more": 1}, "more"),
    ):
        assert call(method, target, body).refusal() == (400, "invalid", field), target


# Bodies


SURROGATES: list[tuple[str, str, bytes]] = [
    ("POST", "/api/memory", rb'{"text": "the wrong way \udc00\ud800 round"}'),
    ("POST", "/api/memory", rb'{"text": "x", "data": {"\ud800": 1}}'),
    ("POST", "/api/memory", rb'{"text": "x", "\ud800": 1}'),
    ("POST", "/api/memory", rb'"\ud800"'),
    ("POST", "/api/memory/batch", rb'{"memories": [{"text": "good"}, {"text": "\ud800"}]}'),
    ("POST", "/api/recall", rb'{"query": "\ud800"}'),
    ("PUT", "/api/kv/k", rb'{"value": "\ud800"}'),
    ("PUT", "/api/hot/identity", rb'{"\ud800": "x"}'),
]


def test_half_of_a_surrogate_pair_is_refused_by_its_field_and_a_whole_one_is_a_character(call):
    for method, target, body in SURROGATES:
        assert call(method, target, raw=body).refusal()[:2] == (400, "invalid")

    def field(body: bytes) -> str | None:
        return call("POST", "/api/memory", raw=body).refusal()[2]

    assert field(rb'{"text": "\ud800"}') == "text"
    assert field(rb'{"text": "x", "tags": ["a", "\ud800"]}') == "tags[1]"
    assert field(rb'{"text": "x", "data": {"a": [{"b": "\ud800"}]}}') == "data.a[0].b"
    stored = call("POST", "/api/memory", raw=rb'{"text": "\ud83d\ude00"}').body
    assert stored["text"] == "\N{GRINNING FACE}"
    call.ok("DELETE", f"/api/memory/{stored['id']}")


def test_a_body_that_is_no_json_of_the_right_shape_is_refused(call):
    for body in [
        b"\xff", b'{"text": "\xed\xa0\x80"}', b'{"text": "\xc3"}',
        b"", b" ", b"{", b"nonsense", b"{'text': 1}", b'{"text": "x"} x', b"\0", b'{"text": "x",}',
    ]:  # fmt: skip
        assert call("POST", "/api/memory", raw=body).refusal() == (400, "invalid", None)
    for target in ("/api/memory", "/api/memory/batch", "/api/recall", "/api/metadata"):
        for body in (b"null", b"[]", b'"x"', b"1", b"true", b"[[]]"):
            assert call("POST", target, raw=body).refusal()[:2] == (400, "invalid"), target
    for body in [
        b"[" * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        b'{"text": "x", "data": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    ]:
        for method, target in (("POST", "/api/memory"), ("PUT", "/api/hot/identity")):
            assert call(method, target, raw=body).refusal()[:2] == (400, "invalid")
    for twice, field in [
        (b'{"text": "one", "text": "two"}', "text"),
        (b'{"text": "one", "te\\u0078t": "two"}', "text"),
        (b'{"text": "x", "data": {"a": 1, "a": 2}}', "a"),
        (b'{"memories": [], "memories": [{"text": "x"}]}', "memories"),
    ]:
        assert call("POST", "/api/memory", raw=twice).refusal() == (400, "invalid", field)


def test_nested_data_is_either_refused_or_can_be_read_back(call, eventually):
    edge = 0
    for levels in (1, 8, 31, 32, 33, 63, 64, 65, 100, 150, 200, 300, 400, 480, 500, 700, 900, 990):
        data = b"[" * levels + b"1" + b"]" * levels
        answered = call("POST", "/api/memory", raw=b'{"text": "deep", "data": %s}' % data)
        if answered.status == 201:
            edge = levels
            assert call.ok("GET", f"/api/memory/{answered.body['id']}")["data"] == deep(levels)
            call.ok("DELETE", f"/api/memory/{answered.body['id']}")
        else:
            assert answered.refusal()[:2] == (400, "invalid")
    assert edge >= 32
    status = lambda: call.ok("GET", "/api/status")["agents"][call.agent]  # noqa: E731
    eventually(lambda: not status()["state_files_pending"], "the state files are written")


def test_numbers_that_nothing_can_hold_are_refused_everywhere(call):
    for number in [
        b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"9" * 30, b"9" * 400, b"9" * 5000,
    ]:  # fmt: skip
        for name in (b"importance", b"created_at", b"expires", b"position", b"data"):
            body = b'{"text": "x", "%s": %s}' % (name, number)
            assert call("POST", "/api/memory", raw=body).refusal()[:2] == (400, "invalid")
        weights = b'{"query": "x", "weights": {"match": %s}}' % number
        assert call("POST", "/api/recall", raw=weights).refusal()[:2] == (400, "invalid")


# Agents and ids


def test_an_agent_id_that_names_no_folder_is_refused(call):
    for agent in ["../x", "a/b", "a b", "x" * 65, ".", "é", "a\tb", "*", "a,b"]:
        target = f"/api/memory?agent={quote(agent, safe='')}"
        refused = call("POST", target, {"text": "x"}, headers={"X-Agent": agent})
        assert refused.refusal() == (400, "invalid", "agent")
        refused = call("POST", "/api/memory", {"text": "x"}, headers={"X-Agent": agent})
        assert refused.refusal() == (400, "invalid", "agent")
        alone = f"{target}&agent={quote(agent, safe='')}"
        assert call("POST", alone, {"text": "x"}).refusal()[1:] == ("invalid", "agent")


@pytest.mark.parametrize("target", ["/api/memory?agent=", "/api/memory?agent"])
def test_an_empty_agent_id_does_not_mean_the_default_agent(call, calls_of, shared_daemon, target):
    before = calls_of(shared_daemon).total()
    refused = call("POST", target, {"text": "x"}, headers={"X-Agent": ""})
    assert refused.refusal() == (400, "invalid", "agent")
    assert calls_of(shared_daemon).total() == before


def test_bytes_that_are_no_utf8_in_the_agents_header_are_refused(wire):
    for query in (b"", b"?agent=x"):
        connection = wire()
        connection.send(
            b"GET /api/memory%s HTTP/1.1\r\nHost: x\r\nX-Agent: \xff\xfe\r\n\r\n" % query
        )
        assert connection.answer().refusal() == (400, "invalid", "agent")


def test_an_agent_that_was_never_stored_for_is_empty_and_not_made(calls_of, shared_daemon):
    call = calls_of(shared_daemon, "nobody")
    for target in ("/api/memory", "/api/cold", "/api/cold?query=x", "/api/kv"):
        assert call.ok("GET", target) == {"results": [], "total": 0}
    assert call.ok("GET", "/api/memory/search?q=x") == {"results": []}
    assert call.ok("GET", "/api/history") == {"results": []}
    assert call.ok("GET", "/api/tree")["nodes"] == 1
    assert call.ok("GET", "/api/hot")["size_bytes"] < 200
    assert call.ok("GET", "/api/metrics")["total_stored"] == 0
    assert call.ok("GET", "/api/memory/stats")["warm"]["count"] == 0
    assert call.ok("GET", "/api/graph?entity=Ana")["found"] is False
    assert call.ok("GET", "/api/upkeep")["agent"] == call.agent
    assert call.ok("GET", "/api/sync")["queued"] == 0
    found = call.ok("POST", "/api/recall", {"query": "x"})
    assert found["results"] == []
    assert "yet" in found["why"]
    assert call.agent in found["why"]
    assert not shared_daemon.folder(call.agent).exists()


def test_what_changes_or_forgets_an_agent_that_was_never_stored_for_is_refused(
    calls_of, shared_daemon
):
    call = calls_of(shared_daemon, "nobody")
    for method, target in (
        ("DELETE", "/api/kv/key"), ("POST", "/api/memory/tidy"), ("POST", "/api/tree/prune"),
        ("GET", "/api/devices"), ("POST", "/api/sync"), ("GET", "/api/backup"),
        ("GET", "/api/export"),
    ):  # fmt: skip
        assert call(method, target).refusal() == (404, "not_found", "agent"), target
    assert call("DELETE", f"/api/agents/{call.agent}").status == 404
    assert not shared_daemon.folder(call.agent).exists()


def test_an_unknown_id_key_or_category_is_not_found(call):
    for key in (
        "0123456789abcdef", "abc", "%00", "a%2F..%2Fb", "'%20OR%201=1", "x" * 3000, "%25",
    ):  # fmt: skip
        target = f"/api/memory/{key}"
        for refused in (
            call("GET", target), call("PUT", target, {"text": "x"}), call("DELETE", target),
            call("POST", f"{target}/reinforce"),
        ):  # fmt: skip
            assert refused.refusal() == (404, "not_found", "id"), key
    for method, target, field in (
        ("GET", "/api/kv/other", "key"), ("DELETE", "/api/kv/other", "key"),
        ("DELETE", "/api/tree?path=none", "path"), ("DELETE", "/api/hot/task?name=none", "name"),
    ):  # fmt: skip
        assert call(method, target).refusal() == (404, "not_found", field)


# Batches


def test_a_batch_holds_1_to_500_memories(call):
    for count in (0, 501, 5000):
        memories = [{"text": f"m{number}"} for number in range(count)]
        refused = call("POST", "/api/memory/batch", {"memories": memories})
        assert refused.refusal() == (400, "invalid", "memories")
    stored = call.ok("POST", "/api/memory/batch", {"memories": memories[:500]})["results"]
    assert len({memory["id"] for memory in stored}) == call.total() == 500
    for memory in stored:
        call.ok("DELETE", f"/api/memory/{memory['id']}")


# Queries


# The call, and the parameter that the error names.
QUERIES = [
    *(
        (f"/api/memory?{query}", query.partition("=")[0] or None)
        for query in (
            "limit=0", "limit=abc", "limit=501", f"limit={'9' * 30}", "limit=5&limit=6",
            "offset=10000001", "order=sideways", "tier=boiling", "archived=maybe", "until=-1",
            "min_importance=nan", "category=..", "category=%00", "unknown=1", "Limit=1", "=",
        )
    ),
    ("/api/memory?type=vague", "type[0]"),
    ("/api/recall", "query"),
    ("/api/recall?query=x&limit=101", "limit"),
    ("/api/recall?query=x&weights=1", "weights"),
    ("/api/recall?query=" + "x" * 8000 + "&query=y", "query"),
    ("/api/memory/search?q=x&topK=101", "topK"),
    ("/api/memory/search?q=x&topk=1", "topk"),
    ("/api/memory?minImportance=11", "minImportance"),
    ("/api/memory?minImportance=x", "minImportance"),
    ("/api/context?userId=..%2Fx", "userId"),
    ("/api/kv?limit=0", "limit"),
    ("/api/events?kinds=x", "kinds"),
    *((f"/api/{path}?x=1", "x") for path in ("hot", "openapi.json", "tree/text", "memory/abcd")),
]  # fmt: skip


def test_a_parameter_that_is_wrong_is_named(call):
    for target, field in QUERIES:
        assert call("GET", target).refusal() == (400, "invalid", field)


def test_a_recall_that_asks_for_the_impossible_is_refused(call):
    for more in [
        {"query": None}, {"query": 1}, {"query": "x" * 8193}, {"limit": 0}, {"limit": 101},
        {"limit": "5"}, {"limit": True}, {"types": ["fact"]}, {"types": "semantic"},
        {"category": "../.."}, {"weights": {"match": -1}}, {"weights": {"match": 101}},
        {"weights": {"match": 0, "recency": 0, "importance": 0}}, {"weights": {"match": "1"}},
        {"mode": "magic"}, {"since": "soon"}, {"until": True},
    ]:  # fmt: skip
        assert call("POST", "/api/recall", {"query": "x", **more}).refusal()[:2] == (400, "invalid")


def test_no_query_breaks_recall(call):
    for query in [
        "", " ", '"', '""', "'; DROP TABLE memories; --", "a AND", "NEAR(a b, 1)",
        "* ^ - + : ( ) { }", "text:x", "\0", "x\0y", "%", "\u202e\u200b", "a" * 8192,
        " ".join("abcdefghij"[n % 10] + str(n) for n in range(1500)), "世" * 2000, "\U0010ffff",
    ]:  # fmt: skip
        found = call.ok("POST", "/api/recall", {"query": query})
        assert found["results"] == []
        assert found["why"]


# Paths and methods


def test_a_path_or_a_method_that_does_not_exist_is_refused(call):
    codes = {400: "invalid", 404: "not_found", 405: "method_not_allowed"}
    nowhere = (
        "/", "/api", "/api/nothing", "/API/memory", "/api/memory/a/b/c", "/../../etc/passwd",
        "/api/../etc/passwd", "//", "/" + "a" * 8000,
    )  # fmt: skip
    for method, target, status in [
        *(("GET", target, 404) for target in nowhere),
        *((method, "/api/memory", 405) for method in ("PATCH", "DELETE", "OPTIONS", "TRACE")),
        ("POST", "/api/memory/abcd", 405), ("GET", "/api/memory/abcd/reinforce", 405),
        ("PUT", "/api/status", 405), ("BREW", "/api/memory", 400), ("GET", "*", 400),
        ("OPTIONS", "*", 404), ("CONNECT", "localhost:1", 404),
        ("GET", "http://[nonsense/api/status", 400), ("GET", "nonsense", 400),
    ]:  # fmt: skip
        assert call(method, target).refusal()[:2] == (status, codes[status]), (method, target)


def test_what_a_path_takes_instead_is_told(call):
    refused = call("PATCH", "/api/memory")
    assert refused.headers["allow"] == "GET, HEAD, POST"
    assert "GET" in refused.body["error"]["message"]


def test_a_path_that_is_no_utf8_and_an_event_id_that_is_no_number_are_refused(call, wire):
    for part in ["%FF", "%ED%A0%80", "%C3%28", "%C0%AE%C0%AE"]:
        assert call("PUT", f"/api/kv/{part}", {"value": "v"}).refusal()[:2] == (400, "invalid")
        assert call("GET", f"/api/memory/{part}").refusal()[:2] == (400, "invalid")
    raw = (b"/api/kv/\xff", b"/\xff\xfe", b"/api/memory?category=\xff", b"/\xc3\xa9")
    ids = ["x", "-1", "1.5", "²", "٣", "9" * 40, ""]
    for target, header, statuses in (
        *((target, b"", {400, 404}) for target in raw),
        *((b"/api/events", b"Last-Event-ID: %s\r\n" % one.encode(), {400}) for one in ids),
    ):
        connection = wire()
        connection.send(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n")
        assert connection.answer().refusal()[0] in statuses


# The wire


REQUEST = b"POST /api/memory HTTP/1.1\r\nHost: x\r\nX-Agent: %s\r\n"


def begin(call: Any) -> bytes:
    return REQUEST % call.agent.encode()


def test_what_is_no_http_gets_an_error_in_json(wire):
    for data in [
        b"\r\n\r\nnonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 32 + b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /api/status HTTP/9.9\r\n\r\n",
        *(b"GET /api/health%s\r\nHost: x\r\n\r\n" % v for v in (b"", b" HTTP/0.9", b" HTTP/2.0")),
        b"GET /api/status HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /api/status HTTP/1.1\r\nA\0: b\r\n\r\n",
        b"GET /api/status HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
        b'{"text": "just JSON"}\n',
        b"\0" * 100,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]:
        connection = wire()
        connection.send(data)
        assert connection.answer().refusal()[:2] == (400, "invalid")
        assert connection.closed()


# What follows the head of a store, and whether the connection ends with the answer.
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BODIES: list[tuple[tuple[int, str], bytes, bool]] = [
    # Lengths that make no sense.
    *(((400, "invalid"), headers + b"\r\n" + b'{"text":"x"}', True) for headers in (
        b"Content-Length: nonsense\r\n", b"Content-Length: -1\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: " + b"9" * 40 + b"\r\n",
        b"Content-Length: 0x10\r\n", b"Transfer-Encoding: nonsense\r\n",
        CHUNKED + b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked, nonsense\r\n",
    )),
    # Chunks that make none.
    *(((400, "invalid"), CHUNKED + b"\r\n" + chunks, False) for chunks in (
        b"zz\r\nx", b"-5\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloworld\r\n0\r\n\r\n",
        b"F" * 20 + b"\r\nx",
    )),
    # Other bytes than the head says.
    ((400, "invalid"), b'Content-Length: 3\r\n\r\n{"text": "x"}', False),
    *(((400, "invalid"), b"Content-Encoding: %s\r\nContent-Length: 4\r\n\r\nabcd" % encoding, False)
      for encoding in (b"gzip", b"deflate", b"br", b"nonsense")),
    # More than a body may have.
    *(((413, "too_large"), b"Content-Length: %d\r\n\r\n" % size + b" " * size, False)
      for size in (1_048_577, 2_000_000, 40_000_000)),
    ((413, "too_large"), CHUNKED + b"\r\n" + (b"10000\r\n" + b" " * 65_536 + b"\r\n") * 20, False),
    ((413, "too_large"), b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", False),
]  # fmt: skip


def test_a_body_that_makes_no_sense_or_is_too_large_is_refused(call, wire):
    for refusal, rest, ends in BODIES:
        connection = wire()
        connection.send(begin(call) + rest)
        assert connection.answer().refusal() == (*refusal, None), rest[:100]
        assert not ends or connection.closed(), rest[:100]


def test_a_small_body_that_unpacks_beyond_the_limit_is_refused(call, wire):
    packed = zlib.compress(b" " * 50_000_000)
    connection = wire()
    length = b"Content-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(packed)
    connection.send(begin(call) + length + packed)
    assert connection.answer().refusal()[:2] in {(413, "too_large"), (400, "invalid")}


def test_a_chunked_body_is_a_body_like_any_other(call, wire):
    connection = wire()
    connection.send(begin(call) + b"Transfer-Encoding: chunked\r\n\r\n5\r\n")
    connection.send(b'{"tex\r\n7;note=1\r\nt":"ok"\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n')
    stored = connection.answer()
    assert stored.status == 201
    call.ok("DELETE", f"/api/memory/{stored.body['id']}")


def test_a_body_at_the_limit_is_read(call):
    data = json.dumps({"text": "x", "category": ".."}).encode()
    refused = call("POST", "/api/memory", raw=data + b" " * (1_048_576 - len(data)))
    assert refused.refusal() == (400, "invalid", "category")


def test_a_head_that_is_too_large_is_refused(wire):
    for head in [
        b"GET /api/status HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET /api/status HTTP/1.1\r\n"
        + b"".join(b"X%d: a\r\n" % n for n in range(2000))
        + b"\r\n",
        b"GET /api/memory?url=" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/status HTTP/1.1\r\n" + b"a" * 100_000,
        b"a" * 1_000_000,
    ]:
        connection = wire()
        connection.send(head)
        refused = connection.answer()
        assert refused.refusal()[:2] in {(431, "too_large"), (400, "invalid")}
        if b"HTTP" in head:
            assert refused.refusal()[:2] == (431, "too_large")


def test_a_body_cut_off_half_way_stores_nothing(call, wire, eventually):
    for data in (b"", b'{"text": ', b'{"text": "x"}'):
        connection = wire()
        connection.send(begin(call) + b"Content-Length: 100\r\n\r\n" + data)
        connection.close()
    for data in (b"5\r\n{", b"d\r\n" + b'{"text": "x"}' + b"\r\n"):
        connection = wire()
        connection.send(begin(call) + b"Transfer-Encoding: chunked\r\n\r\n" + data)
        connection.close()
    eventually(lambda: connections(call) <= 1, "the daemon lets go of them")


def connections(call: Any) -> int:
    return int(call.ok("GET", "/api/status")["connections"])


def test_requests_in_one_go_are_answered_in_order(wire):
    connection = wire()
    kinds = [b"/api/health", b"/api/nothing", b"/api/kv/x", b"/api/health"] * 50
    for target in kinds:
        connection.send(b"GET %s HTTP/1.1\r\nHost: x\r\nX-Agent: none\r\n\r\n" % target)
    found = [connection.answer().status for _ in kinds]
    assert found == [200, 404, 404, 200] * 50


def test_a_request_behind_one_that_is_refused_is_not_taken_for_its_body(call, wire):
    connection = wire()
    second = begin(call) + b'Content-Length: 13\r\n\r\n{"text": "x"}'
    connection.send(begin(call) + b"Content-Length: %d\r\n\r\n" % len(second) + second)
    assert connection.answer().refusal()[:2] == (400, "invalid")
    connection.send(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert connection.answer().body == {"status": "ok"}


def test_head_answers_as_get_without_a_body(wire):
    for target, status in (("/api/health", 200), ("/api/nothing", 404), ("/api/events", 200)):
        connection = wire()
        connection.send(f"HEAD {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        found = connection.answer("HEAD")
        assert (found.status, found.text) == (status, "")
        assert connection.closed()


def test_expect_continue_is_answered_before_the_body_is_sent(call, wire):
    connection = wire()
    connection.send(begin(call) + b"Expect: 100-continue\r\nContent-Length: 14\r\n\r\n")
    assert connection.socket.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.send(b'{"text": "ok"}')
    stored = connection.answer()
    assert stored.status == 201
    call.ok("DELETE", f"/api/memory/{stored.body['id']}")


def test_http_1_0_is_answered_and_closed_and_an_upgrade_is_ignored(wire):
    connection = wire()
    connection.send(b"GET /api/health HTTP/1.0\r\n\r\n")
    assert connection.answer().body == {"status": "ok"}
    assert connection.closed()
    for headers in (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n",
    ):
        connection = wire()
        connection.send(b"GET /api/health HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
        assert connection.answer().status == 200


# Slow and idle callers


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: Any, shared_daemon: Any) -> Iterator[Any]:
    """A daemon that waits for nobody."""
    daemon = type(shared_daemon)(
        tmp_path_factory.mktemp("hasty"),
        "--set=socket.header_timeout_seconds=1.5",
        "--set=socket.body_timeout_seconds=1.5",
        "--set=socket.idle_timeout_seconds=1.5",
        "--set=socket.max_connections=256",
    ).start()
    yield daemon
    assert daemon.stop() == 0


def trickle(connection: Any, data: bytes) -> None:
    """A byte at a time, until the other side has given up."""
    for byte in itertools.cycle(data):
        connection.send(bytes([byte]))
        if select.select([connection.socket], [], [], 0.03)[0]:
            return


@pytest.mark.parametrize(("at_once", "slowly"), [
    (b"", b"GET /api/status HTTP/1.1\r\nHost: x"),
    (b"POST /api/memory HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\n",
     b'{"text": "a memory th'),
], ids=["head", "body"])  # fmt: skip
def test_what_trickles_in_is_cut_off(hasty, wire, at_once, slowly):
    connection = wire(hasty.socket)
    connection.send(at_once)
    trickle(connection, slowly)
    assert connection.answer().refusal() == (408, "timeout", None)
    assert connection.closed()


def test_a_second_request_that_trickles_in_is_cut_off(hasty, wire):
    connection = wire(hasty.socket)
    connection.send(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\nGET /api/h")
    assert connection.answer().status == 200
    trickle(connection, b"ealth HTTP/1.1\r\nHost: x")
    assert connection.answer().status in {0, 408}


def test_an_idle_connection_is_closed(hasty, wire):
    fresh, used = wire(hasty.socket), wire(hasty.socket)
    used.send(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert used.answer().status == 200
    assert fresh.closed()
    assert used.closed()


def test_a_caller_that_does_not_read_its_answers_is_cut_off(hasty, wire, calls_of, eventually):
    call = calls_of(hasty, "slow")
    for _ in range(2):
        call.ok("POST", "/api/memory/batch", {"memories": [{"text": "x" * 60_000}] * 16})
    connection = wire(hasty.socket)
    for _ in range(4):
        connection.send(b"GET /api/memory?limit=500 HTTP/1.1\r\nHost: x\r\nX-Agent: slow\r\n\r\n")
    eventually(lambda: connections(call) <= 1, "the connection is gone")


@pytest.mark.usefixtures("many_files")
def test_a_thousand_idle_connections_leave_the_daemon_answering(call, wire, eventually):
    eventually(lambda: connections(call) == 1, "earlier connections are gone")
    first = wire()
    first.send(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert first.answer().status == 200
    others = [wire() for _ in range(1000)]
    for refused in others[255:]:
        found = refused.answer()
        assert found.refusal() == (503, "unavailable", None)
        assert "256" in found.body["error"]["message"]
        assert refused.closed()
    for connection in (first, *others[:255]):
        connection.send(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.answer().status == 200
    for connection in others:
        connection.close()
    eventually(lambda: call("GET", "/api/health").status == 200, "there is room again")
