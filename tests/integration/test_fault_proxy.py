"""The bad network itself: each fault as a plain client sees it."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from fault_proxy import FaultProxy
from plain_server import BODY, PlainServer


@pytest.fixture
def server() -> Iterator[PlainServer]:
    server = PlainServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    server.close_connections()
    server.server_close()
    thread.join()


@pytest.fixture
def proxy(server: PlainServer, make_fault_proxy: Callable[[int], FaultProxy]) -> FaultProxy:
    return make_fault_proxy(server.server_address[1])


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[http.client.HTTPConnection]:
    """A client that keeps its connection."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=60)
    yield connection
    connection.close()


def get(client: http.client.HTTPConnection, size: int = 10) -> bytes:
    client.request("GET", f"/{size}")
    return client.getresponse().read()


def post(client: http.client.HTTPConnection, body: bytes) -> bytes:
    """How many bytes the server says it was sent."""
    client.request("POST", "/up", body)
    return client.getresponse().read()


def seconds(act: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.monotonic()
    act()
    return time.monotonic() - start


def fails_with(client: http.client.HTTPConnection, *kinds: type[Exception]) -> None:
    """The next call fails in one of these ways, and the client starts afresh."""
    with pytest.raises(kinds):
        get(client)
    client.close()


def test_with_no_fault_everything_passes_both_ways_and_is_counted(proxy, client, server):
    assert get(client, len(BODY)) == BODY
    assert post(client, BODY) == b"2000000"
    counted = proxy.counted
    assert (counted.connections, counted.requests, counted.hits) == (1, 2, 0)
    assert counted.to_server > len(BODY)
    assert counted.to_client > len(BODY)
    assert server.seen == ["/2000000", "/up"]


def test_latency_delays_each_way_and_a_new_connection_by_a_round_trip_more(proxy, client):
    get(client)
    proxy.faults(latency_ms=40)
    assert seconds(lambda: get(client)) >= 0.080
    client.close()
    assert seconds(lambda: get(client)) >= 0.160


def test_bandwidth_is_shared_and_holds_in_each_direction(proxy, client):
    proxy.faults(bytes_per_second=500_000)
    assert seconds(lambda: get(client, 50_000)) >= 0.1
    assert seconds(lambda: post(client, BODY[:50_000])) >= 0.1
    with closing(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=60)) as other:
        both = [threading.Thread(target=get, args=(one, 25_000)) for one in (client, other)]
        start = time.monotonic()
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
    assert time.monotonic() - start >= 0.1


def test_refusing_ends_what_is_open_and_takes_nothing_new_until_healed(proxy, client):
    get(client)
    url = proxy.url
    proxy.faults(refuse=True)
    fails_with(client, ConnectionResetError)
    fails_with(client, ConnectionRefusedError)
    proxy.heal()
    assert proxy.url == url
    assert get(client) == BODY[:10]


def test_a_reset_within_a_request_keeps_the_server_from_seeing_it_whole(proxy, client, server):
    proxy.faults(reset_after_sent=500)
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        post(client, BODY)
    assert proxy.counted.to_server == 500
    assert server.seen == []


def test_a_reset_instead_of_an_answer_comes_after_the_server_did_its_work(proxy, client, server):
    proxy.faults(reset_after_answered=0, times=1)
    with pytest.raises(ConnectionResetError):
        post(client, b"x")
    client.close()
    assert server.seen == ["/up"]
    assert proxy.counted.to_client == 0
    assert get(client) == BODY[:10]
    assert proxy.counted.hits == 1


def test_a_black_hole_takes_connections_and_swallows_what_comes(proxy, client, server):
    get(client)
    proxy.faults(black_hole=True)
    with closing(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=0.1)) as new:
        new.connect()
        assert client.sock is not None
        client.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            get(new)
        with pytest.raises(TimeoutError):
            get(client)
    assert server.seen == ["/10"]


def test_a_half_open_connection_looks_alive_and_is_not_while_new_ones_work(proxy, client):
    get(client)
    proxy.faults(half_open=True)
    assert client.sock is not None
    client.sock.settimeout(0.1)
    fails_with(client, TimeoutError)
    assert get(client) == BODY[:10]


def test_a_truncated_answer_ends_in_good_order_after_so_many_bytes_of_each(proxy, client):
    proxy.faults(truncate_after=1000)
    assert len(get(client, 500)) == 500
    assert len(get(client, 500)) == 500
    with pytest.raises(http.client.IncompleteRead) as caught:
        get(client, len(BODY))
    assert 800 < len(caught.value.partial) < 1000
    assert proxy.counted.hits == 1


def test_a_captive_portal_answers_all_with_a_page_that_asks_to_log_in(proxy, client, server):
    proxy.faults(captive_portal=True, latency_ms=20)
    client.request("POST", "/up", BODY)
    answer = client.getresponse()
    assert (answer.status, answer.headers.get_content_type()) == (200, "text/html")
    assert b"log in" in answer.read()
    assert seconds(lambda: get(client)) >= 0.040
    assert server.seen == []


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_server_error_strikes_as_often_as_told_and_then_the_server_answers(
    proxy, client, server, status
):
    get(client)
    proxy.faults(status=status, times=2)
    found = []
    for _ in range(4):
        client.request("POST", "/up", BODY)
        answer = client.getresponse()
        answer.read()
        found.append((answer.status, answer.headers["Retry-After"]))
    assert found == [(status, None), (status, None), (200, None), (200, None)]
    assert server.seen == ["/10", "/up", "/up"]


def test_before_a_real_server_it_loses_the_answer_to_a_write_that_was_made(fault_proxy, sqld):
    fault_proxy.faults(reset_after_answered=0)
    with closing(http.client.HTTPConnection("127.0.0.1", fault_proxy.port, timeout=60)) as client:
        client.request("POST", "/v1/execute", '{"stmt": {"sql": "CREATE TABLE t (a)"}}')
        with pytest.raises(ConnectionResetError):
            client.getresponse()
    assert sqld.query("SELECT name FROM sqlite_master") == [["t"]]
