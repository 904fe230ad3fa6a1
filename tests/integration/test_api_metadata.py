"""`/api/metadata/urls`: every stored URL with its memories."""

from __future__ import annotations

from typing import Any


def urls(call: Any, target: str = "/api/metadata/urls") -> list[tuple[str, int, list[str]]]:
    return [
        (link["url"], link["count"], [memory["text"].split()[0] for memory in link["memories"]])
        for link in call.ok("GET", target)["results"]
    ]


def test_every_url_is_listed_with_its_memories_the_best_first(call):
    call.store("low https://a.example/x and https://b.example/y", importance=0.2)
    call.store("high https://b.example/y", importance=0.9)
    call.store("middle https://c.example/z", importance=0.5)
    call.store("without any", importance=1.0)
    assert urls(call) == [
        ("https://b.example/y", 2, ["high", "low"]),
        ("https://c.example/z", 1, ["middle"]),
        ("https://a.example/x", 1, ["low"]),
    ]
    page = call.ok("GET", "/api/metadata/urls?limit=1&offset=1")
    assert page["total"] == 3
    assert [link["url"] for link in page["results"]] == ["https://c.example/z"]


def test_a_forgotten_expired_or_merged_memory_lends_no_url(call, eventually):
    forgotten = call.store("one https://a.example")
    call.store("two https://b.example", expires="1s")
    loser = call.store("three https://c.example")
    winner = call.store("four")
    call.ok("DELETE", f"/api/memory/{forgotten['id']}")
    call.ok("POST", f"/api/memory/{loser['id']}/merge", {"into": winner["id"]})
    left = [("https://c.example", 1, ["four"])]
    eventually(lambda: urls(call) == left, "only the live memory lends its URL")


def test_of_a_url_with_many_memories_the_best_ten_are_listed(call):
    memories = [{"text": f"m{n} https://a.example", "importance": n / 30} for n in range(30)]
    call.ok("POST", "/api/memory/batch", {"memories": memories})
    ((_, count, texts),) = urls(call)
    assert (count, len(texts), texts[:2]) == (30, 10, ["m29", "m28"])


def test_one_page_has_no_more_than_the_configuration_allows(call):
    call.store("x")
    refused = call("GET", "/api/metadata/urls?limit=501")
    assert refused.refusal() == (400, "invalid", "limit")
