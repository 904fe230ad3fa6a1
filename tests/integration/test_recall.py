"""Recall over the socket: filters, limits, ways of ranking, and what it tells of itself."""

import time
from math import exp
from typing import Any

import pytest

DAY = 86_400.0
SHELF: dict[str, dict[str, Any]] = {
    "plain": {},
    "episode": {"type": "episodic", "event": "correction", "importance": 0.5},
    "project": {"category": "proj", "tags": ["red", "tall"]},
    "below": {"category": "proj/x", "tags": ["red"]},
    "other": {"category": "projects2"},
    "said": {"source": "chat", "actor": "Ann", "group": "talk", "position": 7},
    "worthy": {"importance": 0.95},
    "faded": {"importance": 0.2, "days": 300},
}


def recall(call: Any, query: str, **options: Any) -> Any:
    return call.ok("POST", "/api/recall", {"query": query, "reinforce": False} | options)


def texts(answer: Any) -> list[str]:
    return [memory["text"] for memory in answer["results"]]


def of(answer: Any, source: str) -> list[Any]:
    return [result for result in answer["results"] if result["source"] == source]


def names(call: Any, **options: Any) -> set[str]:
    """Which of the shelf a search for `lantern` finds."""
    answer = recall(call, "lantern", limit=20, **options)
    return {text.removesuffix(" lantern") for text in texts(answer)}


@pytest.fixture(scope="module")
def shelf(shared_daemon: Any, calls_of: Any) -> Any:
    """Lanterns that differ by one field each; nobody changes them."""
    call, now = calls_of(shared_daemon, "shelf"), time.time()
    for name, fields in SHELF.items():
        given = dict(fields)
        created = now - DAY * given.pop("days", 0.01)
        call.store(f"{name} lantern", created_at=created, **given)
    return call


def test_each_filter_leaves_what_fits_it(shelf):
    for filters, expected in [
        ({}, set(SHELF)), ({"types": ["episodic"]}, {"episode"}),
        ({"types": ["episodic", "semantic"]}, set(SHELF)),
        ({"events": ["correction"]}, {"episode"}), ({"category": "proj"}, {"project", "below"}),
        ({"category": "proj/x"}, {"below"}), ({"tags": ["red"]}, {"project", "below"}),
        ({"tags": ["red", "tall"]}, {"project"}), ({"source": "chat"}, {"said"}),
        ({"actor": "Ann"}, {"said"}), ({"actor": "ann"}, set()), ({"group": "talk"}, {"said"}),
        ({"min_importance": 0.9}, {"worthy"}), ({"tier": "frozen"}, {"faded"}),
        ({"tier": "hot"}, {"worthy"}), ({"tags": ["red"], "category": "proj/x"}, {"below"}),
        ({"actor": "Ann", "source": "mail"}, set()),
    ]:  # fmt: skip
        assert names(shelf, **filters) == expected


def test_merged_memories_answer_only_if_they_are_included(call):
    old, new = call.store("the lantern is lit"), call.store("the lantern is lit at night")
    call.ok("POST", f"/api/memory/{old['id']}/merge", {"into": new["id"]})
    assert texts(recall(call, "lantern")) == ["the lantern is lit at night"]
    both = recall(call, "lantern", include=["merged"], fields="full")["results"]
    assert {result["id"]: result["memory"]["merged_into"] for result in both} == {
        old["id"]: new["id"],
        new["id"]: None,
    }


def test_now_decides_what_has_expired_and_what_yesterday_is(call):
    call.store("the lantern is lent", ttl="1h")
    later = time.time() + 7_200
    assert texts(recall(call, "lantern")) == ["the lantern is lent"]
    assert texts(recall(call, "lantern", now=later)) == []
    assert texts(recall(call, "lantern", now=later, include=["expired"])) == ["the lantern is lent"]
    call.store("the boat left", created_at="2024-03-04T12:00:00")
    yesterday = recall(call, "what happened yesterday?", now="2024-03-05T12:00:00", explain=True)
    assert yesterday["understood"]["dates"] == ["yesterday"]
    assert texts(yesterday) == ["the boat left"]
    assert texts(recall(call, "what happened yesterday?", now="2024-03-07T12:00:00")) == []


