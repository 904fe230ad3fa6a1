"""What was done or is to be done, as short verb phrases: "deployed to testnet"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ..vocabulary import word_set

MAX_ACTIONS: Final = 3
_LONGEST_CHARS: Final = 60
_LONGEST: Final = 600
_PAST: Final = (
    "decided|agreed|chose|selected|picked|deployed|fixed|installed|created|published|completed"
    "|migrated|downloaded|released|merged|updated|upgraded|removed|deleted|added|switched"
    "|configured|set up|built|wrote|sent|bought|sold|booked|scheduled|moved|restarted|rebooted"
    "|tested|reviewed|signed|cancelled|canceled|hired|called|renamed|replaced|implemented"
    "|refactored|launched|resolved|solved|rolled back|reverted|backed up|confirmed|approved"
    "|ordered|planned|shipped|rewrote|enabled|disabled|rotated|restored|opened|closed|joined"
    "|adopted|registered|uploaded|submitted|contacted|emailed|visited|attended|finished"
)
_PHRASE: Final = re.compile(
    rf"\b(?:(?:let['’]s|todo:?|to-do:?|remember to|(?:(?:need|plan)s?|have|has|want) to"
    r"|planning to)\s+(?P<bare>(?!be\b|have\b)[a-z][^\W\d_]+\b)"
    r"|(?P<coming>(?:will|(?<=i['’])ll|(?<=we['’])ll|going to|gonna|must)\s+"
    r"(?!(?:be|have|need|take|remember|help|let|see|know|try|do|get|think|look)\b)[a-z][^\W\d_]+\b)"
    rf"|(?P<past>{_PAST})\b)",
    re.IGNORECASE,
)
_END: Final = re.compile(
    r"[,;:!?。，；！？\n()\[\]\"“”]|\.(?:\s|$)|\s[-–—]+\s|—"
    r"|\s(?:because|since|so that|but|which|although|while|and (?=(?:then|i|we|he|she|they|it|will"
    rf"|{_PAST})\b))",
    re.IGNORECASE,
)
_NEGATED: Final = re.compile(
    r"(?:\b(?:not|never|without|cannot)|n['’]t)(?: \w+)?\s+$", re.IGNORECASE
)
# "Is called Kepler".
_NAMED: Final = re.compile(r"(?:\b(?:is|are|was|were|be)|['’]s)\s+$", re.IGNORECASE)
_TRAILING: Final = word_set("a an the to of in on at for with and or by from as that this my our")


def actions_of(statements: Iterable[str], most: int = MAX_ACTIONS) -> tuple[str, ...]:
    """The first `most` actions in the statements, each once, of at most 60 characters.

    What was denied was not done and is left out.
    """
    found: dict[str, None] = {}
    for statement in statements:
        for action in _phrases(statement[:_LONGEST]):
            if len(found) >= most:
                return tuple(found)
            found[action] = None
    return tuple(found)


def _phrases(statement: str) -> Iterator[str]:
    at = 0
    while match := _PHRASE.search(statement, at):
        start = match.start("bare") if match["bare"] else match.start()
        stop = _END.search(statement, match.end())
        end = stop.start() if stop else len(statement)
        at = max(end, match.end())
        phrase = _short(statement[start:end].rstrip(" .…"))
        if _was_done(phrase, statement[max(0, match.start() - 24) : match.start()]):
            yield f"will{phrase[2:]}" if phrase[:3].lower() == "ll " else phrase


def _was_done(phrase: str, before: str) -> bool:
    key = phrase.lower()
    if _NEGATED.search(before) or key == "agreed":
        return False
    return not (key.startswith("called") and _NAMED.search(before))


def _short(phrase: str) -> str:
    words = phrase.split()
    while words and (len(" ".join(words)) > _LONGEST_CHARS or words[-1].lower() in _TRAILING):
        words.pop()
    return " ".join(words) or phrase[:_LONGEST_CHARS]
