"""Words of grammar, which say nothing about the topic of a sentence."""

from __future__ import annotations

from typing import Final

# Few on purpose: "go", "get", "before" or "about" are distinctive in a small memory, and in a large
# one the limit on common words drops them.
STOP_WORDS: Final = frozenset(
    {
        "a", "am", "an", "and", "are", "as", "at", "be", "been", "being", "by", "can",
        "could", "d", "did", "do", "does", "doing", "done", "for", "from", "had", "has",
        "have", "having", "he", "her", "hers", "him", "his", "how", "i", "in", "is", "it",
        "its", "ll", "m", "may", "me", "might", "must", "my", "of", "on", "or", "our", "re",
        "s", "she", "should", "t", "that", "the", "their", "them", "these", "they", "this",
        "those", "to", "us", "ve", "was", "we", "were", "what", "when", "where", "which",
        "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
    }
)  # fmt: skip

# Further words that are dropped from questions if other words remain.
ALSO_LEFT_OUT: Final = frozenset(
    {
        "ourselves", "yours", "themselves", "myself", "yourself", "himself", "herself", "itself",
        "theirs", "but", "if", "because", "until", "while", "about", "against", "between", "into",
        "through", "during", "before", "after", "above", "below", "up", "down", "out", "off",
        "over", "under", "again", "further", "then", "once", "here", "there", "all", "any", "both",
        "each", "few", "more", "most", "other", "some", "such", "no", "nor", "not", "only", "own",
        "same", "so", "than", "too", "very", "just", "don", "now", "o", "y",
    }
)  # fmt: skip
