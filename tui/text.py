"""Texts for the screen: harmless whatever was stored, and times and sizes as people read them.

Textual reads a `str` as markup in most places: titles, `Static`, cells of tables. Stored text
therefore goes to the screen as a `rich.text.Text`, which it shows as it is; see `View.shown`.
"""

from __future__ import annotations

import re
import time
from typing import Final

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
_DAY: Final = 86_400.0
_UNITS: Final = ((_DAY, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def plain(text: str, keep: str = "") -> str:
    r"""`text` with every character that acts on a terminal as a visible escape.

    Control characters, zero-width ones and those that turn the direction of writing are shown as
    `\x1b`, `\u202e` and so on, except those in `keep`, usually a line feed.
    """
    if text.isprintable() and not _ACTING.search(text):
        return text
    return _ACTING.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def masked(text: str) -> str:
    """`text` with its secrets as dots, all of the same length."""
    return _SECRETS.sub("••••••••", text)


def hidden(text: str) -> str:
    """Dots in place of a text that nobody beside the screen should read."""
    return "·" * min(len(text), 12) or "·"


def one_line(text: str) -> str:
    """`text` with every stretch of white space as one blank."""
    return " ".join(text.split())


def ago(seconds: float | None, now: float) -> str:
    """A time as its distance from now, in its largest unit: `3 min ago`, `in 2 h`, `never`."""
    if seconds is None:
        return "never"
    distance = abs(now - seconds)
    if distance < 1:
        return "now"
    size_of_unit, unit = next(pair for pair in _UNITS if distance >= pair[0])
    text = f"{int(distance // size_of_unit)} {unit}"
    return f"{text} ago" if seconds < now else f"in {text}"


def span(seconds: float) -> str:
    """A length of time in its two largest units; seconds only below a minute."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{rest} s"


def moment(seconds: float | None, now: float) -> str:
    """A local time as in `ls -l`: with the hour while it is near, else with the year."""
    if seconds is None:
        return "never"
    near = -_DAY < now - seconds < 180 * _DAY
    return time.strftime("%b %d %H:%M" if near else "%b %d  %Y", time.localtime(seconds))


def size(count: float) -> str:
    """A number of bytes, in steps of 1024."""
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.1f} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1024
    return f"{count:.1f} GB"


def part_of(used: float, limit: float) -> str:
    """A number of bytes against its limit: `4.7 of 5 KB`."""
    have, most = size(used), size(limit).replace(".0 ", " ")
    return f"{have.removesuffix(most[most.rindex(' ') :])} of {most}"


def number_of(number: float, one: str, several: str) -> str:
    """A number with the word that goes with it."""
    return f"{number:,.0f} {one if number == 1 else several}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
