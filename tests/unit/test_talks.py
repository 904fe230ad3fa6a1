"""What the rules keep of a talk: nothing wrong, nothing useless alone, nothing lost."""

import json
import re
from pathlib import Path

import pytest

from thermocline.daemon.language.extraction.extraction import extract_turns
from thermocline.daemon.language.secrets import clear_turns
from thermocline.daemon.language.speech import Turn, utterances

TALKS = Path(__file__).parents[1] / "benchmarks" / "data" / "talks"


def test_a_frame_is_no_speaker():
    for text in (
        "Translate: Ich wohne in Köln",
        "Corrige: yo vivo en Cádiz",
        "Don't store this: I'm ill",
    ):
        assert [one.role for one in utterances(text)] == [""]


def test_a_secret_given_in_the_next_turn_is_cleared_wherever_it_is_repeated():
    assert clear_turns(["What is the PIN?", "4711", "Thanks", "so 4711 it is"]) == [
        "What is the PIN?", "[password removed]", "Thanks", "so [password removed] it is",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "answer", "secret"),
    [
        ("What's the wifi password?", "Muehle2024! if you need it", "Muehle2024"),
        ("Wie ist das WLAN-Passwort?", "Sonnenblume99, steht am Router", "Sonnenblume99"),
        ("¿Cuál es la contraseña?", "Girasol88, creo", "Girasol88"),
        ("Quel est le mot de passe ?", "Tournesol88", "Tournesol88"),
        ("Have you got the passport?", "The number is XP4417093", "XP4417093"),
    ],
)
def test_a_password_that_answers_a_question_is_cleared(question, answer, secret):
    assert secret not in clear_turns([question, answer])[1]


def test_a_code_that_is_said_to_be_that_of_something_secret_is_removed_before_it():
    said = clear_turns(["The shed opens with 5521.", "ok", "the safe has the same code"])
    assert "5521" not in " ".join(said)


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.soak)])
def test_what_is_kept_of_whole_talks_is_part_of_what_was_said(every):
    """But for names in brackets, quotations, and what a correction takes the place of."""
    in_brackets = re.compile(r" \[[^\]]*\]")
    for path in sorted(TALKS.glob("*.json"))[::every]:
        turns = [Turn(*turn) for turn in json.loads(path.read_text(encoding="utf-8"))["turns"]]
        told = flat(in_brackets.sub("", " ".join(turn.text for turn in turns)))
        for observation in extract_turns(turns):
            bare = in_brackets.sub("", observation.text)
            parts = [
                part for item in bare.split(" → ") for part in re.split(r"(?<=[.!?]) |“…”", item)
            ]
            if observation.event != "correction":
                lost = [part for part in parts if flat(part).rstrip(".?") not in told]
                assert lost == [], observation.text


def flat(text: str) -> str:
    return re.sub(r"[\s\"'“”„’]+", "", text).lower()
