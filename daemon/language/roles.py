"""Names that a text introduces by what they are: "our son Toby", "Bramble, the spaniel".

A question for the son or the dog then finds what is said of Toby and Bramble.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..memory.indexing import fold, index_words
from .thesaurus import language_of, thesaurus
from .vocabulary import grammar_by_language, words

# Longer texts are no statements; introducing is rare in them.
_LONGEST: Final = 400
_TITLE: Final = r"(?:(?:Dr|Mrs?|Ms|Prof|St|Sr|Sra|Herr|Frau|Señora?|Madame|Monsieur|Mme)\.?\s+)*"
_NAME: Final = r"(?P<name>[A-ZÀ-ÖØ-Þ][\w'’-]*[a-zß-ÿ][\w'’-]*)"
_SURNAME: Final = r"(?:\s+[A-ZÀ-ÖØ-Þ][\w'’-]+)?"
_IS: Final = r"\s+(?:is|ist|es|est)"
_NOUN: Final = r"(?P<noun>[^\W\d_]{3,})"
_DETERMINER: Final = (
    r"(?:[Mm]y|[Oo]ur|[Tt]he|[Hh]is|[Hh]er|[Tt]heir|[Aa]n?|[Mm]eine?[rnms]?|[Uu]nsere?[rnms]?|[Dd]er|[Dd]ie"
    r"|[Mm]i|[Nn]uestr[oa]|[Ee]l|[Ll]a|[Mm]on|[Mm]a|[Nn]otre|[Ll]e)"
)
# What a person or an animal is: "our son Toby"; "Gail, the accountant"; "Toby is our son".
_OF_BEINGS: Final = tuple(
    map(
        re.compile,
        (
            rf"\b{_DETERMINER}\s+(?:[a-zß-ÿ]+\s+)??{_NOUN},?\s+{_TITLE}{_NAME}",
            rf"\b{_NAME}{_SURNAME}(?:,|{_IS})\s+{_DETERMINER}\s+(?:[a-zß-ÿ]+\s+)??{_NOUN}\b",
        ),
    )
)
_BEINGS: Final = frozenset(
    {"family", "animals", "work", "body", "home", "school", "papers", "money"}
)
# What anything is called: "the server is called heron".
_OF_THINGS: Final = re.compile(
    rf"\b{_NOUN}(?:,)?\s+(?:(?:is|was)\s+)?(?:called|named|heißt|heisst|se\s+llama|s['’]appelle)\s+"
    r"(?P<name>[^\W\d_][\w-]+)"
)


def roles_in(text: str) -> Iterator[tuple[str, str]]:
    """The codes of concepts and the names that a text introduces by them.

    A name is one word, folded; of "Dr Iqbal" and "Nasreen Iqbal" the first word that is no title.
    """
    if len(text) > _LONGEST:
        return
    introduced = [
        (pattern, match)
        for pattern in (*_OF_BEINGS, _OF_THINGS)
        for match in pattern.finditer(text)
    ]
    if not introduced:
        return
    known = thesaurus()
    meant = {meaning.words[0]: meaning.codes for meaning in known.meanings(text)}
    # Of its nouns, which German writes large, none is a name.
    nouns = meant if language_of(frozenset(index_words(text.lower()))) == "de" else {}
    for pattern, match in introduced:
        name = fold(match["name"].removesuffix("'s").removesuffix("’s"))
        if name in nouns or _is_word(name):
            continue
        for code in meant.get(fold(match["noun"]), ""):
            if pattern is _OF_THINGS or known.field_of(code) in _BEINGS:
                yield code, name


def _is_word(name: str) -> bool:
    """Whether it is a word that may have a capital letter, but is no name."""
    if len(name) < 2 or name in words("months") or name in words("days"):
        return True
    return any(name in grammar for grammar in grammar_by_language().values())
