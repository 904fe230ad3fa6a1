"""One that asks or stores too much is refused with the way out, and the others are served."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from daemon_process import Daemon

from thermocline.daemon.api.fairness import RateLimit
from thermocline.daemon.client import ApiError, Client
from thermocline.daemon.errors import TooManyRequests

HEALTH = b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n"
OPTIONS = ("--set=quotas.memories=3", "--set=socket.max_connections=16")


def test_an_agent_with_as_many_memories_as_it_may_have_stores_again_after_it_forgot(call):
    keys = [call.store(f"fact {number}")["id"] for number in range(3)]
    for method, path, body in (
        ("POST", "/api/memory", {"text": "one more"}),
        ("POST", "/api/memory/batch", {"memories": [{"text": "one more"}]}),
        ("PUT", "/api/kv/a", {"value": "b"}),
        ("PUT", "/api/hot/identity", {"agent_name": "Nova"}),
    ):
        assert call(method, path, body).refusal() == (507, "quota_reached", None), path
    assert call.ok("POST", "/api/recall", {"query": "fact 2"})["results"]
    assert call.ok("PUT", f"/api/memory/{keys[1]}", {"text": "another fact"})
    assert call.ok("DELETE", f"/api/memory/{keys[0]}")
    assert call.store("one more")["id"]


def test_a_quota_is_raised_while_the_daemon_runs_and_counts_megabytes(make_daemon):
    daemon = make_daemon("--set=quotas.megabytes=1").start()
    with daemon.client() as client:

        def fill() -> None:
            for _ in range(40):
                client.store("x" * 60_000, force=True)

        with pytest.raises(ApiError) as refused:
            fill()
        assert (refused.value.code, refused.value.status) == ("quota_reached", 507)
        assert "quotas.megabytes" in (refused.value.hint or "")
        assert client.list(limit=1).results
        with daemon.client("other") as other:
            assert other.store("has its own quota").id


def test_an_agent_that_asks_too_often_is_told_when_to_come_again_and_others_are_not(
    make_daemon, calls_of
):
    daemon = make_daemon("--set=quotas.requests_per_second=0.5").start()
    flooder, other = calls_of(daemon, "flooder"), calls_of(daemon, "other")
    answers = [flooder("GET", "/api/hot") for _ in range(20)]
    refused = [answer for answer in answers if answer.status == 429]
    assert [answer.status for answer in answers[:5]] == [200] * 5
    assert len(refused) >= 10
    assert refused[0].refusal() == (429, "too_many_requests", None)
    assert 1 <= int(refused[-1].headers["retry-after"]) <= 2
    assert other("GET", "/api/hot").status == 200
    assert flooder("GET", "/api/health").status == 200


def test_a_rate_is_an_average_over_ten_seconds():
    now = [100.0]
    rates = RateLimit(lambda: now[0])

    def taken(agent: str, tries: int) -> int:
        for count in range(tries):
            try:
                rates.acquire(agent, 2.0)
            except TooManyRequests:
                return count
        return tries

    assert taken("a", 100) == 20
    assert taken("b", 1) == 1
    now[0] += 1
    assert taken("a", 100) == 2
    with pytest.raises(TooManyRequests) as refused:
        rates.acquire("a", 2.0)
    assert refused.value.seconds == 1
    now[0] += 1000
    assert taken("a", 100) == 20
    rates.acquire("a", 0.0)


def test_a_process_with_all_connections_keeps_no_other_out(shared_daemon, wire, eventually):
    def full() -> bool:
        mine.append(wire())
        mine[-1].send(HEALTH)
        return bool(mine[-1].answer().status == 503)

    mine: list[Any] = []
    eventually(full, "this process has all connections")
    code = (
        "import sys; from thermocline.daemon.client import Client\n"
        "with Client(sys.argv[1], timeout=30) as client: print(client.health().status)"
    )
    command = [sys.executable, "-c", code, str(shared_daemon.socket)]
    for _ in range(3):
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert said.strip() == "ok"
    for one in mine:
        one.send(HEALTH)
    assert [one.answer().status for one in mine].count(200) >= 12


@pytest.fixture
def flood(shared_daemon: Daemon) -> Iterator[Callable[[int], None]]:
    """`flood(n)` has n connections ask as fast as they can until the test is over."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def ask() -> None:
        with Client(str(shared_daemon.socket), agent="flooder") as client:
            while not over.is_set():
                client.recall("a question that is asked again and again", limit=20)

    def begin(count: int) -> None:
        threads.extend(threading.Thread(target=ask) for _ in range(count))
        for thread in threads:
            thread.start()

    yield begin
    over.set()
    for thread in threads:
        thread.join(60)


def test_beside_a_flooder_another_agent_is_served(call, flood):
    call.store("the gate code is 4711")
    flood(4)
    for _ in range(10):
        assert call.ok("POST", "/api/recall", {"query": "gate code"})["results"]


def test_an_answer_that_takes_too_long_is_given_up_and_the_next_is_served(make_daemon):
    daemon = make_daemon("--set=limits.query_seconds=0.001").start()
    with daemon.client() as client:
        for part in range(2):
            client.batch(
                [{"text": f"alpha beta gamma delta {part} {n} {n % 7}"} for n in range(500)]
            )
        words = " ".join(f"alpha beta gamma delta {n}" for n in range(250))

        def ask() -> None:
            for _ in range(50):
                client.recall(words, limit=100)
                client.list(limit=500, offset=500, order="score")

        with pytest.raises(ApiError) as refused:
            ask()
        assert (refused.value.code, refused.value.status) == ("too_slow", 503)
        assert "limits.query_seconds" in (refused.value.hint or "")
        assert client.store("still served").id
        assert client.health().status == "ok"
