"""The words that name secrets and what these are of: "PIN", "passport", "Kreditkarte", "locker"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, NamedTuple

from ..memory.indexing import fold
from .vocabulary import languages

_TOKEN: Final = re.compile(r"[^\W_]+|°")
# Letters with an accent and those without; no text gets longer or shorter by them.
_PLAIN: Final = {
    code: plain for code in range(0xC0, 0x250) if len(plain := fold(chr(code))) == 1
}  # fmt: skip


class Name(NamedTuple):
    """A naming word or phrase in a text, and its kind: a key of `[secrets]` in the lexicon."""

    start: int
    end: int
    kind: str


class _Lexicon(NamedTuple):
    """The names of all languages.

    Attributes:
        phrases: by the first word: what finds the others behind it, and the kind; longest first.
        parts: beginnings and endings of words that have a kind, as `pass*` and `*pass`, longest
            first.
        beginnings, endings: the same without the mark.
        unspaced: finds those of scripts without blanks.
    """

    words: Mapping[str, str]
    phrases: Mapping[str, Sequence[tuple[re.Pattern[str], str]]]
    parts: Sequence[tuple[str, str]]
    beginnings: tuple[str, ...]
    endings: tuple[str, ...]
    unspaced: re.Pattern[str]
    unspaced_kinds: Mapping[str, str]


def names_in(text: str) -> list[Name]:
    """The names in a text, in order; of those that begin with the same word the longest."""
    small = text.lower()
    if len(small) != len(text):
        small = "".join(char.lower()[0] for char in text)
    names: list[Name] = []
    if not small.isascii():
        small, lexicon = small.translate(_PLAIN), _lexicon()
        unspaced = lexicon.unspaced.finditer(small)
        names += [Name(*match.span(), lexicon.unspaced_kinds[match.group()]) for match in unspaced]
    past = 0
    for match in _TOKEN.finditer(small):
        start, (kind, phrases) = match.start(), _entry(match.group())
        if (kind or phrases) and start >= past:
            past = match.end()
            for behind, of_phrase in phrases:
                if rest := behind.match(small, past):
                    kind, past = of_phrase, rest.end()
                    break
            if kind:
                names.append(Name(start, past, kind))
    return sorted(names)


@lru_cache(4_096)
def _entry(word: str) -> tuple[str, Sequence[tuple[re.Pattern[str], str]]]:
    """The kind of a word, or "", and the phrases that begin with it."""
    lexicon = _lexicon()
    kind = lexicon.words.get(word, "")
    # Most words end here.
    if not kind and (word.startswith(lexicon.beginnings) or word.endswith(lexicon.endings)):
        kind = next(
            kind
            for part, kind in lexicon.parts
            if (word.startswith(part[:-1]) if part[-1] == "*" else word.endswith(part[1:]))
        )
    return kind, lexicon.phrases.get(word, ())


@cache
def _lexicon() -> _Lexicon:
    words: dict[str, str] = {}
    phrases: dict[str, dict[str, str]] = {}
    unspaced: dict[str, str] = {}
    for language in languages():
        for kind, listed in language.secrets.items():
            for item in listed.split():
                first, _, rest = item.lower().translate(_PLAIN).partition("_")
                if not language.spaced:
                    unspaced.setdefault(item, kind)
                elif rest:
                    phrases.setdefault(first, {}).setdefault(rest, kind)
                else:
                    words.setdefault(first, kind)
    parts = [item for item in _longest_first(words) if "*" in item[0]]
    return _Lexicon(
        words,
        {
            first: [*map(_behind, *zip(*_longest_first(rest), strict=True))]
            for first, rest in phrases.items()
        },
        parts,
        tuple(part[:-1] for part, _ in parts if part[-1] == "*"),
        tuple(part[1:] for part, _ in parts if part[-1] != "*"),
        re.compile("|".join(re.escape(name) for name, _ in _longest_first(unspaced))),
        unspaced,
    )


def _longest_first(names: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(names.items(), key=lambda item: -len(item[0]))


def _behind(rest: str, kind: str) -> tuple[re.Pattern[str], str]:
    """What finds the words of a phrase behind the first."""
    words = r"[\W_]{1,3}".join(map(re.escape, rest.rstrip("*").split("_")))
    return re.compile(
        rf"[\W_]{{1,3}}{words}" + r"[^\W_]*" * rest.endswith("*") + r"(?![^\W_])"
    ), kind
