"""What the full-text index holds of a text beside its words: its concepts and its dates.

And the names that it introduces by what they are: "our son Toby", "Bramble, the spaniel". A
question for the son or the dog then finds what is said of Toby and Bramble.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Final

from ..memory.indexing import fold
from ..memory.stemming import terms_of
from .cues import own_name
from .date_tokens import may_have_dates
from .dates import date_codes
from .facets import content_terms, single_stems, statement_kinds
from .thesaurus import language_of_text, thesaurus
from .vocabulary import is_of_grammar, words

# Longer texts are no statements; introducing is rare in them.
_LONGEST: Final = 400
_TITLE: Final = r"(?:(?:Dr|Mrs?|Ms|Prof|St|Sr|Sra|Herr|Frau|Señora?|Madame|Monsieur|Mme)\.?\s+)*"
_CAPITALIZED: Final = r"[A-ZÀ-ÖØ-Þ][\w'’-]*[a-zß-ÿ][\w'’-]*"
_NAME: Final = rf"(?P<name>{_CAPITALIZED})"
_AGED: Final = r"(?:\s*\([^()]{1,12}\))?"
_SURNAME: Final = r"(?:\s+[A-ZÀ-ÖØ-Þ][\w'’-]+)?"
_IS: Final = r"(?:\s+(?:is|ist|es|est)|['’]s)"
_NOUN: Final = r"(?P<noun>[^\W\d_]{3,})"
_DETERMINER: Final = (
    r"(?:[Mm]y|[Oo]ur|[Tt]he|[Hh]is|[Hh]er|[Tt]heir|[Aa]n?|[Mm]eine?[rnms]?|[Uu]nsere?[rnms]?|[Dd]er|[Dd]ie"
    r"|[Mm]i|[Nn]uestr[oa]|[Ee]l|[Ll]a|[Mm]on|[Mm]a|[Nn]otre|[Ll]e)"
)
_OWN: Final = (
    r"(?:[Mm]y|[Oo]ur|[Mm]eine?[rnms]?|[Uu]nsere?[rnms]?|[Mm]i|[Nn]uestr[oa]|[Mm]on|[Mm]a|[Nn]otre)"
)
# What a person or an animal is: "our son Toby"; "Gail, the accountant"; "Toby's our son"; "Gail is
# the vicar, our neighbour"; "Gail my sister knits".
_OF_BEINGS: Final = tuple(
    map(
        re.compile,
        (
            rf"\b{_DETERMINER}\s+(?:[a-zß-ÿ]+\s+)??{_NOUN},?\s+{_TITLE}{_NAME}",
            rf"\b{_TITLE}{_NAME}{_SURNAME}(?:,|{_IS})\s+{_DETERMINER}\s+(?:[a-zß-ÿ]+\s+)??{_NOUN}\b",
            rf"\b{_TITLE}{_NAME}{_SURNAME}(?:,|{_IS})\s+{_DETERMINER}\s+[^,.;:]{{3,40}},\s+{_OWN}\s+{_NOUN}\b",
            rf"(?:^|[.;:!?]\s+){_TITLE}{_NAME}{_SURNAME}\s+{_OWN}\s+{_NOUN}\b",
        ),
    )
)
# Several of one kind: "my sons Ben and Tom", "two cats, Miso and Tofu", "Twins: Lina and Tadhg".
_SEVERAL_BEINGS: Final = re.compile(
    r"(?:\b(?:[Tt]wo|[Tt]hree|[Ff]our|[Zz]wei|[Dd]rei|[Vv]ier|[Dd]os|[Tt]res|[Dd]eux|[Tt]rois"
    r"|[Mm]y|[Oo]ur|[Mm]is|[Nn]uestr[oa]s|[Mm]es|[Nn]os)\s+(?:[a-zß-ÿ]+\s+)??|^)"
    rf"(?P<noun>[^\W\d_]{{2,}}s|[Cc]hildren|[Kk]inder|[Kk]atzen|[Hh]unde|[Ss]öhne|[Tt]öchter)"
    rf"[,:]?\s+(?P<names>{_CAPITALIZED}{_AGED}(?:,\s+{_CAPITALIZED}{_AGED}){{0,4}},?"
    rf"\s+(?:and|und|y|e|et|&)\s+{_CAPITALIZED})"
)
_BEINGS: Final = frozenset(
    {"family", "animals", "work", "body", "home", "school", "papers", "money"}
)
_MAY_BE_BEING: Final = re.compile(rf"\s{_NAME}|,\s|{_IS}\s|^\S+\s+{_OWN}\s")
# What anything is called: "the server is called heron".
_OF_THINGS: Final = re.compile(
    rf"\b{_NOUN}(?:,|['’]s)?\s+(?:(?:is|was)\s+)?(?:called|named|heißt|heisst|se\s+llama|s['’]appelle)\s+"
    r"(?P<name>[^\W\d_][\w-]+)"
)


@lru_cache(1_024)
def roles_in(text: str) -> tuple[tuple[str, str], ...]:
    """The codes of concepts and the names that a text introduces by them.

    A name is one word, folded; of "Dr Iqbal" and "Nasreen Iqbal" the first word that is no title.
    """
    return () if len(text) > _LONGEST else tuple(_roles_in(text))


def _roles_in(text: str) -> Iterator[tuple[str, str]]:
    # A capital letter, or a comma, "is" or "my" after the first word, comes with any being.
    patterns = (*((*_OF_BEINGS, _SEVERAL_BEINGS) if _MAY_BE_BEING.search(text) else ()), _OF_THINGS)
    introduced = [(pattern, match) for pattern in patterns for match in pattern.finditer(text)]
    if not introduced:
        return
    known = thesaurus()
    meant = {meaning.words[0]: meaning.codes for meaning in known.meanings(text)}
    # Of its nouns, which German writes large, none is a name.
    nouns = meant if language_of_text(text) == "de" else {}
    for pattern, match in introduced:
        several = match.groupdict().get("names")
        for written in re.findall(_CAPITALIZED, several) if several else [match["name"]]:
            name = fold(written.removesuffix("'s").removesuffix("’s"))
            if name in nouns or is_word(name):
                continue
            for code in meant.get(fold(match["noun"]), ""):
                if pattern is _OF_THINGS or known.field_of(code) in _BEINGS:
                    yield code, name


def is_word(name: str) -> bool:
    """Whether a folded name is a word that may have a capital letter, but is no name."""
    if len(name) < 2 or name in words("months", "days"):
        return True
    return is_of_grammar(name)


# The code of a statement that may tell that something is no longer as it was.
CHANGE: Final = "\ue1a0"
# The code of a statement that has a name, or in German another noun.
NAME: Final = "\ue1a1"
# The code of a statement that names one of several: "my sister Leena", not "our dentist Dr Brown".
BEING: Final = "\ue1a2"
# The code of a text that has a number or a date.
VALUE: Final = "\ue1a3"
_CAPITAL: Final = re.compile(r"(?<=[^\s.!?:])\s+([A-ZÀ-Þ][\w.'’-]*[\w'’])")
# A longer text, or one of several sentences, is no single statement.
_LONGEST_STATEMENT: Final = 100
_SEVERAL: Final = re.compile(r"[^\W\d_]{4}[.…]\s+\S|。.|[!?！？]")


def index_codes(
    text: str, terms: Iterable[str], told_at: float | None, *, is_turn: bool = False
) -> str:
    """The codes of the concepts and dates in a text, each once, and of what kind it is.

    Args:
        text: as it was written.
        terms: its terms.
        told_at: the time that "tomorrow" is relative to, in seconds since the epoch; None: words
            relative to a time mean no date.
        is_turn: whether it is a turn of a conversation, which replaces no statement.
    """
    codes = thesaurus().codes_of(text)
    kinds = statement_kinds(text)
    if "age" in kinds:
        codes += "".join(set(thesaurus().codes_of("age")) - set(codes))
    dates = ""
    if may_have_dates(text):
        zone = dt.datetime.fromtimestamp(told_at or 0.0).astimezone().tzinfo
        assert zone is not None
        dates = date_codes(text, told_at, zone)
    has_number = any(term[:1].isdigit() or term in number_terms() for term in terms)
    codes += dates + VALUE * (has_number or bool(dates))
    if not is_turn and len(text) <= _LONGEST_STATEMENT and not _SEVERAL.search(text):
        if own_name(text.partition("\n")[0]):
            codes += "".join(set(thesaurus().codes_of("name")) - set(codes))
        # A word after the first that begins with a capital letter and is no day or month.
        named = any(name.lower() not in words("days") for name in _CAPITAL.findall(text))
        being = bool(roles_in(text.strip())) and single_stems().isdisjoint(content_terms(text))
        codes += CHANGE * ("change" in kinds) + NAME * named + BEING * being
    return codes


@cache
def number_terms() -> frozenset[str]:
    """The terms of words for numbers."""
    return frozenset(terms_of(" ".join(words("numbers"))))
