"""What encoders behind a server expect, and what they answer. Used only in the models' process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..memory.vectors import quantised
from .failures import CallFailed
from .wire import Embed

# The argument by which a provider is told what a text is, and its values for queries and passages.
_ROLES: Final = {
    "cohere": ("input_type", "search_query", "search_document"),
    "jina_ai": ("task", "retrieval.query", "retrieval.passage"),
    "nvidia_nim": ("input_type", "query", "passage"),
    "voyage": ("input_type", "query", "document"),
}
_SEARCH: Final = "Represent this sentence for searching relevant passages: "
_INSTRUCTION: Final = "Instruct: Given a question, retrieve memories that answer it\nQuery:"
# What families of models were trained to see before queries and passages, by a part of their names;
# the first part that is in a name counts.
_PREFIXES: Final[dict[str, tuple[str, str]]] = {
    "nomic-embed": ("search_query: ", "search_document: "),
    "multilingual-e5-large-instruct": (_INSTRUCTION + " ", ""),
    "e5-mistral": (_INSTRUCTION + " ", ""),
    "multilingual-e5": ("query: ", "passage: "),
    "e5-": ("query: ", "passage: "),
    "bge-m3": ("", ""),
    "bge-multilingual": ("", ""),
    "bge-": (_SEARCH, ""),
    "mxbai-embed": (_SEARCH, ""),
    "arctic-embed2": ("query: ", ""),
    "arctic-embed-l-v2": ("query: ", ""),
    "arctic-embed-m-v2": ("query: ", ""),
    "arctic-embed": (_SEARCH, ""),
    "qwen3-embedding": (_INSTRUCTION, ""),
    "embeddinggemma": ("task: search result | query: ", "title: none | text: "),
}
_MOST_DIMENSIONS: Final = 16_384


def prepared(request: Embed, provider: str) -> tuple[list[str], dict[str, str]]:
    """The texts as the model was trained to see them, and arguments that say what they are."""
    is_query = request.role == "query"
    if provider in _ROLES:
        name, query, passage = _ROLES[provider]
        return [*request.texts], {name: query if is_query else passage}
    name = request.model.lower()
    pairs = (pair for family, pair in _PREFIXES.items() if family in name)
    query, passage = next(pairs, ("", ""))
    return [(query if is_query else passage) + text for text in request.texts], {}


def vectors_of(model: str, data: Sequence[Any], texts: int) -> tuple[tuple[bytes | None, ...], int]:
    """The vectors of an answer in OpenAI's form, in order, and their dimensions."""
    rows: dict[int, Any] = {}
    for place, item in enumerate(data):
        index = item.get("index")
        rows[index if isinstance(index, int) else place] = item["embedding"]
    if sorted(rows) != list(range(texts)) or len(data) != texts:
        raise CallFailed("nonsense", f"{model} sends {len(data)} vectors for {texts} texts")
    lengths = {len(row) for row in rows.values()}
    if len(lengths) != 1 or not 0 < max(lengths) <= _MOST_DIMENSIONS:
        shown = " and ".join(map(str, sorted(lengths)[:3]))
        raise CallFailed("nonsense", f"{model} sends vectors of {shown} dimensions")
    vectors = []
    for place in range(texts):
        row = rows[place]
        is_whole = all(isinstance(number, int | float) for number in row)
        vectors.append(quantised(row) if is_whole else None)
    return tuple(vectors), lengths.pop()
