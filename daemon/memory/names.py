"""Names of entities: how they are compared, and the words of a text that may be names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

LONGEST_NAME: Final = 3
# Only the first words of a text are compared with names.
_MOST_WORDS: Final = 200
_WORD: Final = re.compile(r"[^\s,.;:!?()\[\]\"“”„]+")
_MOST_NAMES: Final = 200


def name_key(name: str) -> str:
    """The key that names are compared by: like SQLite's `lower`, which folds only ASCII."""
    name = name.strip(" ")
    if name.isascii():
        return name.lower()
    return "".join(char.lower() if char.isascii() else char for char in name)


def words_of(text: str) -> list[str]:
    """The first words of a text, without surrounding punctuation."""
    return _WORD.findall(text)[:_MOST_WORDS]


def keys_named(entities: object) -> set[str]:
    """The keys of all names in the `data.entities` of a memory, including targets of relations.

    Invalid entries are ignored. Lists of memories that are not read back yet may be tuples.
    """
    keys: set[str] = set()
    for entity in entities if isinstance(entities, (list, tuple)) else ():
        if isinstance(entity, Mapping):
            keys.update(_key(entity.get("name")))
            relations = entity.get("relations")
            for link in relations if isinstance(relations, (list, tuple)) else ():
                if isinstance(link, Mapping):
                    keys.update(_key(link.get("target")))
        if len(keys) > _MOST_NAMES:
            break
    return keys


def _key(name: Any) -> set[str]:
    return {name_key(name)} if isinstance(name, str) and name.strip(" ") else set()
