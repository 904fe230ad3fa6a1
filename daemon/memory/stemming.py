"""Terms: the words of a text as ranking compares them, in base form and stemmed.

The stemmer is Porter's (1980), like that of the full-text index; other scripts are unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from .indexing import fold, index_words

# The base form, then the forms that stemming does not reduce to it.
_VERBS: Final = """
arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun
bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken
breed bred|bring brought|build built|burn burnt|buy bought|catch caught
choose chose chosen|cling clung|come came|creep crept|deal dealt|dig dug|dive dove
do did done does|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten
fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fling flung|fly flew flown
forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
get got gotten|give gave given|go went gone goes|grind ground|grow grew grown|hang hung
have had has|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known
lay laid|lead led|leap leapt|learn learnt|leave left|lend lent|lie lay lain|light lit|lose lost
make made|mean meant|meet met|mistake mistook mistaken|overcome overcame|pay paid
prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen
seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot
show shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid
smell smelt|speak spoke spoken|speed sped|spend spent|spill spilt|spin spun|spring sprang sprung
stand stood|steal stole stolen|stick stuck|sting stung|stink stank stunk|strike struck stricken
strive strove striven|swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung
take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown
tread trod trodden|undergo underwent undergone|understand understood|undertake undertook undertaken
undo undid undone|wake woke woken|wear wore worn|weave wove woven|weep wept|win won
withdraw withdrew withdrawn|wring wrung|write wrote written|rewrite rewrote rewritten
rebuild rebuilt|foresee foresaw foreseen|forego forewent foregone|redo redid redone
retell retold|outgrow outgrew outgrown|oversee oversaw overseen|oversleep overslept
mislead misled|misunderstand misunderstood|repay repaid|resell resold|rethink rethought
retake retook retaken|uphold upheld|withhold withheld|withstand withstood
overtake overtook overtaken|be was were been am is are
"""
_NOUNS: Final = """
child children|man men|woman women|person people|foot feet|tooth teeth|mouse mice|goose geese
louse lice|ox oxen|wife wives|life lives|knife knives|half halves|leaf leaves|loaf loaves
shelf shelves|thief thieves|wolf wolves|calf calves|scarf scarves|elf elves|self selves
hoof hooves|criterion criteria|phenomenon phenomena|analysis analyses|crisis crises
thesis theses|hypothesis hypotheses|diagnosis diagnoses|index indices
matrix matrices|vertex vertices|appendix appendices|cactus cacti|fungus fungi|nucleus nuclei
curriculum curricula|bacterium bacteria|grandchild grandchildren|stepchild stepchildren
fireman firemen|policeman policemen|fisherman fishermen|gentleman gentlemen|businessman businessmen
businesswoman businesswomen|salesman salesmen|chairman chairmen|bookshelf bookshelves
housewife housewives|midwife midwives
"""
_COMPARED: Final = """
good better best|bad worse worst|far farther farthest further furthest|old elder eldest
"""


def variants(word: str) -> tuple[str, ...]:
    """The other forms of `word` to search for, in lower case; () if it is regular.

    The base form comes first; if the index finds it anyway, it is left out: of *going*, *went* and
    *gone*.
    """
    forms = _by_form()
    form = word.lower()
    if form in forms:
        return forms[form]
    base = next((base for base in _bases(form) if base in forms), None)
    # A regular form already matches its base in the index.
    return forms[base] if base else ()


def _families() -> Iterator[list[str]]:
    for block in (_VERBS, _NOUNS, _COMPARED):
        yield from map(str.split, block.replace("\n", "|").split("|"))


@functools.cache
def _base_of() -> Mapping[str, str]:
    bases: dict[str, str] = {}
    for forms in _families():
        for form in forms:
            bases.setdefault(form, forms[0])
    return MappingProxyType(bases)


def base_of(word: str) -> str:
    """The base form of an irregular word in lower case; other words unchanged."""
    return _base_of().get(word, word)


def _bases(form: str) -> Iterator[str]:
    """The possible base forms of a regular form: *going*, *making*, *running*, *sees*."""
    if form.endswith("ing"):
        stem = form[:-3]
        yield from (stem, stem + "e", stem[:-1])
    elif form.endswith("s"):
        yield form[:-1]


@functools.cache
def _by_form() -> Mapping[str, tuple[str, ...]]:
    families: dict[str, dict[str, None]] = {}
    for forms in _families():
        for form in forms:
            others = (other for other in forms if other != form)
            families.setdefault(form, {}).update(dict.fromkeys(others))
    return MappingProxyType({form: tuple(others) for form, others in families.items()})


# Few on purpose: "go", "get", "before" or "about" are distinctive in a small memory, and in a large
# one the limit on common words drops them.
STOP_WORDS: Final = frozenset(
    {
        "a", "am", "an", "and", "are", "as", "at", "be", "been", "being", "by", "can",
        "could", "d", "did", "do", "does", "doing", "done", "for", "from", "had", "has",
        "have", "having", "he", "her", "hers", "him", "his", "how", "i", "in", "is", "it",
        "its", "ll", "m", "may", "me", "might", "must", "my", "of", "on", "or", "our", "re",
        "s", "she", "should", "t", "that", "the", "their", "them", "these", "they", "this",
        "those", "to", "us", "ve", "was", "we", "were", "what", "when", "where", "which",
        "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
    }
)  # fmt: skip

# Further words that are dropped from questions if other words remain.
ALSO_LEFT_OUT: Final = frozenset(
    {
        "ourselves", "yours", "themselves", "myself", "yourself", "himself", "herself", "itself",
        "theirs", "but", "if", "because", "until", "while", "about", "against", "between", "into",
        "through", "during", "before", "after", "above", "below", "up", "down", "out", "off",
        "over", "under", "again", "further", "then", "once", "here", "there", "all", "any", "both",
        "each", "few", "more", "most", "other", "some", "such", "no", "nor", "not", "only", "own",
        "same", "so", "than", "too", "very", "just", "don", "now", "o", "y",
    }
)  # fmt: skip


_STEP_2: Final = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "bli": "ble", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize",
    "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful",
    "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3: Final = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4: Final = dict.fromkeys(
    (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion",
        "ou", "ism", "ate", "iti", "ous", "ive", "ize",
    ),
    "",
)  # fmt: skip


def terms_of(text: str) -> list[str]:
    """The terms of `text`, in order."""
    return [_term(word) for word in index_words(text.replace("_", " "))]


@lru_cache(2_048)
def word_terms(word: str) -> tuple[str, ...]:
    """The terms of a word of a question: one, unless it contains a `_`."""
    return tuple(terms_of(word))


@lru_cache(1_024)
def label_terms(path: str) -> frozenset[str]:
    """The terms of a category's path or description, or of a name."""
    return frozenset(terms_of(path))


