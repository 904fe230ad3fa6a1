"""Concepts: words that mean the same, in several languages."""

from collections import Counter
from pathlib import Path

import pytest

from thermocline.daemon.language.concept_tables import FIRST_CODE
from thermocline.daemon.language.meaning import VALUE, index_codes
from thermocline.daemon.language.thesaurus import FOLDER, Thesaurus, thesaurus
from thermocline.daemon.memory.stemming import terms_of
from thermocline.daemon.store.database.schema import INDEX_VERSION

_FILES = """
dog | en: dog, puppy, furry friend | de: hund, welpe | es: perro | fr: chien | zh: 狗 | nl: hond
pet | en: pet > dog, cat | de: haustier > hund, katze
gift | en: gift, present
poison | en: poison | de: gift
car_park | en: car park, parking lot
csharp | en: c#, csharp
""".strip()


@pytest.fixture
def small(tmp_path: Path) -> Thesaurus:
    file = tmp_path / "all.txt"
    file.write_text(f"# A comment.\n{_FILES}\n", encoding="utf-8")
    return Thesaurus([file])


def test_a_member_in_the_plural_is_its_own_concept_too(tmp_path):
    file = tmp_path / "all.txt"
    lines = ["vegetable | en: vegetable > leek", "food | en: food > vegetables, shoes, pans"]
    file.write_text(
        "\n".join([*lines, "pan | en: pan", "shoe | en: shoe, shoes"]), encoding="utf-8"
    )
    known = Thesaurus([file])
    for text, names in [
        ("vegetables", {"food*", "vegetable"}),
        ("shoes", {"food*", "shoe"}),
        # Three letters are the beginning of too much.
        ("pans", {"food*"}),
    ]:
        assert _names(known, text) == names
    assert _finds(known, "which vegetables do I grow", "put in leeks")


