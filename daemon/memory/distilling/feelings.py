"""The feelings that people name in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ..similarity import fold
from ..statement import read
from ..vocabulary import NEGATIONS, word_set

NEUTRAL: Final = "neutral"
_LONGEST: Final = 600
_WORDS: Final = {
    "happy": word_set(
        "happy glad excited thrilled delighted pleased joyful overjoyed cheerful ecstatic stoked",
        "glücklich froh begeistert heureux heureuse content contente ravi ravie feliz contento",
        "contenta alegre emocionado emocionada рад рада счастлив счастлива",
    ),
    "sad": word_set(
        "sad unhappy disappointed heartbroken depressed miserable devastated gutted lonely",
        "grieving",
        "traurig enttäuscht triste déçu déçue triste decepcionado decepcionada грустно грустный",
    ),
    "angry": word_set(
        "angry furious annoyed frustrated frustrating irritated outraged infuriating",
        "wütend sauer verärgert frustriert furieux fâché fâchée enojado enojada enfadado enfadada",
        "злюсь раздражает",
    ),
    "worried": word_set(
        "worried anxious nervous concerned afraid scared stressed terrified overwhelmed uneasy",
        "besorgt nervös ängstlich inquiet inquiète nerveux nerveuse preocupado preocupada nervioso",
        "nerviosa волнуюсь переживаю боюсь беспокоюсь",
    ),
    "relieved": word_set(
        "relieved relief erleichtert soulagé soulagée aliviado aliviada облегчение"
    ),
    "grateful": word_set(
        "grateful thankful thanks thank appreciate appreciated dankbar danke reconnaissant",
        "reconnaissante merci agradecido agradecida gracias спасибо благодарен благодарна",
    ),
}
_EMOTIONS: Final = {word: emotion for emotion, words in _WORDS.items() for word in words}
FEELINGS: Final = frozenset(_EMOTIONS)
_SIGNS: Final = (
    ("happy", "😀😃😄😁😊🙂😍🥳"),
    ("happy", ("开心", "高兴", "高興", "嬉しい", "うれしい", "기뻐", "행복")),
    ("sad", "😢😭☹😞💔"),
    ("sad", ("难过", "伤心", "悲しい", "슬퍼")),
    ("angry", "😡🤬😠"),
    ("angry", ("生气", "生氣", "愤怒", "怒って", "화가")),
    ("worried", "😰😟😱😨"),
    ("worried", ("担心", "焦虑", "心配", "不安", "걱정")),
    ("relieved", "😌😅"),
    ("relieved", ("松了一口气", "鬆了一口氣", "ほっと", "다행")),
    ("grateful", "🙏"),
    ("grateful", ("谢谢", "謝謝", "感谢", "感激", "ありがと", "감사", "고마")),
)
# Phrases with a word of feeling that express no feeling.
_FORMULAS: Final = re.compile(
    r"\b(?:(?:happy|glad|pleased|delighted) to (?:help|assist|hear)|glad (?:i could|it|you)"
    r"|happy (?:birthday|new year|holidays|path|hour)|(?:no|don't|do not) (?:worry|worries|thanks)"
    r"|no,? (?:thanks|thank you)|thanks to|as far as .{1,20} concerned"
    r"|(?:are|is|aren't) (?:you|he|she|they) (?:\w+ )?(?:happy|sad|angry|worried|glad|nervous))\b"
)
_DENIES: Final = NEGATIONS | word_set("without less hardly longer if")
_EARLIER: Final = 3


def emotion_of(statements: Iterable[str]) -> str:
    """One of seven words, or "first → last" where the feeling changes.

    happy, sad, angry, worried, relieved, grateful; neutral where none is named. "Not happy" is
    sad; other denied feelings do not count.
    """
    first, last = "", ""
    for statement in statements:
        for emotion in _emotions(statement[:_LONGEST]):
            first, last = first or emotion, emotion
    if first == last:
        return first or NEUTRAL
    return f"{first} → {last}"


def _emotions(statement: str) -> Iterator[str]:
    folded = _FORMULAS.sub(" ", fold(statement))
    words = read(folded).words
    for at, word in enumerate(words):
        emotion = _EMOTIONS.get(word)
        if emotion is None:
            continue
        if _DENIES.isdisjoint(words[max(0, at - _EARLIER) : at]):
            yield emotion
        elif emotion == "happy":
            yield "sad"
    if folded.isascii():
        return
    signs = ((folded.find(sign), emotion) for emotion, signs in _SIGNS for sign in signs)
    yield from (emotion for place, emotion in sorted(signs) if place >= 0)
