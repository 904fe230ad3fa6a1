"""A question for a day over the socket finds what was stored for it, in whatever notation."""

import datetime as dt

import pytest

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


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("What appointment do I have today?", "hygienist"),
        ("What are we doing on April 5th?", "Bergpark"),
        ("Who arrives on the second Sunday in April?", "多伦多"),
        ("Which exam is on 12/05?", "biology"),
        ("Where am I on Tuesday evening?", "Choir"),
        ("Was läuft im September ab?", "pasaporte"),
    ],
)
def test_a_day_in_a_question_finds_its_memory(call, question, part):
    for text, told in FACTS.items():
        call.store(text, created_at=dt.datetime.fromisoformat(told).timestamp())
    answer = call.ok("POST", "/api/recall", {"query": question, "now": NOW, "reinforce": False})
    assert part in answer["results"][0]["text"]
