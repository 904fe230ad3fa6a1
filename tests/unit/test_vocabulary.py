"""The files of the languages: whole, without names that no rule reads, and all that one needs."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from thermocline.daemon.language import vocabulary
from thermocline.daemon.language.openings import Finder
from thermocline.daemon.memory.similarity import fold

FOLDER = Path(vocabulary.__file__).parent
FILES = sorted((FOLDER / "lexicon").glob("*.toml"))
TALKS = Path(__file__).parents[1] / "benchmarks" / "data" / "kept.json"
SPANISH_IN_SMALL = """
[words]
negations = "nixu"
[cues]
preference = ['gustazu']
health = ['alergiku']
"""


def rules() -> str:
    """What the language's rules, and those who ask it for words, are written in."""
    return "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.parent.rglob("*.py"))


def test_every_name_in_a_file_is_one_that_a_rule_reads():
    read = set(re.findall(r"[\"'](\w+)[\"']|[(|:\"]\{{1,2}~?([a-z_]+)\}", rules()))
    read = {name for names in read for name in names} | {"place_ends"}
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        language = vocabulary.read(text)
        within = set(re.findall(r"\{([a-z_]+)\}", text))
        assert {*language.words, *language.cues} - within - read == set()


def test_every_expression_compiles_and_every_cue_that_is_asked_for_is_there():
    known = {name for language in vocabulary.languages() for name in language.cues}
    assert {"decision", "question", "health", "positive"} <= known
    for name in known - {"place", "employer", "replaced"}:
        assert vocabulary.cue(name).pattern.search("") is None or name == "grammar", name
    for name in ("place", "employer", "replaced"):
        for expression in vocabulary.each(name, spaced=False):
            assert re.compile(expression).groups
    assert vocabulary.categories()
    with pytest.raises(KeyError):
        vocabulary.cue("nothing of that name")


def test_a_cue_is_found_wherever_its_expression_matches():
    talks = json.loads(TALKS.read_bytes())["conversations"]
    texts = [fold(turn["content"]) for talk in talks for turn in talk["turns"]]
    known = {name for language in vocabulary.languages() for name in language.cues}
    for cue in map(vocabulary.cue, known - {"place", "employer", "replaced"}):
        assert [cue.any_in(text) for text in texts] == [
            cue.pattern.search(text) is not None for text in texts
        ]


@pytest.mark.parametrize(
    ("expression", "before", "texts"),
    [
        (r"(?:to|from|) ?home", r"(?<!\w)", ["go to home", "home", "at-home"]),
        (r"\w*(?:karte|'s)x?", r"(?<!\w)", ["die kreditkarte", "eva's", "kartex"]),
        (r"a+b{0,2}c", r"(?<!\w)", ["aac", "abbc", "ac"]),
        (r"(?<!not )[ab]n(?=d| y)\w?", r"(?<!\w)", ["and", "bn y"]),
        (r"^(?=.*\bpaid\b)(?:i|we) .*", r"(?<!\w)", ["we have paid", "i paid"]),
        (r"[-–,] ?(?:but|and)", "", ["this -but", "that, and"]),
        (r"ist", None, ["mistel"]),
        (r"..", None, ["é!"]),
    ],
)
def test_what_an_expression_finds_is_found_by_how_it_begins(expression, before, texts):
    finder = Finder([("other", "never there", before), ("this", expression, before)])
    for text in texts:
        assert set(finder.names_in(text)) == {"this"}, text
        assert finder.any_in(text)
    assert finder.any_in("something else") == (expression == "..")


def test_a_file_with_something_else_in_it_is_refused():
    for text in ["[word]\na = 'b'", "spaced = 1", "[cues]\na = 'b'"]:
        with pytest.raises(msgspec.ValidationError):
            vocabulary.read(text)


def test_a_language_is_added_without_code(tmp_path):
    shutil.copytree(FOLDER / "lexicon", tmp_path / "lexicon")
    (tmp_path / "lexicon" / "xx.toml").write_text(SPANISH_IN_SMALL, encoding="utf-8")
    code = (
        "import sys; from pathlib import Path\n"
        "from thermocline.daemon.language import vocabulary, cues, comparison\n"
        "vocabulary.FOLDER = Path(sys.argv[1])\n"
        "print(*cues.signals_of('Zu gustazu tea'), cues.is_health('Zu alergiku nuxi'),"
        " comparison.judge('Zu tea gusta', 'Zu nixu tea gusta').relation)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "lexicon")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["preference", "True", "contradiction"]


def test_a_cue_with_sharp_s_is_found_in_folded_texts():
    for name, text in (
        ("asks_value", "Wie groß ist der Schrank?"),
        ("adds", "Außerdem spielt sie Oboe"),
        ("named", "Ich heiße Imke"),
    ):
        assert vocabulary.cue(name).any_in(fold(text)), text
    assert not vocabulary.cue("bygone").any_in(fold("Niemand außer Opa darf das"))
    assert {"schließt", "schliesst"} <= vocabulary.words("state_verbs")