@lru_cache(8_192)
def _term(word: str) -> str:
    folded = fold(word)
    return stem(base_of(folded)) if folded.isascii() and folded.isalpha() else folded


def stem(word: str) -> str:
    """The stem of an English word in lower case."""
    if len(word) < 3:
        return word
    word = _step_1(word)
    word = _replace(word, _STEP_2, 0)
    word = _replace(word, _STEP_3, 0)
    word = _replace(word, _STEP_4, 1)
    if word.endswith("e"):
        shorter = word[:-1]
        if _measure(shorter) > 1 or (_measure(shorter) == 1 and not _ends_short(shorter)):
            word = shorter
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _step_1(word: str) -> str:
    """Removes plural, past and progressive endings, and replaces a final `y` by `i`."""
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        word = word[:-1] if _measure(word[:-3]) else word
    else:
        for ending in ("ed", "ing"):
            rest = word.removesuffix(ending)
            if rest != word and "V" in _kinds(rest):
                word = _repaired(rest)
                break
    return word[:-1] + "i" if word.endswith("y") and "V" in _kinds(word[:-1]) else word


def _repaired(rest: str) -> str:
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest[-1:] == rest[-2:-1] and _kinds(rest).endswith("C") and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _replace(word: str, endings: dict[str, str], least: int) -> str:
    """Replace the longest of the endings if the measure of the rest is above `least`."""
    for length in range(min(7, len(word)), 1, -1):
        ending = word[-length:]
        if ending in endings:
            rest = word[:-length]
            stays = _measure(rest) <= least or (ending == "ion" and rest[-1:] not in {"s", "t"})
            return word if stays else rest + endings[ending]
    return word


def _kinds(word: str) -> str:
    """Vowels and consonants as V and C; `y` is a vowel after a consonant."""
    kinds = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and kinds.endswith("C"))
        kinds += "V" if vowel else "C"
    return kinds


def _measure(word: str) -> int:
    """The number of consonants after a vowel."""
    return _kinds(word).count("VC")


def _ends_short(word: str) -> bool:
    return _kinds(word).endswith("CVC") and word[-1] not in "wxy"
