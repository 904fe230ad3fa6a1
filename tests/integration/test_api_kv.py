"""`/api/kv`: small named facts."""

import time
from urllib.parse import quote

import pytest


def test_a_value_is_stored_read_replaced_and_removed(call):
    made = call.ok("PUT", "/api/kv/city", {"value": "Kiel"})
    assert (made["updated"], made["key"], made["value"]) == (True, "city", "Kiel")
    assert made["created_at"] == made["updated_at"] == pytest.approx(time.time(), abs=60)
    assert call.ok("GET", "/api/kv/city")["value"] == "Kiel"
    changed = call.ok("PUT", "/api/kv/city", {"value": "Bonn"})
    assert changed["created_at"] == made["created_at"] < changed["updated_at"]
    assert call.ok("GET", "/api/kv/city")["value"] == "Bonn"
    assert call.ok("DELETE", "/api/kv/city") == {"key": "city", "deleted": True}
    assert call("GET", "/api/kv/city").refusal() == (404, "not_found", "key")


KEYS = ("a b", "a/b/c", "..", "%41", "a?b=c#d", "ключ", "😀", "a+b", "k" * 256, "index", "🇩🇪")


def test_a_key_is_any_short_text_and_a_value_any(call):
    for value in ("", " ", "\n", "{}", "日本", "v" * 65_536):
        call.ok("PUT", "/api/kv/k", {"value": value})
        assert call.ok("GET", "/api/kv/k")["value"] == value
    call.ok("DELETE", "/api/kv/k")
    for key in KEYS:
        target = f"/api/kv/{quote(key, safe='')}"
        assert call.ok("PUT", target, {"value": "v"})["key"] == key
        assert call.ok("GET", target)["value"] == "v"
        assert [pair["key"] for pair in call.ok("GET", "/api/kv")["results"]] == [key]
        call.ok("DELETE", target)
        assert call.ok("GET", "/api/kv") == {"results": [], "total": 0}


def test_pairs_are_listed_by_key_and_prefix_a_page_at_a_time(call):
    for key in ("b", "a/2", "a/1", "a/10", "A", "a%"):
        call.ok("PUT", f"/api/kv/{quote(key, safe='')}", {"value": key.upper()})

    def keys(query: str) -> tuple[list[str], int]:
        page = call.ok("GET", f"/api/kv?{query}")
        return [pair["key"] for pair in page["results"]], page["total"]

    assert keys("") == (["A", "a%", "a/1", "a/10", "a/2", "b"], 6)
    assert keys("prefix=a/") == (["a/1", "a/10", "a/2"], 3)
    assert keys("prefix=a%25") == (["a%"], 1)
    assert keys("prefix=zz") == ([], 0)
    assert keys("limit=2&offset=1") == (["a%", "a/1"], 6)
    assert keys("offset=6") == ([], 6)
