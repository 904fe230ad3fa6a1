"""Terms, by which ranking compares words."""

import sqlite3
from pathlib import Path

from thermocline.daemon.memory.stemming import stem, terms_of

WORDS = Path(__file__).parents[1] / "benchmarks" / "words.txt"
ENDINGS = "ational tional enci anci izer bli alli entli eli ousli ization ation ator alism iveness"
ENDINGS += " fulness ousness aliti iviti biliti logi icate ative alize iciti ical ful ness al ance"
ENDINGS += " ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize ed ing eed ies"
ENDINGS += " sses ss s y e ll ting bled ffing sion"
HEADS = ("t", "tr", "tro", "trop", "hop", "fall", "adopt", "relat", "oper", "vy", "yell")


def test_a_stem_is_the_one_that_the_full_text_index_makes():
    words = [*WORDS.read_text(encoding="ascii").split()]
    words += [head + ending for head in HEADS for ending in ENDINGS.split()]
    words = sorted({word.lower() for word in words if word.isalpha()})
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'porter unicode61')")
    db.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(texts, instance)")
    db.execute("INSERT INTO texts VALUES (?)", (" ".join(words),))
    made = [term for (term,) in db.execute("SELECT term FROM terms ORDER BY offset")]
    db.close()
    assert {word: stem(word) for word in words} == dict(zip(words, made, strict=True))


def test_terms_are_the_base_forms_of_the_words_stemmed():
    for text, terms in [
        ("She went; he goes", ["she", "go", "he", "go"]),
        ("The boats' Größe", ["the", "boat", "große"]),
        ("haus_nummer 12", ["hau", "nummer", "12"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("?!", []),
    ]:
        assert terms_of(text) == terms
