"""What a text is about, as single words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from ..stop_words import NOT_TOPICS
from ..vocabulary import word_set
from .feelings import FEELINGS

MAX_TOPICS: Final = 5
_SHORTEST: Final = 3
_LONGEST: Final = 24
_CODE: Final = re.compile(r"`[^`\n]*`")
_REFERENCE: Final = re.compile(r"://|www\.|@|^[~.]{0,2}/")
_WORD: Final = re.compile(r"[^\W_](?:[\w+#]|[.'’-](?=[^\W_]))*")
_UNSPACED: Final = re.compile(
    "[\u30a1-\u30ff]{2,12}|[\u4e00-\u9fff\u3005]{2,12}|[\u0e00-\u0e7f]{2,40}"
)
_ANY_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u4e00-\u9fff]"
)
# Characters of grammar, which part the words of Chinese.
_GRAMMAR: Final = re.compile(
    "我们|你们|他们|她们|它们|我們|你們|他們|这个|那个|這個|一个|一個|因为|所以|但是|如果|已经|已經|可以"
    "|没有|沒有|什么|什麼|怎么|喜欢|喜歡|决定|決定|需要|应该|應該|使用|时候|時候"
    "|[的了在是我你您他她它和与與或就都也很不吗嗎呢吧着过過把被给給对對从從到会會要有这這那请請让讓为為上下中用]"
)
_PARTICLE: Final = re.compile(
    "(?<=[\uac00-\ud7a3]{2})(?:에서|으로|에게|까지|부터|은|는|이|가|을|를|에|의|로|와|과|도)$"
)
# Endings of words that describe or do rather than name; some names end so too.
_DOING: Final = ("ing", "ed", "ly", "ful", "ous")
_PROPER: Final = word_set(
    "api cli ui ux ci cd ai ml gpu cpu db os vm ssh dns ssl tls sql css vpn nas"
)


def topics_of(
    text: str, fact: str, *, people: Collection[str] = (), most: int = MAX_TOPICS
) -> tuple[str, ...]:
    """The `most` words that say best what `text` is about, in lower case, the best first.

    Words in `fact`, the statement chosen from the text, count more. Names of people are
    no topics.
    """
    left_out = {part.casefold() for name in people for part in name.split()}
    counts: dict[str, float] = {}
    shown: dict[str, str] = {}
    for share, part in ((1.0, text), (1.5, fact)):
        for word, weight in _words(part):
            key = _stem(word)
            if key in left_out or word in left_out:
                continue
            shown.setdefault(key, word)
            counts[key] = counts.get(key, 0.0) + share * weight
    best = sorted(counts, key=lambda key: -counts[key])[:most]
    return tuple(shown[key] for key in best)


def _words(text: str) -> Iterator[tuple[str, float]]:
    chunks = _CODE.sub(" ", text).split()
    plain = " ".join(chunk for chunk in chunks if not _REFERENCE.search(chunk))
    for match in _WORD.finditer(plain):
        raw = match.group()
        if not raw.isascii() and _ANY_UNSPACED.search(raw):
            yield from ((word, 1.0) for word in _unspaced(raw))
            continue
        word = _PARTICLE.sub("", raw.lower()).removesuffix("'s").removesuffix("’s")
        if _is_topic(word):
            yield word, _weight(raw, word)


def _is_topic(word: str) -> bool:
    if (
        word in NOT_TOPICS
        or word in FEELINGS
        or not any(map(str.isalpha, word))
        or "'" in word
        or "’" in word
    ):
        return False
    if any(map(str.isdigit, word)) and sum(map(str.isdigit, word)) * 2 > len(word):
        return False
    short = 2 if not word.isascii() or word in _PROPER else _SHORTEST
    return short <= len(word) <= _LONGEST


def _weight(raw: str, word: str) -> float:
    if any(map(str.isupper, raw[1:])) or any(map(str.isdigit, raw)):
        return 1.6
    if len(word) > 5 and word.endswith(_DOING):
        return 0.5
    return 1.0


def _unspaced(run: str) -> Iterable[str]:
    for part in _GRAMMAR.sub(" ", run).split():
        for match in _UNSPACED.finditer(part):
            if len(match.group()) <= 8 or match.group()[0] <= "\u30ff":
                yield match.group()


def _stem(word: str) -> str:
    if len(word) > 4 and word.isascii() and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word
