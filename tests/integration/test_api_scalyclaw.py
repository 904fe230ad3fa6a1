"""ScalyClaw's clients: its paths, parameters and shapes work as they are."""

from __future__ import annotations

from typing import Any

import pytest


def remember(call: Any, content: str, **fields: Any) -> str:
    body = {"type": "semantic", "subject": "note", "content": content, **fields}
    answered = call("POST", "/api/memory", body)
    assert answered.status == 201
    return str(answered.body["id"])


def test_a_memory_is_stored_read_changed_and_deleted(call):
    key = remember(call, "Ana lives in Kiel", tags=["ana"], source="user", importance=8, ttl="30d")
    found = call.ok("GET", f"/api/memory/{key}")
    assert (found["content"], found["subject"], found["type"]) == (
        "Ana lives in Kiel",
        "note",
        "semantic",
    )
    assert (found["importance"], found["tags"], found["source"]) == (0.8, ["ana"], "user")
    changed = call.ok(
        "PUT", f"/api/memory/{key}", {"content": "Ana lives in Bonn", "importance": 3}
    )
    assert changed["updated"] is True
    found = call.ok("GET", f"/api/memory/{key}")
    assert (found["content"], found["importance"]) == ("Ana lives in Bonn", 0.3)
    assert call.ok("DELETE", f"/api/memory/{key}")["deleted"] is True
    assert call("GET", f"/api/memory/{key}").status == 404
    assert call("DELETE", f"/api/memory/{key}").status == 404
    assert call("PUT", f"/api/memory/{key}", {"subject": "x"}).status == 404


def test_a_list_comes_under_results(call):
    remember(call, "one")
    remember(call, "two")
    results = call.ok("GET", "/api/memory")["results"]
    assert [memory["content"] for memory in results] == ["two", "one"]


def test_what_was_found_counts_as_used(call, eventually):
    key = remember(call, "the tide table")
    call.ok("GET", "/api/memory/search?q=tide")
    eventually(
        lambda: call.ok("GET", f"/api/memory/{key}")["access_count"] == 1, "the use is counted"
    )


@pytest.mark.parametrize("word", ["content", "text"])
@pytest.mark.parametrize(("given", "kept"), [(2, 0.2), (5, 0.5), (10, 1.0), (0.7, 0.7), (1.0, 1.0)])
def test_an_integer_from_2_to_10_is_scalyclaws_scale(call, word, given, kept):
    key = call.ok("POST", "/api/memory", {word: "x", "importance": given})["id"]
    assert call.ok("GET", f"/api/memory/{key}")["importance"] == kept
    call.ok("PUT", f"/api/memory/{key}", {"importance": 0.3})
    assert call.ok("PUT", f"/api/memory/{key}", {"importance": given})["importance"] == kept
    batch = call.ok("POST", "/api/memory/batch", {"memories": [{word: "y", "importance": given}]})
    assert batch["results"][0]["importance"] == kept


def test_a_memory_without_content_is_refused(call):
    for fields, field in (
        ({"content": "x", "ttl": "nonsense"}, "ttl"),
        ({"text": "x", "expires": "nonsense"}, "expires"),
        ({"content": "  "}, "content"),
    ):
        error = call("POST", "/api/memory", fields).body["error"]
        assert error["field"] == field
        assert f"'{field}'" in error["message"]
    refused = call("POST", "/api/memory", {"type": "semantic", "subject": "note"})
    assert refused.refusal() == (400, "invalid", "text")
