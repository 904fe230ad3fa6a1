"""What is told replaces what was told before about the same, over the socket."""

import time
from typing import Any

import pytest

DAY = 86_400.0
OLD = "Maya lives in Bonn"
NEW = "Maya moved to Kiel"


def link(call: Any, key: str) -> str | None:
    return call.ok("GET", f"/api/memory/{key}")["superseded_by"]


@pytest.mark.parametrize("gap", [0.0, 30.0, 3_600.0, DAY, 30 * DAY], ids=lambda gap: f"{gap:g}s")
def test_a_store_replaces_what_it_corrects_whatever_the_gap(call, gap):
    now = time.time()
    old = call.store("Our dentist is Dr Kraus", created_at=now - gap)
    other = call.store("Our vet is Dr Kraus", created_at=now - gap)
    new = call.store("We changed dentists, it's Dr Lindqvist", created_at=now)
    assert new["supersedes"] == [old["id"]]
    assert link(call, old["id"]) == new["id"]
    assert link(call, other["id"]) is None
    assert "supersedes" not in other
    assert "supersedes" not in call.ok("GET", f"/api/memory/{new['id']}")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The gate code of the yard is 4711", "The gate code of the yard is 9902"),
        ("Anna lives in Bonn", "Anna lives in Kiel"),
        ("Anna works at Bosch", "Anna works at Siemens"),
        ("The user likes tea", "The user hates tea"),
        ("Ben is coming to the party", "Ben is not coming to the party"),
        ("The default port is 5432", "The default port is 5433"),
        ("Das Passwort vom Router ist fuchs12", "Das Passwort vom Router ist dachs34"),
        ("门禁密码是1357", "门禁密码是2468"),
    ],
)
def test_the_same_words_with_another_value_replace_too(call, older, newer):
    old = call.store(older)
    assert call.store(newer)["supersedes"] == [old["id"]]


def test_a_batch_replaces_within_itself_and_before_it(call):
    first = call.store("The rent is 900 euros")
    texts = ["Rent went up to 950 euros", OLD, NEW, "Ben lives in Bonn"]
    batch = call.ok("POST", "/api/memory/batch", {"memories": [{"text": text} for text in texts]})
    rent, old, new, ben = batch["results"]
    assert (rent["supersedes"], new["supersedes"]) == ([first["id"]], [old["id"]])
    assert "supersedes" not in old
    assert "supersedes" not in ben


def test_the_tool_remember_names_what_it_replaces(call):
    old = call.store("I drive a Golf", category="people/owner")
    text = "I sold the Golf, we have a Skoda now"
    new = call.ok("POST", "/api/tools/remember", {"text": text})
    assert new["supersedes"] == [old["id"]]
    assert new["contradicts"] == [{"id": old["id"], "text": "I drive a Golf"}]
    assert new["category"] == "people/owner"


@pytest.mark.parametrize("door", ["store", "remember", "observe"])
def test_what_was_replaced_holds_again_once_it_is_told_again(call, door):
    def tell(text: str, talk: int) -> None:
        turns = [{"role": "user", "text": text}]
        body = {"conversation": f"talk {talk}", "turns": turns, "wait": True}
        if door == "observe":
            call.ok("POST", "/api/observe", body)
        elif door == "remember":
            call.ok("POST", "/api/tools/remember", {"text": text})
        else:
            call.store(text)

    texts = ["My sister lives in Bonn", "My sister moved to Kiel"]
    for talk, text in enumerate([*texts, *texts, *texts[:1], *texts[:1]]):
        tell(text, talk)
        results = call.ok("GET", "/api/memory")["results"]
        assert [each["text"] for each in results if each["superseded_by"] is None] == [text]
    assert call.total() == 5


def test_what_was_replaced_stays_so_where_an_older_talk_tells_it(call):
    old = call.store("My sister lives in Bonn")
    new = call.store("My sister moved to Kiel")
    turn = {"role": "user", "text": "My sister lives in Bonn", "at": time.time() - DAY}
    body = {"conversation": "talk", "turns": [turn], "wait": True}
    answer = call.ok("POST", "/api/observe", body)
    assert (answer["stored"], answer["known"]) == ([], [old["id"]])
    assert link(call, old["id"]) == new["id"]


