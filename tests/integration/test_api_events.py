"""`/api/events`: what happens, as server-sent events."""

import http.client
import json
from collections.abc import Callable
from typing import Any

import pytest


class Stream:
    """An open stream of events, read one at a time."""

    def __init__(self, one: Any, target: str, last: str | None = None) -> None:
        resume = f"Last-Event-ID: {last}\r\n" if last is not None else ""
        one.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n{resume}\r\n".encode())
        self.response = http.client.HTTPResponse(one)
        self.response.begin()
        assert self.response.status == 200
        assert self.response.getheader("content-type") == "text/event-stream"
        assert self.block() == [": connected"]

    def block(self) -> list[str]:
        lines = []
        while line := self.response.readline().decode().rstrip("\n"):
            lines.append(line)
        return lines

    def next(self) -> tuple[int, str, Any]:
        """The next event: its number, type and data."""
        number, kind, data = self.block()
        assert number.startswith("id: ")
        assert kind.startswith("event: ")
        assert data.startswith("data: ")
        return int(number[4:]), kind[7:], json.loads(data[6:])

    def next_of(self, agent: str) -> tuple[str, Any]:
        while True:
            _, kind, data = self.next()
            if data["agent"] == agent:
                return kind, data


@pytest.fixture
def listen(wire: Any) -> Callable[..., Stream]:
    return lambda target="/api/events", last=None: Stream(wire(), target, last)


def test_every_change_is_told_in_order_without_its_text(call, listen):
    stream = listen()
    stored = call.store("swordfish", category="a")
    call.ok("PUT", f"/api/memory/{stored['id']}", {"subject": "s"})
    call.ok("PUT", "/api/kv/city", {"value": "swordfish"})
    call.ok("DELETE", "/api/kv/city")
    call.ok("DELETE", f"/api/memory/{stored['id']}")
    told = [stream.next_of(call.agent) for _ in range(6)]
    assert [kind for kind, _ in told] == [
        "category.added", "memory.stored", "memory.updated", "kv.set", "kv.deleted",
        "memory.deleted",
    ]  # fmt: skip
    brief = told[1][1]
    assert (brief["id"], brief["category"], brief["tier"]) == (stored["id"], "a", "warm")
    assert brief["time"] == pytest.approx(stored["created_at"], abs=5)
    assert told[3][1]["key"] == "city"
    assert "swordfish" not in json.dumps(told)


def test_only_the_types_that_were_asked_for_are_told(call, listen):
    kv, both, whole = (
        listen("/api/events?types=kv"),
        listen("/api/events?types=kv.deleted,memory.stored"),
        listen("/api/events?types=memory.stored"),
    )
    stored = call.store("x")
    call.ok("DELETE", f"/api/memory/{stored['id']}")
    call.ok("PUT", "/api/kv/k", {"value": "v"})
    call.ok("DELETE", "/api/kv/k")
    call.store("y")
    assert [kv.next()[1] for _ in range(2)] == ["kv.set", "kv.deleted"]
    assert [both.next()[1] for _ in range(3)] == ["memory.stored", "kv.deleted", "memory.stored"]
    assert [whole.next()[1] for _ in range(2)] == ["memory.stored", "memory.stored"]


def test_a_stream_of_one_agent_goes_on_behind_the_last_event_seen(
    call, listen, calls_of, shared_daemon
):
    target = f"/api/events?types=memory.stored&agent={call.agent}"
    first = listen(target)
    calls_of(shared_daemon, f"{call.agent}-other").store("theirs")
    keys = [call.store(text)["id"] for text in ("one", "two", "three")]
    seen = [first.next() for _ in range(3)]
    assert [data["id"] for _, _, data in seen] == keys
    numbers = [number for number, _, _ in seen]
    assert numbers == sorted(numbers)
    again = listen(target, last=str(numbers[0]))
    assert [again.next()[0] for _ in range(2)] == numbers[1:]
    call.store("four")
    assert again.next()[0] > numbers[2]
    # All that is known follows a number from before a restart.
    assert listen(target, last="999999999").next()[0] == numbers[0]


def test_of_a_long_history_the_last_thousand_events_are_kept(call, listen):
    for _ in range(3):
        call.ok("POST", "/api/memory/batch", {"memories": [{"text": "x"}] * 400, "force": True})
    stream = listen("/api/events", last="0")
    numbers = [stream.next()[0] for _ in range(1000)]
    assert numbers == list(range(numbers[0], numbers[0] + 1000))
    call.ok("PUT", "/api/kv/k", {"value": "v"})
    # What the daemon does by itself is told as well.
    following = []
    kind = ""
    while kind != "kv.set":
        number, kind, _ = stream.next()
        following.append(number)
    assert following == list(range(numbers[-1] + 1, numbers[-1] + 1 + len(following)))


def test_a_listener_who_leaves_is_let_go(call, wire, eventually):
    one = wire()
    Stream(one, "/api/events")
    before = call.ok("GET", "/api/status")["connections"]
    one.close()
    eventually(
        lambda: call.ok("GET", "/api/status")["connections"] < before, "the connection is gone"
    )
    call.store("x")
    assert call("GET", "/api/health").status == 200
