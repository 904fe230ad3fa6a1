"""Questions in other words than their answers: concepts, days, introduced names, synonyms."""

import datetime as dt
from typing import Any

import pytest

OTHERS = ("The printer needs paper", "Mia's train leaves at nine", "The plants need water")


def results(call: Any, query: str) -> Any:
    return call.ok("POST", "/api/recall", {"query": query, "explain": True})["results"]


@pytest.mark.parametrize(
    ("text", "question", "met"),
    [
        ("The lease costs 900 a month", "What is the rent?", {"rent": "lease"}),
        ("Mi jefa es Carla", "Who is my boss?", {"boss": "jefa"}),
        ("Our cat sleeps on the sofa", "Which pets do we have?", {"pets": "cat"}),
        ("我的经理是李伟", "Wer ist mein Chef?", {"chef": "经理"}),
    ],
)
def test_a_question_in_other_words_finds_the_answer_and_says_by_which_word(
    call, text, question, met
):
    for other in (*OTHERS, text):
        call.store(other)
    first = results(call, question)[0]
    assert (first["text"], first["parts"]["by"]) == (text, met)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("I'm Imke", "Who am I?"),
        ("I'm Imke", "What is my name?"),
        ("Ich bin Imke", "Wie heiße ich?"),
        ("Hi, I'm Imke", "Wer bin ich?"),
        ("My name is Imke", "¿Quién soy?"),
    ],
)
def test_a_person_who_said_who_they_are_is_found(call, text, question):
    for other in (*OTHERS, text, "I am at the office until six, and I have no keys"):
        call.store(other)
    assert results(call, question)[0]["text"] == text


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Maisie is nine, our terrier", "how old is the dog?"),
        ("Mutter wird im Mai achtzig", "Wie alt ist sie?"),
        ("我對花生過敏", "对什么过敏？"),
    ],
)
def test_ages_and_older_characters_are_understood(call, text, question):
    for other in (*OTHERS, text):
        call.store(other)
    assert results(call, question)[0]["text"] == text


@pytest.mark.parametrize(
    ("introduced", "question"),
    [
        ("Twins: Lina and Tadhg", "anything on the twins?"),
        ("My sons Ben and Tadhg are loud", "anything on my sons?"),
        ("Tadhg's our eldest, fourteen", "anything on our eldest?"),
        ("Tadhg Rees is the head nurse, my boss", "anything on my boss?"),
        ("Dr Tadhg Rees, our landlord, came", "anything on our landlord?"),
        ("Tadhg my brother knits", "anything on my brother?"),
    ],
)
def test_who_is_one_of_several_or_has_a_second_role_is_found_by_it(call, introduced, question):
    for other in (*OTHERS, introduced, "Tadhg missed the ferry again"):
        call.store(other)
    met = {result["text"]: result["parts"]["words"] for result in results(call, question)}
    assert met.get("Tadhg missed the ferry again")


def test_a_phrase_that_says_no_more_than_one_of_its_words_counts_with_it(call):
    for other in (*OTHERS, "Solange, my wife, is from Le Lamentin"):
        call.store(other)
    met = results(call, "Pour qui ma femme fait-elle de la couture ?")[0]["parts"]["words"]
    assert met == ["femme"]


def test_a_word_and_a_phrase_that_has_it_are_too_little_to_be_sure(call):
    call.store("The driving test is on 3 December in Camborne")
    first = results(call, "where do we drive on the last Saturday?")[0]
    assert first["sure"] is False


def test_a_member_of_a_class_does_not_find_the_others(call):
    call.store("Minka, our cat, sleeps all day")
    assert all(not hit["parts"]["by"] for hit in results(call, "Has our dog had a walk?"))


def test_the_word_itself_comes_before_its_concept(call):
    for text in ("The lease was signed in the office", "The rent was signed in the office"):
        call.store(text)
    assert results(call, "rent")[0]["text"] == "The rent was signed in the office"
    assert results(call, "lease")[0]["text"] == "The lease was signed in the office"