def test_a_corrected_word_leaves_what_is_replaced_as_it_is(call):
    old = call.store(OLD)
    new = call.store(NEW)
    call.ok("PUT", f"/api/memory/{new['id']}", {"text": "Maya moved to Lübeck"})
    assert link(call, old["id"]) == new["id"]
    call.ok("PUT", f"/api/memory/{old['id']}", {"text": "Maya lives in Bonn, on the Rhine"})
    assert link(call, old["id"]) == new["id"]
    call.ok("PUT", f"/api/memory/{new['id']}", {"text": "The boat is red"})
    assert link(call, old["id"]) is None


def test_turns_replace_nothing_and_are_not_replaced(call):
    turns = [{"role": "user", "text": OLD}, {"role": "user", "text": NEW}]
    stored = call.ok("POST", "/api/turns", {"conversation": "talk", "turns": turns})["stored"]
    assert all("supersedes" not in memory for memory in stored)
    new = call.store("Maya moved to Lübeck")
    assert "supersedes" not in new


@pytest.mark.parametrize(
    ("older", "newer", "replaces"),
    [
        ({"source": "user-stated"}, {"source": "inferred"}, False),
        ({"pinned": True}, {}, True),
        # Told later, of an earlier time.
        ({}, {"created_at": 1_000_000_000}, False),
    ],
    ids=["inferred", "pinned", "earlier"],
)
def test_who_says_it_and_of_when_decides_and_a_pin_does_not(call, older, newer, replaces):
    old = call.store(OLD, **older)
    new = call.store(NEW, **newer)
    assert new.get("supersedes") == ([old["id"]] if replaces else None)
    assert link(call, old["id"]) == (new["id"] if replaces else None)


def test_the_older_holds_again_when_the_newer_is_forgotten_or_the_mark_undone(call):
    old = call.store(OLD)
    new = call.store(NEW)
    version = call.ok("GET", f"/api/history?id={old['id']}")["results"][0]
    assert (version["why"], version["replaced"]) == ("superseded", ["superseded_by"])
    call.ok("POST", "/api/undo", {"id": old["id"]})
    assert link(call, old["id"]) is None
    call.ok("POST", "/api/undo", {"id": old["id"]})
    assert link(call, old["id"]) == new["id"]
    call.ok("DELETE", f"/api/memory/{new['id']}")
    assert link(call, old["id"]) is None
    again = call.store("Maya moved to Kiel in May")
    assert link(call, old["id"]) == again["id"]


def test_only_the_last_of_a_row_of_corrections_holds(call):
    texts = [OLD, NEW, "Maya moved to Lübeck"]
    keys = [call.store(text)["id"] for text in texts]
    assert [link(call, key) for key in keys] == [keys[1], keys[2], None]


def test_look_alikes_stay_in_a_memory_with_much_else(call):
    texts = [
        "I play tennis on Mondays", "I play the cello on Thursdays",
        "Dentist on 4 May at 10", "Eye doctor on 6 May at 9",
        "Ben goes to Hill School", "Mia goes to Park School",
        "I'm allergic to nuts", "I'm allergic to cats",
        "prod db on 5432", "staging db on 5433",
        "Anna's birthday is 3 May", "Tom's birthday is 3 June",
        "Lena likes sushi", "Lena likes ramen",
    ]  # fmt: skip
    assert all("supersedes" not in call.store(text) for text in texts)


def test_tidying_finds_what_was_imported_in_other_words(call):
    # A memory that arrives with an earlier time is compared by tidying only.
    new = call.store("The standup starts at ten from now on")
    old = call.store("The standup starts at 9:30", created_at=time.time() - DAY)
    answer = call.ok("POST", "/api/memory/tidy", {})
    assert [(pair["older"], pair["newer"]) for pair in answer["pairs"]] == [(old["id"], new["id"])]
    assert call.ok("POST", "/api/memory/tidy", {})["pairs"] == []


def test_what_is_said_now_replaces_what_a_clock_that_was_ahead_dated_after_it(call):
    then, past = time.time() + 400 * 86_400, time.time() - 400 * 86_400
    wrong = call.store("My sister Ada lives in Ghent", created_at=then)["id"]
    call.store("My sister Ada lives in Leuven", created_at=past)
    assert link(call, wrong) is None
    later = call.store("My sister Ada lives in Antwerp")["id"]
    assert link(call, wrong) == later
    [first, *_] = call.ok("GET", "/api/recall?query=where+does+Ada+live")["results"]
    assert first["id"] == later