def test_now_decides_how_old_a_memory_is(call):
    call.store("the lantern", created_at=time.time() - DAY)
    young, old = (
        recall(call, "lantern", explain=True, fields="full", now=time.time() + later)["results"][0]
        for later in (0.0, 100 * DAY)
    )
    assert young["parts"]["recency"] > 0.9
    assert old["parts"]["recency"] < 0.01
    assert old["memory"]["score"] < young["memory"]["score"]


def test_an_answer_keeps_to_its_limits(shelf):
    assert len(recall(shelf, "lantern")["results"]) == 5
    assert len(recall(shelf, "lantern", limit=3)["results"]) == 3
    within = texts(recall(shelf, "lantern", limit=20, max_tokens=9))
    assert 2 <= len(within) < len(SHELF)
    assert sum(-(-len(text) // 4) for text in within) <= 9


def test_the_tree_answers_alone_with_evoclaws_scores(call):
    for number in range(3):
        call.store(f"beds {number}", category="home/garden", importance=0.3 * (number + 1))
    call.store("the garden gate", category="places")
    call.store("garden notes", category="home/kitchen")
    by_words = recall(call, "garden")
    assert by_words["mode"] == "keyword"
    assert "the garden gate" in texts(by_words)
    answer = recall(call, "garden shed", mode="tree", explain=True)
    assert answer["mode"] == "tree"
    assert texts(answer) == ["beds 2", "beds 1", "beds 0"]
    # Half of the words, three warm memories, used of late.
    relevance = round(1 / 2 * 1.3 * 1.5, 3)
    assert [memory["relevance"] for memory in answer["results"]] == [relevance] * 3
    assert {memory["search_method"] for memory in answer["results"]} == {"keyword-tree"}
    assert {memory["parts"]["path"] for memory in answer["results"]} == {"home/garden"}
    [path] = answer["understood"]["tree"]
    assert path == {
        "path": "home/garden",
        "relevance": relevance,
        "words": ["garden"],
        "trace": ["root", "home", "home/garden"],
    }


def test_a_category_that_the_question_names_adds_what_has_none_of_its_words(call):
    call.store("beds are dug in March", category="home/garden")
    call.store("the shed is locked")
    named = recall(call, "garden shed")["tree"]
    assert [(path["path"], path["trace"][0]) for path in named] == [("home/garden", "root")]
    assert "tree" not in recall(call, "shed locked")
    answer = recall(call, "garden shed", explain=True)
    assert answer["tree"] == named
    [beds] = [memory for memory in answer["results"] if memory["category"] == "home/garden"]
    assert (beds["search_method"], beds["parts"]["words"]) == ("keyword-tree", [])
    assert beds["parts"]["signals"]["path"] > 0


@pytest.fixture
def talk(call: Any) -> Any:
    """A conversation of two about an otter, between others."""
    said = [
        "Hello Bo", "Did you see the otter?", "Yes, in Kiel last May", "Lovely", "It swam away",
        "Shall we have lunch?", "Gladly", "Soup again",
    ]  # fmt: skip
    turns = [
        {"text": text, "actor": ("Ann", "Bo")[at % 2], "group": "talk", "position": at}
        for at, text in enumerate(said)
    ]
    call.ok("POST", "/api/memory/batch", {"memories": [*turns, {"text": "otters eat fish"}]})
    return call


def test_an_explanation_adds_up_to_what_ranks(talk):
    answer = recall(talk, "when did Bo see the otter?", limit=20, explain=True)
    only_match = {"match": 1, "recency": 0, "importance": 0}
    found = recall(talk, "when did Bo see the otter?", limit=20, explain=True, weights=only_match)[
        "results"
    ]
    assert len(found) > 2
    for memory in found:
        signals = sum(memory["parts"]["signals"].values())
        assert memory["parts"]["match"] == pytest.approx(1 - exp(-1.5 * signals), abs=1e-3)
        assert memory["relevance"] == pytest.approx(memory["parts"]["match"], abs=1e-3)
    relevances = [memory["relevance"] for memory in found]
    assert relevances == sorted(relevances, reverse=True)
    assert {memory["id"] for memory in found} == {memory["id"] for memory in answer["results"]}


def test_an_explanation_names_words_lenders_and_what_was_understood(talk):
    answer = recall(talk, 'Bo saw the otter in May 2023 -zebra "the otter"', limit=20, explain=True)
    by_text = {memory["text"]: memory for memory in answer["results"]}
    asking = by_text["Did you see the otter?"]
    assert set(asking["parts"]["words"]) >= {"otter", "saw"}
    assert asking["parts"]["signals"]["phrase"] > 0
    told = answer["understood"]
    assert told["people"] == ["Bo"]
    assert told["excluded"] == [["zebra"]]
    assert told["phrases"] == [["the", "otter"]]
    assert len(told["dates"]) == 1
    plain = recall(talk, "who saw an otter?", limit=20, explain=True)
    by_text = {memory["text"]: memory for memory in plain["results"]}
    reply = by_text["Yes, in Kiel last May"]
    assert reply["parts"]["words"] == []
    assert asking["id"] in reply["parts"]["neighbours"]
    assert "understood" not in recall(talk, "otter")


def test_what_is_superseded_follows_its_successor_and_says_so(call):
    now = time.time()
    old = call.store("Ana lives in Berlin", subject="Ana", created_at=now - 40 * DAY)
    new = call.store("Ana no longer lives in Berlin", subject="Ana", created_at=now - DAY)
    assert new["supersedes"] == [old["id"]]
    only_match = {"match": 1, "recency": 0, "importance": 0}
    for weights in ({}, only_match):
        answer = recall(call, "Ana lives in Berlin", weights=weights, fields="full")
        found = of(answer, "memory")
        assert [memory["id"] for memory in found] == [new["id"], old["id"]]
        assert ["outdated" in memory for memory in found] == [False, True]
        assert found[1]["memory"]["superseded_by"] == new["id"]


def test_the_episode_of_a_talk_whose_fact_was_replaced_follows_what_replaced_it(call):
    older, newer = "Ich wohne in Hamburg", "Ich bin nach Bremen gezogen"
    for talk, told in enumerate((older, "Mein Hund heißt Balu", newer)):
        turns = [{"role": "user", "text": told}, {"role": "assistant", "text": "Alles klar."}]
        body = {"conversation": f"talk {talk}", "turns": turns, "end": True, "wait": True}
        call.ok("POST", "/api/observe", body)

    def first(query: str) -> str:
        return call.ok("POST", "/api/recall", {"query": query})["results"][0]["text"]

    assert first("Wo wohne ich?") == newer
    assert older in first("Wo habe ich früher gewohnt?")
    assert "Balu" in first("Wie heißt mein Hund?")


@pytest.mark.parametrize(
    ("older", "newer", "now", "before"),
    [
        (
            "Our babysitter is Ottilie from the second floor.",
            "Ottilie went to Leeds, so Mrs Quist minds the boy in the evenings.",
            "Who is our babysitter?",
            "Who was our babysitter?",
        ),
        (
            "My kayak is stored at Henrik's.",
            "The kayak hangs in our stairwell, Henrik had no room.",
            "Where is my kayak?",
            "Where did I keep the kayak?",
        ),
        (
            "Zum Abendbrot esse ich Käsebrote.",
            "Abends gibt es bei mir Suppe zum Abendbrot.",
            "Was esse ich zum Abendbrot?",
            "Was habe ich vor der Diät zum Abendbrot gegessen?",
        ),
    ],
)
def test_a_newer_statement_that_tells_no_change_comes_first_unless_the_past_is_asked_for(
    call, older, newer, now, before
):
    grown_up(call)
    time_of_older = time.time() - 40 * DAY
    call.store(older, created_at=time_of_older)
    call.store(newer, created_at=time_of_older + DAY)
    assert texts(recall(call, now, limit=20))[:2] == [newer, older]
    assert texts(recall(call, before, limit=20))[0] == older


def test_a_question_that_was_asked_before_does_not_come_before_its_answer(call):
    flight = "Maya's flight lands on Friday at 18:40"
    call.store(flight)
    asked = "User asked: when does Maya arrive? My name is Robin."
    call.ok("POST", "/api/episodes", {"summary": asked})
    answer = recall(call, "when does Maya arrive?")
    assert [one["text"] for one in answer["results"]][:2] == [flight, asked]
    assert answer["confidence"] == "sure"
    turns = [{"role": "user", "text": "when does Maya arrive?"}]
    turns += [{"role": "assistant", "text": "I will look it up."}]
    call.ok("POST", "/api/turns", {"conversation": "chat", "turns": turns})
    again = recall(call, "When does Maya arrive?")["results"]
    assert (again[0]["text"], again[0]["sure"]) == (flight, True)
    assert [one["sure"] for one in again if one["text"].startswith("when")] == [False]
    # Where nothing answers, that it was asked is the best that is known.
    [first, *_] = recall(call, "when does Robin arrive?")["results"]
    assert (first["text"], first["sure"]) == (asked, False)


def test_of_two_statements_about_one_thing_only_the_one_that_is_asked_for_is_sure(call):
    grown_up(call)
    time_of_older = time.time() - 40 * DAY
    older = "The furnace is serviced by the firm Kessler every October"
    newer = "Kessler went bankrupt, Therma looks after the furnace now"
    call.store(older, created_at=time_of_older)
    call.store(newer, created_at=time_of_older + DAY)
    by_text = {
        query: {result["text"]: result["sure"] for result in recall(call, query)["results"]}
        for query in ("Who services the furnace?", "Who serviced the furnace before?")
    }
    now, before = by_text.values()
    assert (now[newer], now[older]) == (True, False)
    assert (before[newer], before[older]) == (False, True)


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        # Three phrases for one concept are met once.
        ("I have worked at Nodalex since May", "what does she do for a living?"),
        ("I play the cello in an amateur orchestra", "what instrument does my sister play?"),
        ("Invoice 1002 was paid", "was invoice 1003 paid?"),
    ],
)
def test_what_is_known_of_somebody_else_is_not_sure(call, stored, query):
    grown_up(call)
    call.store(stored)
    assert [result["text"] for result in recall(call, query)["results"] if result["sure"]] == []


