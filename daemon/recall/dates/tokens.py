"""Splits a question into tokens that may be part of a date."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from ...memory.indexing import fold

Kind: TypeAlias = Literal["word", "number", "decade", "short_year", "quarter", "dash", "date"]

# Numbers in prices, versions, times or identifiers are not dates.
_APART: Final = r"(?<![\w.,:/$€£¥#@+])"
_ENDS: Final = r"(?![\w%°]|[.,:/]\d)"
_HAN_DAY: Final = r"(?:[ ]?[0-9]{1,2}[ ]?[日号號일])"
# Words before a day and month in digits, which could otherwise be a version.
_ON: Final = "(?:" + "|".join(rf"(?<=\b{cue}[ ])" for cue in ("am", "vom", "zum", "seit")) + ")"
_TOKEN: Final = re.compile(
    rf"""
      \s+
    | (?<!\w) [qQ](?P<quarter>[1-4]) (?!\w)
    | (?P<latin>[A-Za-z][^\W\d_\u3040-\u9fff]*)
    | (?<![\w.:/-]) (?P<iso>[0-9]{{4}}-[0-9]{{2}}(?:-[0-9]{{2}})?
        (?:T[0-9:.]{{2,20}}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?) (?![\w-])
    | (?<![\w.:/-]) (?P<ymd>[0-9]{{4}}(?P<s1>[./])[0-9]{{1,2}}(?P=s1)[0-9]{{1,2}}) {_ENDS}
    | (?<![\w.:/-]) (?P<dmy>[0-9]{{1,2}}(?P<s2>[./-])[0-9]{{1,2}}(?P=s2)[0-9]{{4}}
        |[0-9]{{1,2}}/[0-9]{{1,2}}/[0-9]{{2}}) {_ENDS}
    | {_ON} (?P<dm>[0-9]{{1,2}}\.[ ]?[0-9]{{1,2}}\.) (?![\w])
    | (?<![\w.:/-]) (?P<years>[0-9]{{4}}[ ]?[-–—][ ]?[0-9]{{4}}) {_ENDS}
    | (?<![0-9]) (?P<han>[0-9]{{4}}[ ]?[年년](?:[ ]?[0-9]{{1,2}}[ ]?[月월]{_HAN_DAY}?)?
        |[0-9]{{1,2}}[ ]?[月월]{_HAN_DAY})
    | (?<![0-9]) (?P<ago>[0-9一二两三四五六七八九十]{{1,2}}[ ]?
        (?:天|日|周|週間|星期|个月|個月|[かヶカ]月|年)前)
    | (?P<near>昨天|今天|明天|前天|后天|昨日|今日|明日|一昨日|去年|今年|明年|来年
        |上个?月|上個月|这个?月|下个?月|先月|今月|来月|上周|上星期|这周|下周|先週|今週|来週
        |(?<![가-힣])(?:어제|오늘|내일|지난주|지난달|작년|올해))
    | [\u3040-\u9fff\uac00-\ud7af]
    | (?P<decade>{_APART}(?:[0-9]{{3}}0|['’]?[0-9]0)['’]?s) (?!\w)
    | (?<![\w]) ['’](?P<short_year>[0-9]{{2}}) (?!['’]?\w)
    | {_APART} (?P<number>[0-9]{{1,4}}) (?P<ordinal>st|nd|rd|th|ST|ND|RD|TH|er|e)? {_ENDS}
    | (?P<dash>[-–—])
    | (?P<word>[^\W\d_\u3040-\u9fff\uac00-\ud7af]+)
    """,
    re.VERBOSE,
)
_FORMS: Final = {"s1": "ymd", "s2": "dmy", "ordinal": "number", "latin": "word"}
# Their text says the whole date; `numeric` reads it.
_WHOLE: Final = frozenset({"iso", "ymd", "dmy", "dm", "years", "han", "ago", "near"})


class Token(msgspec.Struct, frozen=True, gc=False):
    """A piece of the text that may be part of a date.

    Attributes:
        kind: `date` is a whole date.
        text: folded by `fold`; of a `date`, unchanged.
        form: of a `date`, which numeric form it has.
        value: the number in digits or words, else 0.
        gap: the text between it and the token before, without blanks.
        ordinal: whether a number was written as an ordinal: "7th".
        capital: whether it begins with a capital letter.
        start, end: its position in the text.
    """

    kind: Kind
    text: str
    gap: str
    start: int
    end: int
    form: str = ""
    value: int = 0
    ordinal: bool = False
    capital: bool = False

    @property
    def joined(self) -> bool:
        """Whether it may continue a phrase that the token before began."""
        return self.gap in {"", ","}


def tokens(text: str) -> list[Token]:
    """The tokens of `text`, in order; takes time linear in its length."""
    found: list[Token] = []
    end = 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup is None:
            continue
        gap = text[end : match.start()].strip() if found else "^"
        end = match.end()
        found.append(_token(match, gap))
    return found


def _token(match: re.Match[str], gap: str) -> Token:
    form = match.lastgroup or ""
    form = _FORMS.get(form, form)
    span = match.span()
    if form in _WHOLE:
        return Token("date", match.group(), gap, *span, form=form)
    if form == "word":
        word = match.group()
        return Token("word", fold(word), gap, *span, capital=word[0].isupper())
    if form == "dash":
        return Token("dash", "-", gap, *span)
    return _numbered(match, form, gap)


def _numbered(match: re.Match[str], form: str, gap: str) -> Token:
    digits = "".join(filter(str.isdigit, match[form]))
    ordinal = match["ordinal"] is not None
    kinds: dict[str, Kind] = {"decade": "decade", "short_year": "short_year", "quarter": "quarter"}
    kind = kinds.get(form, "number")
    return Token(kind, digits, gap, *match.span(), value=int(digits), ordinal=ordinal)