def test_what_somebody_is_finds_what_is_said_of_the_name(call):
    for text in (*OTHERS, "Our son Toby started school", "Toby is afraid of wasps"):
        call.store(text)
    texts = {hit["text"] for hit in results(call, "What is my son afraid of?")[:2]}
    assert "Toby is afraid of wasps" in texts
    assert "Toby is afraid of wasps" in {hit["text"] for hit in results(call, "our son")}


def test_synonyms_of_the_configuration_find_what_they_mean(make_daemon, calls_of):
    daemon = make_daemon('--set=recall.synonyms={"the shop": ["storefront-v2"]}').start()
    call = calls_of(daemon)
    for text in (*OTHERS, "storefront-v2 runs on port 8080", "A bakery runs on flour"):
        call.store(text)
    assert results(call, "Which port does the shop use?")[0]["text"].startswith("storefront-v2")
    assert results(call, "the shop")[0]["text"].startswith("storefront-v2")
    call.store("The shop is closed on Mondays")
    texts = [hit["text"] for hit in results(call, "storefront-v2")]
    assert texts[:2] == ["storefront-v2 runs on port 8080", "The shop is closed on Mondays"]


def test_a_word_of_grammar_in_another_language_is_a_word_in_english(call):
    for text, question in [
        ("The van is parked in Elm Street", "van"),
        ("The door of the garage sticks", "garage door"),
        ("Ben drinks oat milk", "What does Ben drink?"),
        ("Dan's ferry sails at noon", "Dan's ferry"),
    ]:
        for other in (*OTHERS, text):
            call.store(other)
        first = results(call, question)[0]
        assert (first["text"], first["sure"]) == (text, True)
        assert {"van", "door", "ben", "dan"} & {*first["parts"]["words"]}


def test_characters_between_the_words_of_a_chinese_question_are_none_of_them(call):
    query = {"query": "我妻子的职业是什么？", "explain": True}
    call.store("我老婆是儿科医生")
    assert call.ok("POST", "/api/recall", query)["understood"]["words"] == ["妻子", "职业"]


def test_an_english_word_is_no_inflected_word_of_another_language(call):
    # In German and Dutch, they are children.
    call.store("We sell two kinds of tea in the shop")
    assert all(not hit["parts"]["by"] for hit in results(call, "where are my children?"))


def test_what_shares_a_concept_alone_tells_nothing_new_of_a_thing(call):
    others = [f"{what} is on shelf {at}" for at, what in enumerate(("Paint", "Glue", "Wax") * 12)]
    for text in ("Filip borrowed my hedge trimmer", "Le debo cien euros a Marcos", *others):
        call.store(text)
    first = results(call, "who has the hedge trimmer?")[0]
    assert (first["text"], first["sure"]) == ("Filip borrowed my hedge trimmer", True)


NOW = "2026-03-18T09:00:00"
FACTS = {
    "The hygienist expects me tomorrow at quarter past ten": "2026-03-17T18:00:00",
    "Mamas Geburtstag wird am 05.04. im Bergpark begangen": "2026-02-10T08:00:00",
    "林的父母四月十二号到多伦多": "2026-02-11T08:00:00",
    "Hannah sits her biology paper on 12 May": "2026-02-12T08:00:00",
    "Choir rehearsals are on Tuesdays from half seven": "2026-02-13T08:00:00",
    "El pasaporte me caduca en septiembre": "2026-02-14T08:00:00",
    "The allotment is plot 27 off Hollin Lane": "2026-02-15T08:00:00",
    "Bramble is allergic to chicken": "2026-02-16T08:00:00",
}


QUESTIONS = {
    "What appointment do I have today?": "hygienist",
    "What are we doing on April 5th?": "Bergpark",
    "Who arrives on the second Sunday in April?": "多伦多",
    "Which exam is on 12/05?": "biology",
    "Where am I on Tuesday evening?": "Choir",
    "Was läuft im September ab?": "pasaporte",
}


def test_a_day_in_a_question_finds_its_memory(call):
    for text, told in FACTS.items():
        call.store(text, created_at=dt.datetime.fromisoformat(told).timestamp())
    for question, part in QUESTIONS.items():
        answer = call.ok("POST", "/api/recall", {"query": question, "now": NOW, "reinforce": False})
        assert part in answer["results"][0]["text"], question