@pytest.mark.parametrize(
    ("right", "wrong", "query"),
    [
        # "Do", "we" and "has" are words of grammar, whatever else they mean elsewhere.
        ("El coche es gris", "Casa do Rio has closed, we now stay uphill", "what car do we have?"),
        ("Ceramics is on Fridays", "I'd rather sit outside these days", "what day is ceramics?"),
        ("The laptop has 32 GB of RAM", "The railcard costs 58 euros", "how much RAM have I got?"),
        # A street is no medicine because its name ends in "asse".
        ("I take 50 mg of losartan", "Der Arzt ist in der Lindengasse", "which pills do I take?"),
        ("I run on Sundays", "The wedding was on 12 September 2015", "do I run on Saturdays?"),
        ("我对花生过敏", "I fill the bread tin on Mondays", "can I eat peanut butter?"),
        ("My wife is called Ineke", "Unser Vermieter heißt Brand", "Wie heißt meine Frau?"),
    ],
)
def test_the_topic_of_a_question_outweighs_how_it_is_asked(call, right, wrong, query):
    grown_up(call)
    call.store(wrong)
    call.store(right)
    assert texts(recall(call, query))[0] == right


@pytest.mark.parametrize(
    ("right", "other", "query"),
    [
        ("My plumber is Kurt", "The electrician is Hans now", "who is my plumber?"),
        ("Ich bin Linkshänder", "Mi gata se llama Pelusa y tiene once años", "am I right-handed?"),
        ("Filip borrowed the hedge trimmer", "Le debo cien euros", "who has my hedge trimmer?"),
        ("The bakery is closed on Mondays", "He is off until Monday", "when is the bakery closed?"),
        ("Bruno turned six", "Bruno's new school is at the hill", "how old is Bruno?"),
        ("Lena's birthday is on 4 June", "Lea's birthday is on 4 June", "when is Lena's birthday?"),
        ("Invoice 1003 was paid", "Invoice 1004 was paid", "was invoice 1003 paid?"),
        ("Ada is allergic to nuts", "Ada lives in Bonn now", "what is Ada allergic to?"),
        ("Mum's birthday is on 4 June", "Mum moved to Leeds last week", "when is Mum's birthday?"),
        ("Oma mag keinen Koriander", "Oma wohnt jetzt in Bonn", "was mag Oma nicht?"),
        ("I sold the Transit and got a Vivaro", "Rory is selling to Spain now", "which van is it?"),
        ("Der Laden ist neuerdings zu", "Farbe gibt es neuerdings in Murano", "Ist der Laden zu?"),
    ],
)
def test_a_newer_statement_about_something_else_replaces_nothing(call, right, other, query):
    call.store(right, created_at=time.time() - DAY)
    call.store(other)
    assert texts(recall(call, query))[0] == right


