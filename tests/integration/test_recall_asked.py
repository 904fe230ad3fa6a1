"""Questions about a day, a person or nothing that is known, as people ask them, over the socket."""

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

DAY = 86_400.0
# A Thursday.
NOW = time.mktime((2026, 11, 26, 15, 0, 0, 0, 0, -1))
OTHERS = (
    "the printer needs paper", "lunch at the canteen", "invoice {} was paid", "bought {} apples",
    "the train was {} minutes late", "fixed bug {} in the parser", "watered the plants",
    "called the bank about the loan", "the heating is set to {} degrees", "deployed version {}",
)  # fmt: skip


def at(month: int, day: int, hour: int = 12) -> float:
    return time.mktime((2026, month, day, hour, 0, 0, 0, 0, -1))


TOLD = [
    {"text": "The new kitchen was delivered and two doors were missing", "created_at": at(11, 21)},
    {"text": "Signed the lease for the studio", "created_at": at(11, 21, 17)},
    {"text": "Grandfather's surgery went well", "created_at": at(11, 25, 10)},
    {"text": "Agreed to drop the old interface", "created_at": at(11, 25, 18)},
    {"text": "Started the migration to the new cluster", "created_at": at(11, 17)},
    {"text": "Won the regional bake-off", "created_at": at(11, 19)},
    {"text": "Maya is the new designer in Berlin", "created_at": at(8, 2)},
    {"text": "Maya prefers tea over coffee", "created_at": at(3, 2)},
    {"text": "The concert of the choir is on 12 December", "created_at": at(10, 4)},
]
SAID = [
    {"text": "I will send the drafts on Friday", "actor": "Maya", "group": "chat", "position": 0},
    {"text": "Sounds good to me", "actor": "Tom", "group": "chat", "position": 1},
]
A_DAY = (
    "what happened on 21 November?", "what did I do on November 21st?", "21 November",
    "what was going on on the 21st of November 2026?", "anything noted for 21 November?",
    "was war am 21. November?", "was ist am 21.11. passiert?",
    "¿qué pasó el 21 de noviembre?", "¿qué hice el 21 de noviembre?",
)  # fmt: skip
YESTERDAY = (
    "what happened yesterday?", "what did we talk about yesterday?", "yesterday",
    "what did I tell you yesterday?", "anything new yesterday?",
    "was ist gestern passiert?", "was habe ich gestern gemacht?", "¿qué pasó ayer?",
    "¿qué hicimos ayer?",
)  # fmt: skip
LAST_WEEK = (
    "what happened last week?", "what did we do last week?", "last week", "summarise last week",
    "what did I work on last week?", "was war letzte Woche?", "was haben wir letzte Woche gemacht?",
    "¿qué pasó la semana pasada?", "¿qué hicimos la semana pasada?",
)  # fmt: skip
A_PERSON = (
    "tell me about Maya", "who is Maya?", "what do you know about Maya?", "Maya",
    "what did Maya say?", "anything about Maya?", "erzähl mir von Maya", "wer ist Maya?",
    "was weißt du über Maya?", "háblame de Maya", "¿quién es Maya?", "¿qué sabes de Maya?",
)  # fmt: skip


def recall(call: Any, query: str) -> Any:
    return call.ok("POST", "/api/recall", {"query": query, "reinforce": False, "now": NOW})


def wrong(
    call: Any, queries: tuple[str, ...], belongs: Callable[[Any], bool], least: int
) -> list[tuple[str, list[str]]]:
    """The questions whose answer has something else in it, or too little."""
    answers = {query: recall(call, query)["results"] for query in queries}
    return [
        (query, [result["text"] for result in results])
        for query, results in answers.items()
        if len(results) < least or not all(map(belongs, results))
    ]


def wrong_first(
    call: Any, queries: tuple[str, ...], belongs: Callable[[Any], bool], first: int
) -> list[tuple[str, list[str]]]:
    """The questions whose first results have something else among them."""
    answers = {query: recall(call, query)["results"] for query in queries}
    return [
        (query, [result["text"] for result in results])
        for query, results in answers.items()
        if len(results) < first or not all(map(belongs, results[:first]))
    ]


def within(first: float, last: float) -> Callable[[Any], bool]:
    return lambda memory: first <= memory["created_at"] < last


def store(call: Any, memories: list[dict[str, Any]]) -> None:
    for begin in range(0, len(memories), 500):
        call.ok("POST", "/api/memory/batch", {"memories": memories[begin : begin + 500]})


def others(number: int) -> list[dict[str, Any]]:
    made = random.Random(4)
    return [
        {
            "text": made.choice(OTHERS).format(made.randrange(9_999)),
            "created_at": NOW - made.uniform(0.01, 600) * DAY,
            "category": made.choice(("home", "work", "work/code")),
        }
        for _ in range(number)
    ]


@pytest.mark.parametrize("number", [40, 300])
def test_a_time_or_a_person_alone_is_answered_by_what_is_of_it(call, number):
    store(call, [*others(number), *TOLD])
    assert not wrong(call, A_DAY, within(at(11, 21, 0), at(11, 22, 0)), 2)
    assert not wrong(call, YESTERDAY, within(at(11, 25, 0), at(11, 26, 0)), 2)
    assert not wrong(call, LAST_WEEK, within(at(11, 16, 0), at(11, 23, 0)), 2)
    assert not wrong_first(call, A_PERSON, lambda memory: "Maya" in memory["text"], 2)
    store(call, SAID)
    assert not wrong_first(
        call, A_PERSON, lambda memory: "Maya" in memory["text"] or memory.get("actor") == "Maya", 3
    )


