"""A question for a day over the socket finds what was stored for it, in whatever notation."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

NOW = dt.datetime(2026, 3, 18, 9)
FACTS = {
    "The hygienist expects me tomorrow at quarter past ten": dt.datetime(2026, 3, 17, 18),
    "Mamas Geburtstag wird am 05.04. im Bergpark begangen": dt.datetime(2026, 2, 10, 8),
    "林的父母四月十二号到多伦多": dt.datetime(2026, 2, 11, 8),
    "Hannah sits her biology paper on 12 May": dt.datetime(2026, 2, 12, 8),
    "Choir rehearsals are on Tuesdays from half seven": dt.datetime(2026, 2, 13, 8),
    "El pasaporte me caduca en septiembre": dt.datetime(2026, 2, 14, 8),
    "The allotment is plot 27 off Hollin Lane": dt.datetime(2026, 2, 15, 8),
    "Bramble is allergic to chicken": dt.datetime(2026, 2, 16, 8),
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
def test_a_day_in_a_question_finds_its_memory(call: Any, question: str, part: str) -> None:
    for text, told in FACTS.items():
        call.store(text, created_at=told.timestamp())
    answer = call.ok(
        "POST", "/api/recall", {"query": question, "now": NOW.isoformat(), "reinforce": False}
    )
    assert part in answer["results"][0]["text"]