def test_a_value_that_is_not_asked_for_is_less_likely_the_answer(call):
    call.store("Ida had the garage painted for 640 euros")

    def worth(query: str) -> float:
        [found] = recall(call, query, explain=True)["results"]
        return found["parts"]["signals"].get("wanted", 0.0)

    assert worth("Where is the garage?") < 0
    assert worth("How much was the garage?") > 0
    assert worth("What were 640 euros for, the garage?") == worth("garage") == 0


def test_what_repeats_a_better_result_yields_to_what_says_more(call):
    other = "Tallow is what the ferry line paints the hull of Gannet with"
    copies = (
        "Gannet deploys from the branch live at ten",
        "At ten gannet deploys from the branch live.",
    )
    for text in (other, *copies):
        call.store(text, force=True)
    query = "which branch is live for gannet and what about its hull"
    answer = recall(call, query, limit=3)
    assert texts(answer)[0] in copies
    assert texts(answer)[1] == other
    relevances = [result["relevance"] for result in answer["results"]]
    assert relevances == sorted(relevances, reverse=True)


def test_a_name_that_looks_like_a_form_of_in_is_a_name(call):
    for text in (
        "Back in Ghent in the spring, in a flat in the old town",
        "In the morning in the office I answer in short",
        "My daughter Ines is seven and can't have any nuts",
        "Inés sube al tren de las ocho",
    ):
        call.ok("POST", "/api/memory", {"text": text})
    for query in ("what must Ines not eat?", "Inés"):
        assert {text[:4] for text in texts(recall(call, query))[:2]} == {"My d", "Inés"}
    assert len(texts(recall(call, "Inés"))) == 2


