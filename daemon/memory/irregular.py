"""Irregular forms of English words, which a stemmer cannot reduce: *went* to *go*.

The stemmer of the index handles regular endings (*walked*, *walks*); the families here have
different stems. A word of two families, such as *lay* of *lie* and *lay*, belongs to both.
"""

from __future__ import annotations

import functools
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
