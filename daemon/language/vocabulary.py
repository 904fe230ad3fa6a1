"""The words and phrases of all languages, from the files in `lexicon/`.

Rules request them by name and get those of all languages. The files are read on first use, and
each expression is compiled on first use.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from ..memory.indexing import fold
from ..memory.stemming import ALSO_LEFT_OUT, STOP_WORDS
from .openings import Entry, Finder

FOLDER = Path(__file__).with_name("lexicon")
_REFERENCE: Final = re.compile(r"\{([a-z_]+)\}")
_INSERTED: Final = re.compile(r"\{(?P<unspaced>~?)(?P<name>[a-z_]+)\}")


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file.

    Attributes:
        spaced: whether words are separated by blanks.
        words: sets of words by name, each as one text.
        speakers: labels of speakers, by role.
        feelings: words of feeling, by emotion.
        cues: regular expressions for folded text. `{name}` inserts those of that name; line ends
            are ignored.
        relations: expressions before a name, by type of the named entity and relation.
        about: cues for the category of a statement, by category.
        standing: words and cues of what holds until somebody takes it back; see `standing.py`.
        keeping: words and cues of what is kept of a talk, and of the moment; see `keeping.py`.
        dates: the words of dates; `date_tokens.py` says what each key is.
        same: wordings and the usual one for each; see `paraphrases`.
        secrets: words that name secrets, by kind; `_` joins a phrase, `*` is any beginning or end.
    """

    spaced: bool = True
    words: dict[str, str] = {}
    speakers: dict[str, str] = {}
    feelings: dict[str, str] = {}
    cues: dict[str, list[str]] = {}
    relations: dict[str, dict[str, str]] = {}
    about: dict[str, list[str]] = {}
    standing: dict[str, list[str]] = {}
    keeping: dict[str, list[str]] = {}
    dates: dict[str, str] = {}
    same: list[str] = []
    secrets: dict[str, str] = {}


@cache
def languages() -> tuple[Language, ...]:
    """All files, in the order of their names."""
    return tuple(named_languages().values())


@cache
def named_languages() -> Mapping[str, Language]:
    """All files by their names without the ending, in the order of the names."""
    files = sorted(FOLDER.glob("*.toml"))
    return {file.stem: read(file.read_text(encoding="utf-8")) for file in files}


@cache
def grammar(language: str) -> frozenset[str]:
    """The words of grammar of a language such as `en`, without accents; empty if none are known."""
    if language == "en":
        return STOP_WORDS | ALSO_LEFT_OUT
    known = named_languages().get(language)
    return frozenset(fold(known.words.get("grammar", "")).split()) if known else frozenset()


@cache
def grammar_by_language() -> Mapping[str, frozenset[str]]:
    """The words of grammar of each language for which they are known."""
    names = {name: grammar(name) for name in named_languages()}
    return {name: known for name, known in names.items() if known}


@lru_cache(1_024)
def is_of_grammar(word: str) -> bool:
    """Whether a folded word is one of grammar in any language."""
    return any(word in of_it for of_it in grammar_by_language().values())


@cache
def word_endings(language: str) -> Mapping[str, Sequence[tuple[str, str]]]:
    """The endings of inflected words of a language, with what the base form has instead.

    By their last letters, so that few are compared with a word.
    """
    known = named_languages().get(language)
    endings: dict[str, list[tuple[str, str]]] = {}
    for pair in known.words.get("endings", "").split() if known else ():
        ending, _, base = pair.partition("/")
        endings.setdefault(ending[-1:], []).append((ending, base))
    return endings


def read(text: str) -> Language:
    """A language from the text of its file.

    Raises:
        msgspec.ValidationError: the file holds something else.
    """
    return msgspec.convert(tomllib.loads(text), Language)


@cache
def words(*names: str) -> frozenset[str]:
    """The words of some sets, with ß also as ss; of a set that no language has, none."""
    listed = " ".join(language.words.get(name, "") for language in languages() for name in names)
    return frozenset((*listed.split(), *listed.replace("ß", "ss").split()))


@cache
def words_of(language: str, name: str) -> frozenset[str]:
    """The words of a set in one language; empty if it has none."""
    known = named_languages().get(language)
    return frozenset(known.words.get(name, "").split()) if known else frozenset()


