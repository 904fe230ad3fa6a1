"""Texts for the screen: escaped, masked, formatted.

Textual reads a `str` as markup in most places: titles, `Static`, cells of tables. Stored text
therefore goes to the screen as a `rich.text.Text`, which it shows as it is; see `View.shown`.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Final

from thermocline.daemon.client import ApiError
from thermocline.daemon.client.wording import size, span

# Control characters, half characters, and what is invisible or turns the direction of writing.
_ACTING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Keys by their usual beginnings, tokens, passwords in addresses, and values called a secret.
_SECRETS: Final = re.compile(
    r"""(?x)
    -----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*-----|\Z)
    | \b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}
    | \b(?:gh[opsur]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|npm_|hf_)[A-Za-z0-9_-]{12,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?
    | (?<=://)[^\s/@:]*:[^\s/@]+(?=@)
    | (?i:(?<=bearer\ ))[A-Za-z0-9._~+/=-]{12,}
    | (?i:(?<=password\ is\ )|(?<=password:\ )|(?<=password=)|(?<=token=)|(?<=api_key=))\S{4,}
    """,
    re.DOTALL,
)

# A value with a digit or a mark after the word for it, in the languages of the daemon.
_NAMED: Final = re.compile(
    r"""(?xi)
    ((?: pass(?:word|wort|code|phrase) | kennwort | contraseña | mot\ de\ passe | wachtwoord
      | api[ _-]?key | token | 密[码碼] | 口令 | \bpin\b ) \w{0,8} (?:[ ]\S+){0,4}?
      \s* (?: [:=：] | [是为為] | \b(?:is|was|ist|lautet|es|est)\b ) \s* ["'“„«]? )
    (?= [^\s"'”»,;，。]* [\d_!@$%^&*+-] ) [^\s"'”»,;，。]{4,}
    | (\bpin\b\s+) \d{4,8}\b
    """
)
_DOTS: Final = "••••••••"
round_span: Final = partial(span, fine=False)


def plain(text: str, keep: str = "") -> str:
    r"""`text` with every character that acts on a terminal as a visible escape.

    Control characters, zero-width ones and those that turn the direction of writing are shown as
    `\x1b`, `\u202e` and so on, except those in `keep`, usually a line feed.
    """
    if text.isprintable() and not _ACTING.search(text):
        return text

    def escaped(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else match[0].encode("unicode_escape").decode()

    return _ACTING.sub(escaped, text)


def masked(text: str) -> str:
    """`text` with its secrets as dots, all of the same length."""
    text = _SECRETS.sub(_DOTS, text)
    return _NAMED.sub(lambda match: f"{match[1] or match[2]}{_DOTS}", text)


def hidden(text: str) -> str:
    """Dots in place of a text that should not be seen by others."""
    return "·" * min(len(text), 12) or "·"


def text_of(value: object) -> str:
    """A value as text: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def part_of(used: float, limit: float) -> str:
    """A number of bytes against its limit: `4.7 of 5 KB`."""
    have, most = size(used), size(limit).replace(".0 ", " ")
    return f"{have.removesuffix(most[most.rindex(' ') :])} of {most}"


def why(error: Exception) -> str:
    """An error, and where known what to do about it."""
    hint = error.hint if isinstance(error, ApiError) else None
    return f"{error}; {hint}" if hint else str(error)