def test_key_values_answer_among_the_memories(call):
    call.ok("PUT", "/api/kv/wifi.password", {"value": "blue lantern 7"})
    call.ok("PUT", "/api/kv/door", {"value": "1234"})
    call.store("the lantern is green")
    answer = recall(call, "what is the wifi password?", explain=True)
    pair = answer["results"][0]
    assert (pair["id"], pair["key"]) == ("kv:wifi.password", "wifi.password")
    assert (pair["source"], pair["text"]) == ("pair", "wifi.password: blue lantern 7")
    assert set(pair["parts"]["words"]) == {"wifi", "password"}
    assert 0 < pair["relevance"] <= 1
    assert answer["searched"] == {"memory": 1, "pair": 2}
    assert "why" not in answer
    both = recall(call, "lantern")
    assert {result["source"] for result in both["results"]} == {"memory", "pair"}
    assert of(recall(call, "lantern", actor="Ann"), "pair") == []


def test_a_pair_is_found_by_its_value_of_now_in_any_form_of_the_word(call):
    def keys(query: str) -> list[str]:
        return [pair["key"] for pair in of(recall(call, query), "pair")]

    call.ok("PUT", "/api/kv/boat.berth", {"value": "moored below the northern lighthouses"})
    call.ok("PUT", "/api/kv/haus_nummer", {"value": "zwölf"})
    assert keys("mooring lighthouse") == ["boat.berth"]
    assert keys("nummer") == keys("Zwolf") == ["haus_nummer"]
    call.ok("PUT", "/api/kv/boat.berth", {"value": "on the trailer"})
    assert keys("lighthouse") == []
    assert keys("trailer") == keys("boats") == ["boat.berth"]
    call.ok("DELETE", "/api/kv/boat.berth")
    assert keys("trailer") == []
    call.ok("PUT", "/api/kv/boat.berth", {"value": "sold"})
    assert keys("boat") == ["boat.berth"]


