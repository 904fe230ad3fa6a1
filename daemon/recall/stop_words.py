"""Words that say how a question is built, not what it is about."""

from __future__ import annotations

from typing import Final

STOP_WORDS: Final = frozenset(
    {
        "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at",
        "be", "because", "been", "before", "being", "but", "by", "can", "could", "did",
        "do", "does", "doing", "done", "for", "from", "get", "give", "go", "had", "has",
        "have", "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in",
        "into", "is", "it", "its", "just", "let", "me", "more", "my", "no", "not", "of",
        "off", "on", "or", "our", "out", "over", "please", "s", "she", "should", "so",
        "some", "t", "tell", "than", "that", "the", "their", "them", "then", "there",
        "these", "they", "this", "those", "to", "too", "under", "until", "up", "us", "very",
        "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom",
        "whose", "why", "will", "with", "would", "you", "your",
    }
)  # fmt: skip
