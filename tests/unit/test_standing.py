"""Which statements are recognised as standing: those of a set in five languages, and notes.

Every third statement of the set is held back: the rules were not adapted to it. The notes are
meant to be hard: they tell rules, limits and health in passing, beside others with the same words.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from thermocline.daemon.language.standing import is_standing_statement

DATA = Path(__file__).parent.parent / "data"
SET = json.loads((DATA / "standing.json").read_text("utf-8"))
NOTES = json.loads((DATA / "standing_notes.json").read_text("utf-8"))
HALVES = {
    "development": [entry for at, entry in enumerate(SET) if at % 3 != 2],
    "held back": [entry for at, entry in enumerate(SET) if at % 3 == 2],
}


def test_statements_that_hold_are_told_from_those_that_do_not():
    for half, entries in HALVES.items():
        wrong = [
            entry for entry in entries if is_standing_statement(entry["text"]) != entry["standing"]
        ]
        missed = [entry["text"] for entry in wrong if entry["standing"]]
        mistaken = [entry["text"] for entry in wrong if not entry["standing"]]
        standing = sum(entry["standing"] for entry in entries)
        print(
            f"{half}: {standing - len(missed)} of {standing} recognised,"
            f" {len(mistaken)} of {len(entries) - standing} others taken for standing"
        )
        assert len(missed) <= standing / 10, missed
        assert len(mistaken) <= (len(entries) - standing) / 10, mistaken


def test_most_of_what_stands_is_recognised_as_people_type_it_and_few_others():
    for fitted, least in ((True, 0.9), (False, 0.72)):
        notes = [note for note in NOTES if note["fitted"] is fitted]
        taken = [note for note in notes if is_standing_statement(note["text"])]
        standing = sum(note["standing"] for note in notes)
        right = sum(note["standing"] for note in taken)
        mistaken = [note["text"] for note in taken if not note["standing"]]
        print(f"fitted {fitted}: {right} of {standing}, {len(mistaken)} others taken for standing")
        assert right >= least * standing
        assert len(mistaken) <= (len(notes) - standing) / 10, mistaken


def test_what_is_taken_and_what_harms_stands_without_a_word_of_rule():
    for text in (
        "sertraline 75 mg since spring, it helps",
        "Ramipril 5 mg morgens",
        "type 2 diabetes since 2021",
        "我花生过敏，包里一直带着肾上腺素笔",
        "penicillin gives me hives",
        "Saoirse is allergic to eggs",
        "He's allergic to milk",
    ):
        assert is_standing_statement(text), text
    for text in ("took ibuprofen 400 mg, better now", "the recipe needs 500 mg of saffron"):
        assert not is_standing_statement(text), text


def test_statements_are_judged_alike_in_every_process():
    texts = json.dumps([note["text"] for note in NOTES[::3]])
    program = (
        "import json, sys; from thermocline.daemon.language.standing import is_standing_statement;"
        "print([is_standing_statement(text) for text in json.load(sys.stdin)])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            input=texts.encode(),
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "11")
    }
    assert len(answers) == 1
