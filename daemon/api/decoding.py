"""A request as structs: strict JSON, the query of a URL, and other systems' spellings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from ..errors import InvalidInput
from ..schemas.common import convert

_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])[A-Z]")
_PART: Final = re.compile(r"[^.\[\]]+")
# The agent is a parameter of every operation; see `dispatch.py`.
_AGENT: Final = "agent"


# Structs


def body_as(body: bytes, kind: Any, spelled: dict[str, str]) -> Any:
    """The JSON of a body as a `kind`, else `InvalidInput`; `spelled` receives other spellings."""
    if not body:
        raise InvalidInput("cannot read the body: it is empty", hint="send JSON")
    return convert(_respelled(decode(body), kind, spelled), kind)


def query_as(query: Mapping[str, Sequence[str]], kind: Any, spelled: dict[str, str]) -> Any:
    """A URL's parameters as a `kind`, else `InvalidInput`; lists are repeated or commas."""
    values = {name: value for name, value in query.items() if name != _AGENT}
    lists, fields = _list_fields(kind), _respelled(values, kind, spelled)
    for name, texts in fields.items():
        if name in lists:
            # A single tag may contain a comma; the other lists are of plain words.
            parts = texts if name == "tag" else [part for text in texts for part in text.split(",")]
            fields[name] = [part for part in parts if part]
        elif len(texts) > 1:
            raise InvalidInput(f"'{name}' is given {len(texts)} times", field=name)
        else:
            fields[name] = texts[0]
    return convert(fields, kind, strict=False)


@cache
def _list_fields(kind: Any) -> frozenset[str]:
    fields = msgspec.structs.fields(kind)
    return frozenset(field.encode_name for field in fields if tuple in _origins(field.type))


def _origins(hint: Any) -> set[Any]:
    """The types among which a value may be, without their arguments."""
    if get_origin(hint) in {Annotated, Union, UnionType}:
        return set().union(*map(_origins, get_args(hint)))
    return {get_origin(hint) or hint}


# Other systems' spellings


def name_as_called(error: InvalidInput, spelled: Mapping[str, str]) -> None:
    """Have an error name its field as the caller has spelled it."""
    if error.field and spelled:
        ours = error.field
        error.field = _PART.sub(lambda part: spelled.get(part[0], part[0]), ours)
        error.message = error.message.replace(f"'{ours}'", f"'{error.field}'", 1)


def _respelled(value: Any, kind: Any, spelled: dict[str, str]) -> Any:
    """`value` with each key that is no field of `kind` in the spelling that is one.

    `topK` is `top_k`, and `userId` is `user_id`, or `user` where there is no such field. This is
    the only place that knows of other spellings, and holds for every struct in the request.
    `spelled` receives the caller's spelling of each.
    """
    if isinstance(value, dict) and (fields := _fields(kind)):
        for key in value.keys() - fields.keys():
            name = _CAPITAL.sub(lambda capital: "_" + capital[0].lower(), key)
            name = name if name in fields else name.removesuffix("_id")
            if name in value and name in fields:
                raise InvalidInput(f"give either '{name}' or '{key}', not both", field=key)
            if name in fields:
                value[name] = value.pop(key)
                spelled[name] = key
        for name, inner in fields.items():
            if inner is not None and name in value:
                value[name] = _respelled(value[name], inner, spelled)
    elif isinstance(value, list) and _fields(kind):
        return [_respelled(item, kind, spelled) for item in value]
    return value


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The fields of the struct in a type, each with its own type if there is a struct in it."""
    struct = _struct_in(kind)
    if struct is None:
        return {}
    fields = msgspec.structs.fields(struct)
    return {field.encode_name: _struct_in(field.type) for field in fields}


def _struct_in(hint: Any) -> Any:
    """The only struct in a type: of a field, or of the items of a list; else None."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint
    if get_origin(hint) is dict:
        return None
    structs = {struct for inner in get_args(hint) if (struct := _struct_in(inner))}
    return structs.pop() if len(structs) == 1 else None


# Strict JSON


def decode(body: bytes) -> Any:
    """The JSON value in `body`.

    Raises:
        InvalidInput: it is not valid UTF-8 or JSON, names a key twice, contains NaN, an infinity or
            a lone surrogate, or is nested too deeply.
    """
    try:
        value = json.loads(
            body.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"cannot read the body: it is not valid UTF-8 ({error.reason})"
        ) from error
    except RecursionError as error:
        raise InvalidInput("cannot read the body: it is nested too deeply") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"cannot read the body as JSON: {error.msg} ({place})") from error
    except ValueError as error:
        # Python's error for integers of more than 4,300 digits.
        raise InvalidInput(f"cannot read the body as JSON: {error}") from error
    if _SURROGATE_ESCAPE.search(body):
        _refuse_surrogates(value)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput(f"cannot read the body: it names '{twice[:64]}' twice", field=twice[:64])
    return fields


def _refuse_constant(name: str) -> Any:
    raise InvalidInput(f"cannot read the body: {name} is not JSON")


def _refuse_surrogates(value: Any) -> None:
    """Refuse lone surrogates anywhere in the body: such text cannot be stored or shown."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict):
            for key, inner in item.items():
                below = f"{path}.{key}" if path else key
                waiting += [(below, inner), (below, key)]
        elif isinstance(item, list):
            waiting += [(f"{path}[{index}]", inner) for index, inner in enumerate(item)]
        elif isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError as error:
                whose = f"'{path}'" if path else "the body"
                raise InvalidInput(
                    f"fix {whose}: lone surrogate at position {error.start}",
                    field=path or None,
                    hint="the text must be valid Unicode",
                ) from error