@cache
def not_topics() -> frozenset[str]:
    """Words that are never a topic."""
    return STOP_WORDS | words("no_topics")


@cache
def pairs(name: str) -> frozenset[frozenset[str]]:
    """The pairs in a set of words such as "open/closed"."""
    return frozenset(frozenset(pair.split("/")) for pair in words(name))


@cache
def pairs_in_order(name: str) -> Mapping[str, str]:
    """The words of a set such as "two/2", each with what stands behind it."""
    return dict(pair.split("/") for pair in sorted(words(name)))


@cache
def table(name: str) -> Mapping[str, str]:
    """The words of `speakers` or `feelings`, each with its role or emotion."""
    return {
        word: key
        for language in languages()
        for key, listed in getattr(language, name).items()
        for word in listed.split()
    }


@cache
def relations() -> Mapping[str, Mapping[str, str]]:
    """For each type of entity, the relations and the expressions that precede its name."""
    relations: dict[str, dict[str, str]] = {}
    for language in languages():
        for kind, listed in language.relations.items():
            for relation, expression in listed.items():
                known = relations.setdefault(kind, {}).get(relation)
                whole = whole_expression(language, expression)
                relations[kind][relation] = f"{known}|{whole}" if known else whole
    return relations


@cache
def each(
    name: str, *, spaced: bool = True, of: Literal["cues", "about"] = "cues"
) -> tuple[str, ...]:
    """The cues of a name of all languages that part words with blanks, or of all others."""
    chosen = (language for language in languages() if language.spaced == spaced)
    return tuple(
        whole_expression(item, cue) for item in chosen for cue in getattr(item, of).get(name, ())
    )


@cache
def either(name: str, *, spaced: bool = True) -> str:
    """`each` as one expression, to be put in brackets."""
    return "|".join(each(name, spaced=spaced))


@cache
def compiled(template: str) -> re.Pattern[str]:
    """`template` with `either` in place of each `{name}`, of unspaced languages for `{~name}`."""
    return re.compile(
        _INSERTED.sub(lambda match: either(match["name"], spaced=not match["unspaced"]), template)
    )


class Cue(Finder):
    """Finds the cues of some names in folded text."""

    def __init__(self, *names: str, of: Literal["cues", "about"] = "cues") -> None:
        super().__init__(entry for name in names for entry in entries_of(name, of=of))
        self._names, self._of = names, of

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """One expression for all; `any_in` is many times faster where only that matters."""
        spaced, unspaced = (
            [item for name in self._names for item in each(name, spaced=spaced, of=self._of)]
            for spaced in (True, False)
        )
        words_only = rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)" if spaced else ""
        return re.compile("|".join(filter(None, (words_only, *unspaced))))


def entries_of(
    name: str, signal: str = "", of: Literal["cues", "about"] = "cues"
) -> Iterator[Entry]:
    """The cues of a name in all languages, for a `Finder`, as those of a signal.

    Raises:
        KeyError: no language has a cue of that name.
    """
    spaced, unspaced = (each(name, spaced=spaced, of=of) for spaced in (True, False))
    if not (spaced or unspaced):
        raise KeyError(name)
    yield from ((signal or name, item, r"(?<!\w)") for item in spaced)
    yield from ((signal or name, item, None) for item in unspaced)


@cache
def cue(*names: str) -> Cue:
    """What finds the cues of some names; `KeyError` if one has none."""
    return Cue(*names)


@cache
def categories() -> Mapping[str, Cue]:
    """For each category of `about`, the cues of statements that belong there."""
    names = dict.fromkeys(name for language in languages() for name in language.about)
    return {name: Cue(name, of="about") for name in names}


def whole_expression(language: Language, expression: str) -> str:
    """A cue of a language with those that it names."""

    def named(reference: re.Match[str]) -> str:
        inserted = (whole_expression(language, item) for item in language.cues[reference[1]])
        return f"(?:{'|'.join(inserted)})"

    # Folded texts have no ß, and unfolded ones may.
    return _REFERENCE.sub(named, expression.replace("\n", "").replace("ß", "(?:ß|ss)"))
