"""A text cut into its sentences, whatever it is: prose, notes in Markdown, lines of a chat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..vocabulary import word_set

_FENCE: Final = re.compile(r"\s{0,3}(?:```|~~~)")
_RULE: Final = re.compile(r"[\s|:=*_-]{3,}$")
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s")
_ROW: Final = re.compile(r"\s*\|.*\|\s*$")
_MARK: Final = re.compile(r"\s*+(?:>\s?)*+(?:(?:[-*+•‣–]|\d{1,3}[.)])\s++)?+(?:\[[ xX]\]\s++)?+")
_BOLD: Final = re.compile(r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])")
_END: Final = re.compile(
    r"(?<![.!?…])[.!?…]{1,8}[\"')\]”’»*]{0,4}(?=\s)|[。！？।॥۔؟][」』”’）)]{0,3}|[!?]{1,8}(?=[^\W\d_])"
)
_ABBREVIATIONS: Final = word_set(
    "mr mrs dr prof st vs e.g i.e etc cf ca approx fig inc ltd co jr sr dept est al resp",
    "z.b d.h u.a bzw usw evtl ggf nr str hr fr p.ex sra dra ud г ул т.е т.д т.п a.m p.m incl excl",
)
# "Am 20. Juni".
_MONTH: Final = re.compile(r"\s(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sept|Okt|Nov|Dez)[a-zä]{0,6}\b")
_LAST_TOKEN: Final = re.compile(r"[^\s(\[\"'“]{1,12}$")
# A line at least this long that ends in the middle of a sentence was wrapped by an editor.
_WRAPPED: Final = 40


def sentences(text: str) -> list[str]:
    """The sentences of `text` in order, each on one line, none blank.

    Headings, rules, rows of tables and the contents of code fences are left out; bullets, quotes
    and check boxes lose their marks, and bold words their asterisks.
    """
    return [sentence for block in _blocks(text) for sentence in _split(block)]


def _blocks(text: str) -> Iterator[str]:
    """What belongs together: a paragraph, an item of a list, a line that ends by itself."""
    block, fenced = "", False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if fenced or _RULE.match(line) or _HEADING.match(line) or _ROW.match(line):
            line = ""  # noqa: PLW2901 - it only ends what came before
        if block and _continues(block, line):
            block = f"{block} {line.strip()}"
            continue
        if block:
            yield block
        block = " ".join(_BOLD.sub("", line[_mark_end(line) :]).split())
    if block:
        yield block


def _mark_end(line: str) -> int:
    mark = _MARK.match(line)
    return mark.end() if mark else 0


def _continues(block: str, line: str) -> bool:
    """Whether an editor broke the line within a sentence."""
    stripped = line.strip()
    if not stripped or _mark_end(line) > len(line) - len(line.lstrip()):
        return False
    return block[-1] in ",;" or (len(block) >= _WRAPPED and stripped[0].islower())


def _split(block: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(block):
        if _goes_on(block, start, end):
            continue
        if sentence := block[start : end.end()].strip():
            yield sentence
        start = end.end()
    if sentence := block[start:].strip():
        yield sentence


def _goes_on(block: str, start: int, end: re.Match[str]) -> bool:
    """Whether a full stop belongs to an abbreviation, an initial or a number."""
    mark = end.group()
    following = block[end.end() : end.end() + 2].lstrip()[:1]
    if mark[0] in "!?" and _within_url(block[max(start, end.start() - 200) : end.start()]):
        return True
    if not mark.startswith((".", "…")):
        return False
    if mark[0] == "…" or len(mark) > 1:
        return following.islower()
    token = _LAST_TOKEN.search(block, max(start, end.start() - 12), end.start())
    if token is None:
        return False
    if token.group().isdigit() and (token.start() == start or _MONTH.match(block, end.end())):
        return True
    return _is_abbreviation(token.group(), following)


def _is_abbreviation(word: str, following: str) -> bool:
    if word.casefold() == "no":
        return following.isdigit()
    initial = len(word) == 1 and word.isupper() and word != "I"
    # "Ms." is a title, "ms." ends a sentence.
    return initial or word == "Ms" or word.casefold() in _ABBREVIATIONS


def _within_url(before: str) -> bool:
    return "://" in before.rsplit(" ", maxsplit=1)[-1]
