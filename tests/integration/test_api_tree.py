"""`/api/tree`: the categories."""

from typing import Any


def nodes(call: Any) -> Any:
    tree = call.ok("GET", "/api/tree")["tree"]
    return {path: node for path, node in tree.items() if not path.startswith("_")}


def test_a_category_comes_with_its_parents(call):
    added = call.ok("PUT", "/api/tree", {"path": "/projects/boat/", "desc": "The  ketch"})
    assert added == {"path": "projects/boat", "added": True, "made": True}
    again = call.ok("PUT", "/api/tree", {"path": "projects/boat"})
    assert again == {"path": "projects/boat", "added": True, "made": False}
    assert set(nodes(call)) == {"root", "projects", "projects/boat"}
    assert nodes(call)["projects/boat"]["desc"] == "The ketch"


def test_a_full_tree_refuses_a_category_and_names_the_least_used(call):
    paths = [f"p{n}/c{m}" for n in range(7) for m in range(6)]
    for path in paths:
        call.ok("PUT", "/api/tree", {"path": path, "desc": "made by hand"})
    for path in paths[3:]:
        call.store(f"about {path}", category=path)
    before = nodes(call)
    assert len(before) == 50
    refused = call("PUT", "/api/tree", {"path": "p1/new", "desc": "one more"})
    assert refused.refusal() == (409, "conflict", "path")
    assert "50 of 50 categories" in refused.body["error"]["message"]
    for path in paths[:3]:
        assert path in refused.body["error"]["hint"]
    assert nodes(call).keys() == before.keys()
    assert call.ok("PUT", "/api/tree", {"path": paths[5], "desc": "told better"})["made"] is False


def test_a_category_with_ten_below_it_refuses_one_more(call):
    for number in range(10):
        call.ok("PUT", "/api/tree", {"path": f"boat/c{number}"})
    call.store("x", category="other")
    refused = call("PUT", "/api/tree", {"path": "boat/c10"})
    assert refused.refusal() == (409, "conflict", "path")
    assert "'boat' has 10 of 10" in refused.body["error"]["message"]
    assert "boat/c0" in refused.body["error"]["hint"]
    assert "other" not in refused.body["error"]["hint"]
    assert "boat/c10" not in nodes(call)


def test_a_memory_of_a_fifth_level_is_filed_at_the_fourth(call):
    stored = call.store("x", category="a/b/c/d/e")
    assert stored["category"] == "a/b/c/d"
    assert set(nodes(call)) == {"root", "a", "a/b", "a/b/c", "a/b/c/d"}
    call.store("y", category="a/b/c/d")
    for path, texts in (("a/b/c/d/e", ["x"]), ("a/b/c/d", ["y", "x"]), ("a/b/c/d/f", [])):
        page = call.ok("GET", f"/api/memory?category={path}")
        assert [found["text"] for found in page["results"]] == texts
    # Nobody forgets more than was named.
    forgotten = call.ok("POST", "/api/memory/forget", {"category": "a/b/c/d/e", "dry_run": True})
    assert forgotten["total"] == 1
    changed = call.ok("PUT", f"/api/memory/{stored['id']}", {"category": "v/w/x/y/z"})
    assert changed["category"] == "v/w/x/y"
    known = call.store("z")["id"]
    call.store("z", category="v/w/x/y/z")
    page = call.ok("GET", "/api/memory?category=v/w/x/y/z")
    assert {found["id"] for found in page["results"]} == {stored["id"], known}
    changed = call.ok("PUT", f"/api/memory/{known}", {"category": "v"})
    assert changed["original_category"] == ""
    call.ok("PUT", "/api/hot/lesson", {"text": "ask first", "category": "a/b/c/d/e"})
    (lesson,) = call.ok("GET", "/api/hot")["state"]["critical_lessons"]
    assert lesson["category"] == "a/b/c/d"


def prompt(call: Any) -> list[str]:
    text = call("GET", "/api/tree/prompt")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert len(text.text.encode()) <= 2048
    return list(text.text.splitlines())


def test_the_measures_are_those_of_the_text_that_a_model_reads(call):
    call.ok("PUT", "/api/tree", {"path": "a/b/c", "desc": "what c is about"})
    answer = call.ok("GET", "/api/tree")
    assert prompt(call) == ["a", " b", "  c: what c is about"]
    assert answer["size_bytes"] == 25
    assert (answer["nodes"], answer["depth"]) == (4, 3)
    assert (answer["max_nodes"], answer["max_size_bytes"]) == (50, 2048)
    assert (answer["max_depth"], answer["max_children"]) == (4, 10)
    assert "Size: 25 / 2048 bytes" in call("GET", "/api/tree/text").text


def test_a_category_described_by_its_name_alone_shows_its_newest_memories(call):
    for text in ("Ada sings", "Ada likes oolong", "Ada lives in Porto", "Ada has moved to the sea"):
        call.store(text, category="people/ada")
    call.store("The hull is varnished", category="boat")
    call.ok("PUT", "/api/tree", {"path": "boat", "desc": "all about the ketch"})
    assert prompt(call) == [
        "boat: all about the ketch",
        "people",
        " ada: Ada has moved to the sea; Ada lives in Porto; Ada likes oolong",
    ]
    size = len("\n".join(prompt(call)))
    assert call.ok("GET", "/api/tree")["size_bytes"] == size
    assert call.ok("GET", "/api/metrics")["tree_index_size_bytes"] == size
    text = call("GET", "/api/tree/text").text
    assert "people/ada — Ada has moved to the sea; Ada lives in Porto; Ada likes oolong" in text
    assert f"Size: {size} / 2048 bytes" in text


