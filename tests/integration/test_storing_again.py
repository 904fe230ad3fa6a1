"""A text that is known word for word is not stored a second time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

FACT = "Maya's flight lands on Friday at 18:40"


def test_a_known_text_is_strengthened_and_said_to_be_known_unless_it_is_forced(call):
    first = call.store(FACT, category="travel")
    assert first["stored"] is True
    assert "known" not in first
    again = call.store(f" {FACT.replace(' ', '  ')}\n")
    assert (again["stored"], again["known"], again["id"]) == (False, first["id"], first["id"])
    assert (again["text"], again["category"]) == (FACT, "travel")
    assert again["access_count"] == 1
    assert again["score"] > first["score"]
    # Another case and a full stop make no new text.
    assert call.store(f"{FACT.upper()}.")["known"] == first["id"]
    assert call.total() == 1
    forced = call.store(FACT, force=True)
    assert forced["stored"]
    assert forced["id"] != first["id"]
    assert call.total() == 2


def test_what_the_caller_adds_is_added(call):
    first = call.store(FACT, tags=["maya"], importance=0.6)
    call.store(FACT, tags=["trip"], importance=0.9, category="travel", pinned=True)
    now = call.ok("GET", f"/api/memory/{first['id']}")
    assert sorted(now["tags"]) == ["maya", "trip"]
    assert (now["importance"], now["category"], now["pinned"]) == (0.9, "travel", True)
    call.store(FACT, category="projects/other", importance=0.1)
    now = call.ok("GET", f"/api/memory/{first['id']}")
    assert (now["importance"], now["category"], now["access_count"]) == (0.9, "travel", 2)


def test_plain_repetition_leaves_no_version_behind(call):
    first = call.store(FACT, category="travel")
    for _ in range(3):
        call.store(FACT)
    versions = call.ok("GET", f"/api/history?kind=memory&id={first['id']}")["results"]
    assert [version for version in versions if version["why"] != "now"] == []


def test_the_same_words_of_somebody_else_or_in_a_conversation_are_new(call):
    call.store("I like tea", actor="Maya")
    assert call.store("I like tea", actor="Tom")["stored"]
    assert call.store("I like tea", actor="Tom", group="talk", position=3)["stored"]
    assert call.store("I like tea", actor="Tom", group="talk", position=5)["stored"]
    assert not call.store("I like tea", actor="Maya")["stored"]


@pytest.mark.parametrize(
    ("fields", "others"),
    [
        ({"subject": "Maya"}, {"subject": "Tom"}),
        ({"outcome": "success"}, {"outcome": "failure"}),
        ({"data": {"port": 80}}, {"data": {"port": 81}}),
    ],
)
def test_the_same_words_with_another_subject_outcome_or_data_are_new(call, fields, others):
    call.store("likes strong tea", **fields)
    assert call.store("likes strong tea", **others)["stored"]
    assert not call.store("likes strong tea", **others, event="task")["stored"]
    assert call.ok("POST", "/api/memory/tidy")["merged"] == 0


def test_user_and_assistant_speak_for_one_as_when_tidying(call):
    first = call.store("I like tea", actor="user")
    assert call.store("I like tea", actor="assistant")["known"] == first["id"]


def test_what_two_people_say_in_a_talk_is_kept_of_both(call):
    talk = {"conversation": "c", "text": "Maya: I like strong tea.\nTom: I like strong tea."}
    kept = call.ok("POST", "/api/observe", {**talk, "wait": True})["stored"]
    assert [memory["actor"] for memory in kept] == ["Maya", "Tom"]


def test_what_is_remembered_again_no_longer_expires(call):
    first = call.store("Tea is served at four", ttl="1h")
    known = call.ok("POST", "/api/tools/remember", {"text": "At four tea is served"})
    assert known["merged_with"]["id"] == first["id"]
    assert call.ok("GET", f"/api/memory/{first['id']}")["expires_at"] is None


def test_a_merged_memory_stands_for_the_one_that_it_went_into(call):
    older, newer = call.store("The dog is called Rex"), call.store("Our dog's name is Rex")
    call.ok("POST", f"/api/memory/{older['id']}/merge", {"into": newer["id"]})
    assert call.store("The dog is called Rex")["known"] == newer["id"]
    known = call.ok("POST", "/api/tools/remember", {"text": "The dog is called Rex"})
    assert known["merged_with"] == {"id": newer["id"], "text": "Our dog's name is Rex"}


def test_callers_at_once_store_it_once(call):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: call.store(FACT), range(16)))
    assert sum(one["stored"] for one in answers) == 1
    assert call.total() == 1
    assert call.store(FACT)["access_count"] == 16