def _names(known: Thesaurus, text: str) -> set[str]:
    return {
        known.names[(ord(code) - FIRST_CODE) // 2] + ("*" if ord(code) & 1 else "")
        for code in known.codes_of(text)
    }


def _finds(known: Thesaurus, question: str, text: str) -> bool:
    asked = {code for meaning in known.meanings(question) for code in known.sought(meaning.codes)}
    return not asked.isdisjoint(known.codes_of(text))


def test_the_concepts_of_a_text(small):
    for text, names in [
        ("Two puppies", {"dog", "pet*"}),
        ("unser Welpe schläft", {"dog", "pet*"}),
        ("el perro", {"dog", "pet*"}),
        ("我的狗很大", {"dog", "pet*"}),
        ("my pet", {"pet"}),
        ("son", set()),
        ("my dog", {"dog", "pet*"}),
        ("my furry friend", {"dog", "pet*"}),
        ("near the car park", {"car_park"}),
        ("two parking lots", {"car_park"}),
        ("the whole lot", set()),
        ("written in C#", {"csharp"}),
        ("a gift for my aunt", {"gift"}),
        ("das Gift ist für die Ratten", {"poison"}),
        ("Hundehaustier", {"dog", "pet", "pet*"}),
    ]:
        assert _names(small, text) == names


def test_words_are_known_by_their_endings_other_spellings_and_characters(tmp_path):
    file = tmp_path / "all.txt"
    lines = [
        "medicine | en: medicine > *pril, *statin",
        "april | en: april",
        "key | en: key | de: schlüssel",
        "street | en: street | de: straße",
        "table | en: table | de: tisch",
        "garden | en: garden | de: garten",
        "allergy | en: allergy | zh: 过敏",
        "victory | en: won",
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    known = Thesaurus([file])
    for text, names in [
        ("he takes ramipril", {"medicine*"}),
        ("in april", {"april"}),
        ("der Schluessel", {"key"}),
        ("in der Strasse", {"street"}),
        ("der Gartentisch ist neu", {"garden", "table"}),
        # No compound of a table.
        ("das ist ja praktisch", set()),
        ("對堅果過敏", {"allergy"}),
        ("we won", {"victory"}),
        ("I won't", set()),
    ]:
        assert _names(known, text) == names, text


def test_the_first_part_of_a_verb_may_end_its_clause(tmp_path):
    file = tmp_path / "all.txt"
    lines = [
        "fetch | en: fetch | de: abholen, abholt | nl: ophalen, haalt op",
        "hold | en: hold | de: halten, hält, holen",
        "start | en: start | de: anfangen, anfängt",
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    known = Thesaurus([file])
    for text, names in [
        ("Wer holt die Kinder heute ab?", {"fetch"}),
        ("Oma holt sie ab und ich koche, wenn der Kurs um acht anfängt", {"fetch", "start"}),
        ("Wann fängt der Kurs denn wieder an, weißt du das?", {"start"}),
        # Not at the end of its clause, and none of a verb.
        ("Ich hole die Leiter ab morgen", {"hold"}),
        ("Der Kurs ist ab Montag", set()),
        ("Ich hole das Kind ab 安安怕狗", {"fetch"}),
    ]:
        assert _names(known, text) == names, text


def test_what_is_kept_of_the_files_is_made_again_when_it_is_damaged(tmp_path):
    file = tmp_path / "all.txt"
    file.write_text(_FILES, encoding="utf-8")
    known = Thesaurus([file], tmp_path)
    [kept] = tmp_path.glob("concepts-*.bin")
    whole = kept.read_bytes()
    for content in (whole, b"", whole[:-1], whole[:4] + b"x" + whole[5:]):
        kept.write_bytes(content)
        assert _names(Thesaurus([file], tmp_path), "Two puppies") == _names(known, "Two puppies")
        assert kept.read_bytes() == whole


def test_a_class_finds_its_members_and_these_do_not_find_each_other(small):
    assert _finds(small, "Which pets do we have?", "the cat is called Minka")
    assert _finds(small, "is the dog well?", "our pet was at the vet")
    assert not _finds(small, "is the dog well?", "the cat is called Minka")


def test_a_short_word_is_no_form_of_a_shorter_one():
    assert [meaning.words for meaning in thesaurus().meanings("AT&T")] == [("at", "t")]
    assert [meaning.words for meaning in thesaurus().meanings("at the zoo")] == [("zoo",)]


def test_the_version_of_the_index_is_that_of_the_concepts():
    known = thesaurus()
    assert known.version >> 12 == INDEX_VERSION // 10, (
        f"set INDEX_VERSION in daemon/store/database/schema.py to 10 * {known.version >> 12:_} + 1"
    )


def test_the_index_says_whether_a_text_has_a_number_or_a_date():
    for text, has_value in [
        ("It takes 3 eggs", True),
        ("Es kostet drei Euro", True),
        ("We meet on Friday", True),
        ("The gate is green", False),
        ("คู่มือภาษาไทย", False),  # the term of a single mark is empty
    ]:
        assert (VALUE in index_codes(text, terms_of(text), 0.0)) == has_value, text


def test_every_line_of_the_concepts_can_be_read():
    lines = [
        line
        for file in sorted(FOLDER.glob("*.txt"))
        for line in file.read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert all("|" in line and " en: " in line for line in lines)
    names = Counter(line.partition("|")[0].strip() for line in lines)
    assert [name for name, count in names.items() if count > 1] == []
    assert len(thesaurus().names) == len(names) > 1_200


def test_questions_in_other_words_and_languages_meet_the_text():
    for question, text in [
        ("who is our doctor?", "Unsere Hausärztin heißt Weber"),
        ("¿dónde está la llave?", "the key is under the flowerpot"),
        ("wie hoch ist die Miete?", "the lease costs 900 a month"),
        ("who is my boss?", "我的经理是李伟"),
        ("Wann ist der Termin?", "Der Zahnarzttermin ist am Montag"),
        ("wanneer is de afspraak?", "The appointment is on Monday"),
        ("où est la voiture ?", "The car is parked in the yard"),
    ]:
        assert _finds(thesaurus(), question, text)


def test_any_text_is_read_in_linear_time():
    assert thesaurus().codes_of("x" * 100_000) == ""
    assert isinstance(thesaurus().codes_of("zahnarzt" * 10_000), str)