def test_an_empty_answer_says_why_in_a_sentence(shelf):
    for options, reason in [
        ({"query": "zebra"}, "stored has a word of it, or a word that means the same: zebra"),
        ({"query": "lantern", "actor": "Nobody"}, "the filters leave none"),
        ({"query": "zebra", "actor": "Ann"}, "nothing stored has a word of it"),
        ({"query": "?!"}, "no words to look for"),
        ({"query": "-lantern"}, "no words to look for"),
        ({"query": ""}, "no words to look for"),
        ({"query": "lantern", "mode": "tree"}, "no category of the tree"),
    ]:
        answer = recall(shelf, **options)
        assert answer["results"] == []
        assert reason in answer["why"]


def grown_up(call: Any) -> None:
    """Store so many other things that what no memory knows tells against an answer."""
    others = [{"text": f"buoy {number} was painted in week {number % 50}"} for number in range(100)]
    call.ok("POST", "/api/memory/batch", {"memories": others})


@pytest.mark.parametrize(
    "query",
    [
        "quarterly lantern subscription invoices overdue",
        "lantern a1 b2 c3 d4 e5 f6 g7 h8 i9 j1 k2 l3",
    ],
)
def test_what_is_unlikely_to_answer_is_unsure_and_not_lost(call, query):
    grown_up(call)
    for number in range(20):
        call.store(f"the lantern {number} hangs beside the door of the boat house")
    for limits, most in (({}, 5), ({"limit": 20}, 20), ({"limit": 20, "min_relevance": 0}, 20)):
        answer = recall(call, query, **limits)
        assert (answer["confidence"], "why" in answer) == ("unsure", False)
        assert len(answer["results"]) == most
        assert not any(result["sure"] for result in answer["results"])
    sure = recall(call, "which lantern hangs beside the door of the boat house?", limit=20)
    assert (sure["confidence"], len(sure["results"])) == ("sure", 20)
    none = recall(call, "zebra")
    assert (none["confidence"], none["results"]) == ("none", [])


def test_what_the_call_holds_for_too_irrelevant_is_dropped_with_the_reason(shelf):
    every = recall(shelf, "lantern episode", limit=20)["results"]
    best = max(hit["relevance"] for hit in every)
    least = min(hit["relevance"] for hit in every)
    assert least < best
    kept = recall(shelf, "lantern episode", limit=20, min_relevance=best - 1e-3)["results"]
    assert 0 < len(kept) < len(every)
    nothing = recall(shelf, "zebra lantern giraffe", min_relevance=1)
    assert nothing["results"] == []
    assert "nothing is as relevant as required" in nothing["why"]


def test_an_empty_memory_says_that_it_is_empty(call):
    call.ok("PUT", "/api/kv/door", {"value": "1234"})
    assert recall(call, "lantern")["why"] == "nothing is stored yet"


