"""Splits a text into sentences, and shortens a sentence to its core or to a number of bytes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

from .markdown import leaves
from .vocabulary import compiled, not_topics, words

MARK: Final = "…"
Measure = Callable[[str], int]

_END: Final = re.compile(
    r"(?<![.!?…])[.!?…]{1,8}[\"')\]”’»*]{0,4}(?=\s)|[。！？।॥۔؟][」』”’）)]{0,3}|[!?]{1,8}(?=[^\W\d_])"
)
_LAST_TOKEN: Final = re.compile(r"[^\s(\[\"'“]{1,12}$")
# A line at least this long that ends in the middle of a sentence was wrapped by an editor.
_WRAPPED: Final = 40
_LEAD_INS: Final = 3
_LEAD_IN: Final = r"(?i)(?:{lead_in})\s+"
_FILLER: Final = r"\b(?:{filler}) (?=[a-z])"
_PAUSE: Final = re.compile(r"[,;:—–](?=\s)|\s-\s")
_CLAUSE_END: Final = r"[,;:](?=\s)|\s[-–—]\s|—|[，、；：]|\s(?=(?:{explains})\s)"
# The least words of a dictated sentence, its words for each pause, and the least of a part.
_DICTATED: Final = 22
_WORDS_PER_PAUSE: Final = 16
_LEAST_OF_PART: Final = 3
_RUNS_ON: Final = r"\s+(?=(?i:{runs_on})\s)"
# Lead-ins are removed, and no word of what is left.
UNALTERED: Final = 0.4
_CLOSING: Final = " .!。！;,"
# A clause that fills a smaller share of the room says too little by itself.
_WORTH_KEEPING: Final = 0.6
_LOOSE: Final = " ,;:-–—("
_JOINERS: Final = "\u200d\ufe0e\ufe0f"


def printable(text: str) -> str:
    """`text` as valid Unicode without control characters but for line ends and tabs."""
    if text.isprintable():
        return text
    valid = text.encode("utf-8", "replace").decode()
    return "".join(char for char in valid if char in "\n\t\r" or unicodedata.category(char) != "Cc")


def sentences(text: str) -> list[str]:
    """The sentences of `text` in order, each on one line, none blank.

    Headings, rules, rows of tables and the contents of code fences are left out; the marks of
    bullets, quotes, check boxes and bold words are removed.
    """
    return [sentence for block in _blocks(text) for sentence in _split(block)]


def dictated_parts(sentence: str) -> list[str]:
    """The parts of a long sentence without pauses, cut where a speaker goes on: "um", "and I".

    Who dictates says in one breath what others write in several sentences. Other sentences are one
    part.
    """
    length = sentence.count(" ") + 1
    pauses = len(_PAUSE.findall(sentence))
    if length < _DICTATED or length < pauses * _WORDS_PER_PAUSE:
        return [sentence]
    parts: list[str] = []
    for part in compiled(_RUNS_ON).split(sentence):
        if parts and parts[-1].count(" ") + 1 < _LEAST_OF_PART:
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return parts


def plain(sentence: str, aggression: float = UNALTERED) -> str:
    """`sentence` without lead-in, filler words and full stop.

    `aggression` is 0 to 1: lead-ins are removed from 0.2 on, filler words from 0.5 on.
    """
    text = sentence
    for _ in range(_LEAD_INS if aggression >= 0.2 else 0):
        lead = compiled(_LEAD_IN).match(text)
        if lead is None or len(text) - lead.end() < 8:
            break
        text = text[lead.end() :]
    if aggression >= 0.5:
        text = compiled(_FILLER).sub("", text)
    text = text.strip().rstrip(_CLOSING) or sentence
    begins = re.match(r"[^\W\d_]+", text)
    if not sentence.startswith(text) and begins and begins.group() in not_topics():
        return text[0].upper() + text[1:]
    return text


def utf8_bytes(text: str) -> int:
    """The bytes that `text` takes in UTF-8."""
    return len(text.encode())


def shortened(text: str, room: int, measure: Measure = utf8_bytes, mark: str = MARK) -> str:
    """`text` in at most `room` bytes, as `measure` counts them.

    It ends with a clause if enough remains, else with a word and `mark`; only a word that is too
    long by itself is cut, between characters.
    """
    if measure(text) <= room:
        return text
    for match in reversed(list(compiled(_CLAUSE_END).finditer(text))):
        clause = text[: match.start()].rstrip()
        if measure(clause) > room:
            continue
        whole = _tidy(clause)
        if measure(whole) >= room * _WORTH_KEEPING and not _ends_open(whole):
            return whole
        break
    return _to_word(text, room, measure, mark)


def _blocks(text: str) -> Iterator[str]:
    """The blocks of a text: a paragraph, an item of a list, a complete line."""
    for item in leaves(text):
        block = ""
        for line in (*item.lines, ""):
            # An editor wrapped it within a sentence.
            if (
                block
                and line
                and (block[-1] in ",;" or (len(block) >= _WRAPPED and line[0].islower()))
            ):
                block = f"{block} {line}"
                continue
            if block:
                yield block
            block = line


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


# "Am 12. und 13. Mai".
_FURTHER_DAY: Final = re.compile(r"(?:und|bis|oder|and|to|or|/|–|-) ?\d{1,2}\b")


def _goes_on(block: str, start: int, end: re.Match[str]) -> bool:
    """Whether a mark is part of a URL, or a full stop part of an abbreviation or number."""
    mark = end.group()
    following = block[end.end() : end.end() + 20].lstrip()
    if mark[0] in "!?":
        return "://" in block[max(start, end.start() - 200) : end.start()].rsplit(" ", 1)[-1]
    if mark[0] == "…" or len(mark) > 1:
        return mark[0] in ".…" and following[:1].islower()
    token = _LAST_TOKEN.search(block, max(start, end.start() - 12), end.start())
    return mark == "." and token is not None and _is_abbreviated(block, start, token, following)


def _is_abbreviated(block: str, start: int, token: re.Match[str], following: str) -> bool:
    word = token.group()
    if word.isdigit():
        # "1. First", "am 20. Juni", "am 14. um elf".
        month = following.split(" ", 1)[0].strip(",.;:!?)").casefold()
        before = block[start : token.start()].rsplit(None, 1)[-1:]
        dated = before and before[0].casefold() in words("before_ordinals")
        day = len(word) <= 2 and following[:1].islower() and dated
        joined = len(word) <= 2 and _FURTHER_DAY.match(following)
        return bool(
            day
            or joined
            or token.start() == start
            or month in words("ordinal_months", "ordinal_nouns")
        )
    if word.casefold() == "no":
        return following[:1].isdigit()
    initial = len(word) == 1 and word.isupper() and word != "I" and not following[:1].islower()
    # "Ms." is a title, "ms." ends a sentence.
    return initial or word == "Ms" or word.casefold() in words("abbreviations")


def _to_word(text: str, room: int, measure: Measure, mark: str) -> str:
    inner = room - measure(mark)
    if inner < measure(mark):
        return _to_character(text, room, measure)
    whole = _to_character(text, inner, measure)
    end = len(whole) if text[len(whole) : len(whole) + 1].isspace() else whole.rfind(" ")
    shown = _tidy(whole[: max(end, 0)])
    return (shown or whole) + mark


def _tidy(text: str) -> str:
    """The beginning of a text without a dangling word or an open quotation."""
    if text.count("`") % 2 and not text.startswith("`"):
        before = text[: text.rindex("`")]
        # If there is little before the quotation, its beginning says more.
        text = before if len(before) * 2 > len(text) else text.replace("`", "")
    text = text.rstrip(_LOOSE)
    while _ends_open(text) and " " in text:
        text = text[: text.rfind(" ")].rstrip(_LOOSE)
    return text


def _to_character(text: str, room: int, measure: Measure) -> str:
    """The longest beginning of `text` that fits, in whole characters with their accents."""
    low, high = 0, min(len(text), max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    # A character may combine with the one before it.
    while 0 < low < len(text) and (
        unicodedata.combining(text[low]) or text[low] in _JOINERS or text[low - 1] == "\u200d"
    ):
        low -= 1
    return text[:low].rstrip()


def _ends_open(text: str) -> bool:
    return text.rsplit(" ", 1)[-1].casefold() in words("leading")
