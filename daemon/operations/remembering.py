"""Makes a memory from a request: names, scales, defaults and checks."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..errors import InvalidInput
from ..language.distilling import without
from ..language.standing import is_standing_statement
from ..memory import checks
from ..memory.expiry import parse_expiry
from ..memory.metadata import extract, merge
from ..memory.records import DEFAULT_CATEGORY, DEFAULT_EVENT, TYPES, Memory, Metadata
from ..memory.scoring import default_importance
from ..shapes.memory import MemoryChanges, NewMemory
from .scope import Scope

_SHORT: Final = {
    "subject": 500,
    "outcome": 4000,
    "source": 200,
    "actor": 200,
    "group": 200,
    "event": 64,
}
_CHECKS: Final[Mapping[str, Callable[..., Any]]] = {
    "type": lambda given, field: TYPES[given],  # noqa: ARG005 - called like the checks
    "tags": checks.check_tags,
    "metadata": checks.check_metadata,
    "data": checks.check_data,
    "created_at": checks.check_time,
}


def remembered(scope: Scope, new: NewMemory, at: str = "") -> Memory:
    """The memory that `new` asks for.

    Args:
        scope: who sent it, and when.
        new: what was sent.
        at: the place of `new` in the body, as a prefix for field names in errors.

    Raises:
        InvalidInput: a field is missing or invalid.
    """
    fields = _checked(scope, new, at)
    if "text" not in fields:
        raise InvalidInput("give the memory a 'text' (or 'content')", field=f"{at}text")
    event = fields.setdefault("event", DEFAULT_EVENT)
    fields.setdefault("importance", default_importance(event))
    fields.setdefault("category", DEFAULT_CATEGORY)
    fields.setdefault("created_at", scope.now)
    given = fields.get("metadata", Metadata())
    fields["metadata"] = merge(given, extract(fields["text"]))
    if "standing" not in fields:
        # A turn of a conversation reports; what follows from it is a memory of its own.
        is_turn = fields.get("position") is not None
        fields["standing"] = not is_turn and is_standing_statement(fields["text"])
    return Memory(id=secrets.token_hex(8), updated_at=scope.now, writer=scope.peer.name, **fields)


def changed(scope: Scope, old: Memory, changes: MemoryChanges) -> Memory:
    """`old` with the changes except `merged_into`, which `merging` handles.

    References in a new text replace those of the old text, unless the caller names references.

    Raises:
        InvalidInput: no change is given, or a field is invalid.
    """
    fields = _checked(scope, changes, "")
    if changes.merged_into is not UNSET:
        if changes.merged_into == old.id:
            raise InvalidInput("cannot merge a memory into itself", field="merged_into")
        if not fields:
            return old
    if not fields:
        raise InvalidInput("name at least one field to change")
    if "text" in fields:
        found = extract(old.text)
        kept = fields.get("metadata", without(old.metadata, [found]))
        fields["metadata"] = merge(kept, extract(fields["text"]))
        # What a person has set by hand stays.
        if "standing" not in fields and old.standing == is_standing_statement(old.text):
            fields["standing"] = is_standing_statement(fields["text"])
    return msgspec.structs.replace(old, **fields, updated_at=scope.now)


def _checked(scope: Scope, new: NewMemory, at: str) -> dict[str, Any]:
    given = {name: one for name, one in msgspec.structs.asdict(new).items() if one is not UNSET}
    plain = ("pinned", "standing", "position")
    fields: dict[str, Any] = {name: given[name] for name in plain if name in given}
    text = _one_of(new.text, new.content, f"{at}text", f"{at}content")
    if text is not UNSET:
        most = scope.settings.limits.max_text_bytes
        fields["text"] = checks.check_text(text, most, field=f"{at}text")
    for name, chars in _SHORT.items():
        if name in given:
            fields[name] = checks.check_short(given[name], f"{at}{name}", chars)
    if fields.get("event") == "":
        raise InvalidInput("give 'event' a word, or leave it out", field=f"{at}event")
    if "category" in given:
        depth = scope.settings.tree.max_depth
        fields["category"] = checks.check_category(given["category"], depth, field=f"{at}category")
    if "importance" in given:
        fields["importance"] = checks.check_given_importance(
            given["importance"], beside_content="content" in given, field=f"{at}importance"
        )
    for name, check in _CHECKS.items():
        if name in given:
            fields[name] = check(given[name], field=f"{at}{name}")
    expires = _one_of(new.expires, new.ttl, f"{at}expires", f"{at}ttl")
    if expires is not UNSET:
        fields["expires_at"] = parse_expiry(expires, scope.now, field=f"{at}expires")
    return fields


def _one_of(first: Any, second: Any, field: str, alias: str) -> Any:
    if first is not UNSET and second is not UNSET:
        raise InvalidInput(f"give either '{field}' or '{alias}', not both", field=alias)
    return second if first is UNSET else first