def test_a_day_is_answered_by_what_was_said_to_be_on_it(call):
    store(call, TOLD)
    [concert] = recall(call, "what is on 12 December?")["results"]
    assert "choir" in concert["text"]


def test_a_time_of_which_nothing_is_stored_is_said_to_be_empty(call):
    store(call, TOLD)
    answer = recall(call, "what happened on 3 November 2026?")
    assert answer["results"] == []
    assert answer["why"] == "nothing is stored of 'on 3 November 2026'"
    assert "'im September 2026'" in recall(call, "was war im September 2026?")["why"]


def test_a_topic_beside_the_time_still_counts(call):
    store(call, TOLD)
    assert "lease" in recall(call, "which lease was signed last week?")["results"][0]["text"]


def test_a_german_participle_finds_the_other_forms_of_its_verb(call):
    store(call, [*others(40), {"text": "Wir imkern am Waldrand"}])
    assert "imkern" in recall(call, "Wo haben wir geimkert?")["results"][0]["text"]


def test_what_was_true_before_is_not_held_back_for_what_is_true_now(call):
    for days, drink in ((200, "black coffee"), (2, "mint tea")):
        call.store(
            f"Noor drinks {drink} in the mornings", category="tastes", created_at=NOW - days * DAY
        )
    assert "mint" in recall(call, "what does Noor drink in the mornings?")["results"][0]["text"]
    before = recall(call, "what did Noor drink in the mornings before mint tea?")["results"]
    assert "black coffee" in " ".join(one["text"] for one in before)


def test_a_week_from_a_day_is_answered_by_what_is_in_it(call):
    store(call, TOLD)
    assert "choir" in recall(call, "plan my week from 8 December")["results"][0]["text"]


def test_what_comes_before_a_change_asks_for_what_was(call):
    call.store("the house is heated with an oil boiler", created_at=NOW - DAY)
    call.store("the house is heated with a heat pump now", created_at=NOW)
    for query in ("what heated the house before the pump?", "what did I first say heats it?"):
        assert "oil" in recall(call, query)["results"][0]["text"], query
    assert "pump" in recall(call, "what do we heat the house with?")["results"][0]["text"]


def test_the_word_appointment_need_not_stand_beside_its_time(call):
    call.store("The dentist is on 3 December at nine")
    call.store("Am Dienstag um zehn Uhr zum Zahnarzt")
    for query in ("when is my dentist appointment?", "wann ist mein Termin beim Zahnarzt?"):
        assert recall(call, query)["confidence"] == "sure", query
    assert recall(call, "when is my eye appointment?")["confidence"] != "sure"


KEPT = (
    "I won't store the key in the notes", "Lena's birthday is on 3 May", "Bo takes shoe size 44",
    "Der Schlüssel liegt beim Nachbarn", "El contrato con Sevilla termina en julio",
    "打印机的供应商是晨星电子",
)  # fmt: skip


@pytest.mark.parametrize("number", [0, 300])
def test_what_nothing_answers_is_never_sure_in_any_language(call, number):
    store(call, [*others(number), *({"text": text} for text in KEPT)])
    for query in (
        "quantum chromodynamics", "What is the capital of Mongolia?", "Who won the chess olympiad?",
        "Welche Farbe hat das neue Auto?", "¿Quién pintó el garaje?", "鲸鱼的寿命有多长？",
    ):  # fmt: skip
        answer = recall(call, query)
        assert answer["confidence"] in {"unsure", "none"}, query
        assert len(answer["results"]) <= 5
        assert ("why" in answer) == (answer["confidence"] == "none")


def test_what_is_known_of_another_is_less_relevant(call):
    store(call, [*others(100), *({"text": text} for text in KEPT)])
    his = recall(call, "What is Bo's shoe size?")
    hers = recall(call, "What is Lena's shoe size?")
    assert his["confidence"] == "sure"
    assert hers["results"][0]["relevance"] < 0.9 * his["results"][0]["relevance"]


def test_what_is_known_answers_in_any_language(call):
    store(call, [*others(40), *({"text": text} for text in KEPT)])
    for query, part in (
        ("When is Lena's birthday?", "3 May"),
        ("Wo liegt der Schlüssel?", "Nachbarn"),
        ("¿Cuándo termina el contrato con Sevilla?", "julio"),
        ("打印机的供应商是哪一家？", "晨星"),
    ):
        assert part in recall(call, query)["results"][0]["text"]


def test_how_to_answer_is_nothing_that_is_asked_for(call):
    store(call, [{"text": "My bicycle is called Blitz"}, *others(20)])
    for question in (
        "What is my bicycle called? Answer with the name alone.",
        "Please be brief. What's the name of my bicycle?",
        "Wie heißt mein bicycle? Antworte nur mit dem Namen.",
    ):
        found = call.ok("POST", "/api/recall", {"query": question, "limit": 1})
        assert [result["text"] for result in found["results"]] == ["My bicycle is called Blitz"]
