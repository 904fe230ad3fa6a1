"""Extracts the references of a text: its URLs, shell commands and paths.

The rules and the caps are EvoClaw's, including its quirk that a line that begins with a known tool
is kept without the tool's name. No pattern backtracks: quantifiers are possessive where they
could. The patterns for URLs and paths read only words that may contain one, which makes ordinary
text several times faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .records import Metadata

MAX_URLS: Final = 10
MAX_COMMANDS: Final = 5
MAX_PATHS: Final = 10

# A longer match is data, not a reference.
_LONGEST: Final = 2_048

# Only names that do not also begin English sentences ("make sure", "go to", "find out").
_TOOLS: Final = (
    "ansible|apt|apt-get|aws|az|brew|bun|bundle|cargo|cd|chmod|chown|clawhub|cmake|composer|conda"
    "|cp|curl|deno|dnf|docker|docker-compose|ffmpeg|flatpak|gcloud|gem|gh|git|gradle|helm|htop"
    "|journalctl|kubectl|ls|mkdir|mv|mvn|node|npm|npx|openssl|pacman|pip|pip3|pipx|pnpm|podman"
    "|poetry|psql|pytest|python|python3|rm|rsync|ruby|rustup|scp|sed|sqlite3|ssh|sudo|systemctl"
    "|tar|terraform|tmux|turso|unzip|uv|wget|yarn|yum"
)

# Round brackets may belong to a URL; quotes, square brackets and CJK punctuation end it.
_URL_CHARS: Final = r"[^\s<>\"`\[\]{}|\\^\u3000-\u303f\uff00-\uff0f\uff1a-\uff20]"
_URL: Final = re.compile(
    rf"(?<![A-Za-z0-9_])(?:https?://|www\.)(?=[^\W_]){_URL_CHARS}++"
    r"|(?<![a-z0-9_\u00c0-\u024f@./:~-])(?:[a-z0-9-]++\.)+(?:com|org|ai|io|net|dev|app|studio|co)(?![\w@-]|\.\w)"
    rf"(?::[0-9]{{1,5}})?(?:[/?#]{_URL_CHARS}*+)?",
    re.IGNORECASE,
)
# At the start of a line.
_LINE: Final = (
    r"[ \t]*+\$[ ]++(?P<prompt>[^\n]++)"
    rf"|[ \t]*+(?:sudo[ \t]++)?(?:{_TOOLS})[ \t]++(?P<tool>[^\n]++)"
)
_LINE_COMMAND: Final = re.compile(_LINE)
_COMMAND: Final = re.compile(
    rf"(?<!`)(?P<fence>`{{1,3}}+)(?P<quoted>[^`\n]++)(?P=fence)(?!`)|\A(?:{_LINE})"
)
_SEGMENT: Final = r"[\w.@+%=,-]++"
_PATH: Final = re.compile(
    rf"(?<![\w.@+%,~<:/-])(?:(?:~|\.\.?)(?:/{_SEGMENT})++|(?:/{_SEGMENT}){{2,}}+)/?"
)


def extract(text: str) -> Metadata:
    """The first 10 URLs, 5 commands and 10 paths of `text`, in order, without repeats.

    Takes time linear in the length of the text: about 30 ms for a megabyte of prose.
    """
    words = " ".join(word for word in text.split() if "/" in word or "." in word[:-1])
    return Metadata(
        urls=_first(_urls(words), MAX_URLS),
        commands=_first(_commands(text), MAX_COMMANDS),
        paths=_first(_paths(words), MAX_PATHS),
    )


def merge(given: Metadata, found: Metadata) -> Metadata:
    """The given references, then the found ones; the caps apply to `found` only."""
    return Metadata(
        urls=tuple(dict.fromkeys(given.urls + found.urls[:MAX_URLS])),
        commands=tuple(dict.fromkeys(given.commands + found.commands[:MAX_COMMANDS])),
        paths=tuple(dict.fromkeys(given.paths + found.paths[:MAX_PATHS])),
    )


def _first(found: Iterable[str], number: int) -> tuple[str, ...]:
    kept: dict[str, None] = {}
    for value in found:
        kept[value] = None
        if len(kept) == number:
            break
    return tuple(kept)


def _urls(text: str) -> Iterator[str]:
    for match in _URL.finditer(text):
        url = _without_trailing(match.group())
        if len(url) <= _LONGEST:
            yield url


def _without_trailing(url: str) -> str:
    """The URL without trailing punctuation; a bracket stays if it was opened inside."""
    surplus = url.count(")") - url.count("(")
    end = len(url)
    while end:
        last = url[end - 1]
        if last == ")" and surplus > 0:
            surplus -= 1
        elif last not in ".,;:!?'*(":
            break
        end -= 1
    return url[:end]


def _commands(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if "`" in line:
            yield from filter(None, map(_command, _COMMAND.finditer(line)))
        elif (match := _LINE_COMMAND.match(line)) and (command := _command(match)):
            yield command


def _command(match: re.Match[str]) -> str:
    command = (match[match.lastgroup or 0]).strip()
    return command if 4 <= len(command) <= 199 else ""


def _paths(text: str) -> Iterator[str]:
    if "/" not in text:
        return
    for match in _PATH.finditer(_URL.sub(" ", text)):
        path = match.group().rstrip(".,")
        if 5 < len(path) <= _LONGEST:
            yield path