def test_a_use_is_a_sure_result_once_an_hour(call, eventually):
    grown_up(call)
    door, harbour = (
        call.store(text)["id"]
        for text in ("the lantern hangs beside the door", "the harbour closes at nine")
    )

    def uses(memory: str) -> int:
        return int(call.ok("GET", f"/api/memory/{memory}")["access_count"])

    unsure = recall(call, "quarterly harbour subscription invoices overdue", reinforce=True)
    assert (unsure["confidence"], unsure["results"][0]["id"]) == ("unsure", harbour)
    for _ in range(3):
        recall(call, "what hangs beside the door?", reinforce=True)
        eventually(lambda: uses(door) == 1, "a sure result counts as used")
    metrics = "/api/metrics"
    eventually(lambda: call.ok("GET", metrics)["retrieval_count"] == 4, "all answers are counted")
    assert (uses(door), uses(harbour)) == (1, 0)


def test_scalyclaws_search_takes_the_same_way(shelf):
    found = shelf.ok("GET", "/api/memory/search?q=lantern&topK=20&tags=red,tall")["results"]
    assert [memory["content"] for memory in found] == ["project lantern"]
    assert all(0 < memory["relevance"] <= 1 for memory in found)
    assert len(shelf.ok("GET", "/api/memory/search?q=lantern&topK=2")["results"]) == 2


def test_the_url_takes_what_the_body_takes(shelf):
    options = "tier=frozen&mode=keyword&preset=tinyclaw&min_importance=0.1&include=merged"
    answer = shelf.ok("GET", f"/api/recall?query=lantern&{options}&max_tokens=50&reinforce=false")
    assert texts(answer) == ["faded lantern"]


@pytest.mark.parametrize("others", [0, 2, 10])
def test_a_young_memory_answers_though_it_knows_few_words(call, others):
    for number in range(others):
        call.store(f"The {number}. of the meetings took place in Bergen")
    call.store("Decided to paint the hull green before the season begins")
    call.store("Maya's flight lands on Friday at 18:40")
    assert "hull green" in texts(recall(call, "what colour will the hull have?"))[0]
    assert "18:40" in texts(recall(call, "when does Maya arrive?"))[0]
    assert not recall(call, "quantum chromodynamics")["results"]


def test_the_archive_is_asked_and_listed_by_itself(calls_of, make_daemon):
    call = calls_of(make_daemon("--set=warm.max_kb=1").start())
    for number in range(20):
        call.store(f"boat {number} " + "x" * 100, importance=number / 20, created_at=10**9 + number)
    page = call.ok("GET", "/api/cold?limit=3")
    assert len(page["results"]) == 3
    assert page["total"] >= 10
    assert all(memory["archived"] for memory in page["results"])
    warm, cold = (call.ok("GET", f"/api/memory?archived={word}") for word in ("false", "true"))
    assert (warm["total"] + cold["total"], cold["total"]) == (20, page["total"])
    times = [memory["created_at"] for memory in page["results"]]
    assert times == sorted(times, reverse=True)
    pages = [call.ok("GET", f"/api/cold?limit=2&offset={at}") for at in (0, 2)]
    ids = [memory["id"] for page in pages for memory in page["results"]]
    assert len(set(ids)) == 4
    hits = call.ok("GET", "/api/cold?query=boat&limit=5")
    assert len(hits["results"]) == 5
    assert hits["total"] == page["total"]
    assert call.ok("GET", "/api/cold?query=zebra") == {"results": [], "total": 0}
    assert len(recall(call, "boat", limit=100)["results"]) == 20


def test_a_search_of_the_archive_takes_the_candidates_of_the_configuration(calls_of, make_daemon):
    call = calls_of(make_daemon("--set=warm.max_kb=1", "--set=recall.candidates=10").start())
    for number in range(30):
        call.store(f"boat {number} " + "x" * 100, importance=0.1, created_at=10**9 + number)
    assert call.ok("GET", "/api/cold?limit=1")["total"] > 10
    assert call.ok("GET", "/api/cold?query=boat&limit=1")["total"] == 10
