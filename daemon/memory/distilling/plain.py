"""A sentence without what only surrounds its meaning, and a text without what can't be shown."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from ..stop_words import NOT_TOPICS

_LEAD_INS: Final = 3
# Before what is meant: "Actually, …", "I think that …", "Please note that …".
_LEAD_IN: Final = re.compile(
    r"(?:(?:hey|hi|hello|thanks|thank you|wow|yep|yeah) \w{2,16}[,!] "
    r"|(?:no wait|oh no|oh wait"
    r"|well|so|ok|okay|yes|yeah|yep|no|nope|hey|hi|oh|ah|hmm|wow|sure"
    r"|right|great|alright"
    r"|actually|anyway|basically|honestly|btw|fyi|by the way|just so you know|for the record"
    r"|good (?:idea|point)|sounds good|sorry|wait|and|but|also|thanks|thank you|correction|update"
    r"|unfortunately|luckily|fortunately|finally|as i said)(?:[,:;!.—–]+| -+)\s+"
    r"|(?:(?:please )?(?:note|remember|keep in mind|be aware)|i(?:'d| would) say|i(?: just)? wanted"
    r" to (?:say|tell you|let you know)|i think|i guess|i believe|it turns out|turns out|you know)"
    r",? (?:that )?(?=(?:the|we|i|it|my|our|he|she|they|you|there|this|that|a|an)\b)"
    r"|(?:please )?(?:note|remember|keep in mind) that |(?:and|but|also|actually) |so (?=(?:i|we"
    r"|the|my|our)\b))",
    re.IGNORECASE,
)
_FILLER: Final = re.compile(
    r"(?<!not )(?<!n't )(?<!n’t )\b(?:really|very|basically|actually|literally|totally|honestly"
    r"|super"
    r"|kinda|kind of|sort of) (?=[a-z])"
)
_CLOSING: Final = " .!。！;,"


def printable(text: str) -> str:
    """`text` as valid Unicode without control characters but for line ends and tabs."""
    if text.isprintable():
        return text
    valid = text.encode("utf-8", "replace").decode()
    return "".join(char for char in valid if char in "\n\t\r" or unicodedata.category(char) != "Cc")


def plain(sentence: str, aggression: float = 0.7) -> str:
    """`sentence` without its lead-in, words that only fill it, and its full stop."""
    text = sentence
    for _ in range(_LEAD_INS if aggression >= 0.2 else 0):
        lead = _LEAD_IN.match(text)
        if lead is None or len(text) - lead.end() < 8:
            break
        text = text[lead.end() :]
    if aggression >= 0.5:
        text = _FILLER.sub("", text)
    text = text.strip().rstrip(_CLOSING) or sentence
    begins = re.match(r"[^\W\d_]+", text)
    if not sentence.startswith(text) and begins and begins.group() in NOT_TOPICS:
        return text[0].upper() + text[1:]
    return text