def test_a_category_is_found_by_words_or_by_the_models_question(call):
    call.store("Ada likes oolong", category="people/ada")
    call.ok("PUT", "/api/tree", {"path": "boat", "desc": "all about the ketch"})
    found = call.ok("POST", "/api/tree/search", {"query": "who painted the ketch?"})
    assert found == {
        "query": "who painted the ketch?",
        "mode": "keyword",
        "results": [
            {"path": "boat", "relevance": 0.375, "reason": "has ketch?",
             "desc": "all about the ketch"}
        ],
        "count": 1,
    }  # fmt: skip
    # The core of what is filed there counts too.
    (ada,) = call.ok("POST", "/api/tree/search", {"query": "oolong"})["results"]
    assert (ada["path"], ada["desc"]) == ("people/ada", "Ada likes oolong")
    asked = call("GET", "/api/tree/search/prompt?query=which+beverage%3F")
    assert asked.headers["content-type"] == "text/plain; charset=utf-8"
    for part in (
        "You decide in which categories", '"relevance"', " ada: Ada likes oolong", "which",
    ):  # fmt: skip
        assert part in asked.text
    by_model = call.ok("POST", "/api/tree/search", {"query": "ketch", "mode": "llm"})
    assert (by_model["mode"], by_model["count"]) == ("keyword", 1)
    assert "no model is configured" in by_model["why"]


def test_only_a_category_without_memories_is_removed(call):
    stored = call.store("x", category="a/b/c")
    for path in ("a", "a/b", "a/b/c"):
        refused = call("DELETE", f"/api/tree?path={path}")
        assert refused.refusal() == (409, "conflict", "path")
    assert call("DELETE", "/api/tree?path=root").refusal() == (400, "invalid", "path")
    assert call("DELETE", "/api/tree").refusal() == (400, "invalid", "path")
    call.ok("PUT", "/api/tree", {"path": "a/b/c", "desc": "made by a person"})
    call.ok("DELETE", f"/api/memory/{stored['id']}")
    assert call.ok("DELETE", "/api/tree?path=a") == {"path": "a", "removed": True}
    assert set(nodes(call)) == {"root"}
    assert call("DELETE", "/api/tree?path=a").refusal() == (404, "not_found", "path")


def test_a_path_that_is_none_and_a_renaming_that_makes_no_sense_are_refused(call):
    for path in ["../..", "", "a/b/c/d/e", "a//b", "_x", "c" * 300, 7, None]:
        assert call("PUT", "/api/tree", {"path": path}).refusal()[2] == "path"
    for path in ("a", "b"):
        call.ok("PUT", "/api/tree", {"path": path})
    for path, to, status in (
        ("a", "b", 409), ("a", "a/c", 409), ("none", "c", 409), ("a", "1/2/3/4/5", 400),
    ):  # fmt: skip
        assert call("POST", "/api/tree/rename", {"path": path, "to": to}).status == status
    assert set(nodes(call)) == {"root", "a", "b"}


def test_pruning_leaves_what_is_used_or_new(call):
    call.store("x", category="used/below")
    call.ok("PUT", "/api/tree", {"path": "new"})
    assert call.ok("POST", "/api/tree/prune") == {"pruned": 0, "paths": []}
    assert set(nodes(call)) == {"root", "used", "used/below", "new"}


def test_a_category_is_renamed_with_its_memories_and_that_can_be_undone(call):
    kept = call.store("sails", category="boat/gear")
    call.ok("PUT", "/api/tree", {"path": "boat", "desc": "The ketch"})
    renamed = call.ok("POST", "/api/tree/rename", {"path": "boat", "to": "fleet/ketch"})
    assert renamed == {"path": "boat", "to": "fleet/ketch", "memories": 1}
    assert set(nodes(call)) == {"root", "fleet", "fleet/ketch", "fleet/ketch/gear"}
    assert nodes(call)["fleet/ketch"]["desc"] == "The ketch"
    assert nodes(call)["fleet/ketch/gear"]["desc"] == "Gear"
    assert call.ok("GET", f"/api/memory/{kept['id']}")["category"] == "fleet/ketch/gear"
    # A description by its name alone follows the new path.
    call.ok("POST", "/api/tree/rename", {"path": "fleet/ketch/gear", "to": "fleet/ketch/new_gear"})
    assert nodes(call)["fleet/ketch/new_gear"]["desc"] == "New Gear"
    call.ok("POST", "/api/tree/undo")
    call.ok("POST", "/api/tree/rename", {"path": "fleet", "to": "sea"})
    call.ok("POST", "/api/tree/undo")
    assert set(nodes(call)) == {"root", "fleet", "fleet/ketch", "fleet/ketch/gear"}
    assert call.ok("GET", f"/api/memory/{kept['id']}")["category"] == "fleet/ketch/gear"
