"""Removes secrets from a text before it leaves the device, or is kept automatically.

Secrets are recognised by their shape, or by the name before them: `password=…`. Other random text
stays, such as hashes, UUIDs and encoded images, and so does prose about passwords.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ..memory.records import Json, Memory, Metadata
from . import secret_patterns as forms
from .vocabulary import compiled, each

_KINDS: Final = {
    **dict.fromkeys(("webhook", "discord", "telegram"), "url_password"),
    "prefixed": "api_key",
}


class Cleared(msgspec.Struct, frozen=True):
    """A text without its secrets, and how many of each kind were taken out."""

    text: str
    counts: dict[str, int]


def clear(text: str) -> Cleared:
    """`text` with `[… removed]`, which names the kind, in place of each secret.

    The kinds: api_key, github_token, aws_key, slack_token, jwt, private_key, url_password,
    bearer, password, token, credit_card, iban. Clearing a cleared text changes nothing. Takes
    time that grows with the length of the text.
    """
    if not text:
        return Cleared(text, {})
    counts: Counter[str] = Counter()
    folded = text.casefold()
    told = _any_cue().search(folded) is not None
    for pattern, judge, cues in _rules():
        if not cues or (told and any(cue in folded for cue in cues)):
            text = pattern.sub(_replacing(judge, counts), text)
    return Cleared(text, dict(counts))


def without_secrets(memory: Memory) -> Memory:
    """`memory` with marks in place of its secrets, in all its texts, tags and data."""
    lists = msgspec.structs.asdict(memory.metadata)
    return replace(
        memory,
        text=clear(memory.text).text,
        subject=clear(memory.subject).text,
        outcome=clear(memory.outcome).text,
        tags=tuple(dict.fromkeys(clear(tag).text for tag in memory.tags)),
        metadata=Metadata(**{name: tuple(cleared(list(found))) for name, found in lists.items()}),
        data=cleared(memory.data),
    )


def secrets_of(memory: Memory) -> tuple[str, ...]:
    """The kinds of secrets in a memory, in words."""
    said = [memory.text, memory.subject, memory.outcome, *memory.tags]
    lists = msgspec.structs.asdict(memory.metadata).values()
    rest = [value for found in lists for value in found if value not in memory.text]
    return secrets_in([*said, *rest, memory.data])


def secrets_in(value: Json) -> tuple[str, ...]:
    """The kinds of secrets in the strings of a JSON value, in words."""
    kinds: Counter[str] = Counter()
    _cleared(value, kinds)
    return tuple(kind.replace("_", " ") for kind in kinds)


def cleared(value: Json) -> Any:
    """A JSON value with marks in place of the secrets in its strings."""
    return _cleared(value, Counter())


def _cleared(value: Json, kinds: Counter[str]) -> Any:
    if isinstance(value, str):
        found = clear(value)
        kinds.update(found.counts)
        return found.text
    if isinstance(value, list):
        return [_cleared(one, kinds) for one in value]
    if isinstance(value, dict):
        return {_cleared(key, kinds): _named_value(key, one, kinds) for key, one in value.items()}
    return value


def _named_value(name: str, value: Json, kinds: Counter[str]) -> Any:
    """The value under a key that may identify it as a secret: `{"password": "…"}`."""
    plain = _cleared(value, kinds)
    if not isinstance(plain, str) or plain != value:
        return plain
    before = f"{name}: "
    found = clear(before + plain)
    if not found.counts or not found.text.startswith(before):
        return plain
    kinds.update(found.counts)
    return found.text[len(before) :]


# Returns the kind of secret of a match, or "".
_Judge: TypeAlias = Callable[[re.Match[str]], str]


def _replacing(judge: _Judge, counts: Counter[str]) -> Callable[[re.Match[str]], str]:
    def replaced(match: re.Match[str]) -> str:
        kind = judge(match)
        if not kind:
            return match.group()
        counts[kind] += 1
        groups = match.groupdict()
        before = "".join(groups[name] or "" for name in groups if name.startswith("before"))
        quote = groups.get("quote") or ""
        end = "\n" if match.group().endswith("\n") else ""
        return f"{before}{quote}[{kind.replace('_', ' ')} removed]{quote}{end}"

    return replaced


def _shape(match: re.Match[str]) -> str:
    kind = match.lastgroup or "api_key"
    return _KINDS.get(kind, kind)


def _in_url(match: re.Match[str]) -> str:
    return "" if match["value"][0] in "$<{[*%" else "url_password"


def _header(match: re.Match[str]) -> str:
    value = match["value"]
    before = match["before"].lower()
    scheme = before.rstrip(" \"'")
    announced = before.startswith("authorization") and not scheme.endswith((":", "="))
    if not announced and not (_is_varied(value) and len(value) >= 16):
        return ""
    if "pass" in before:
        return "password"
    named = "authorization" not in before and ("key" in before or "secret" in before)
    return "api_key" if named else "bearer"


def _is_varied(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _assigned(match: re.Match[str]) -> str:
    name = match["name"].lower()
    if not _is_secret(match["quoted"] or match["bare"], name, match):
        return ""
    if "key" in name or "secret" in name:
        return "api_key"
    return "token" if name == "token" else "password"


def _in_xml(match: re.Match[str]) -> str:
    return "" if forms.PLACEHOLDER.match(match["value"]) else "password"


def _is_secret(value: str, name: str, match: re.Match[str]) -> bool:
    if forms.PLACEHOLDER.match(value) or (value.isdigit() and len(value) < 4):
        return False
    if "=" in match["how"]:
        return name[0] == "p" or not (value.isdigit() or _is_variable(value, match))
    varied = any(map(str.isdigit, value))
    if match["of"] and not varied:
        return False
    if match["quoted"]:
        return varied or (" " not in value and not match["how"].isspace())
    if name == "pass" and not (varied and len(value) > 6):
        return False
    return _is_unlike_prose(value, match)


def _is_variable(value: str, match: re.Match[str]) -> bool:
    """Whether it is an assignment in a program: `token = current`."""
    bare = match["bare"] is not None and match["how"].startswith(" ")
    return bare and value.replace("_", "").isalpha()


def _is_unlike_prose(value: str, match: re.Match[str]) -> bool:
    """Whether the value after a colon or "is" is hardly a word of a sentence."""
    word = re.sub("[-'’/]", "", value.rstrip(".!?):"))
    if word.isalpha() and (word.islower() or word.istitle()):
        alone = match.string[match.end() : match.end() + 1] in {"", "\n", "\r"}
        said = match["how"].strip(" :").isalpha()
        return alone and not said and len(word) > 5
    return len(word) >= 4 and (not word.isalpha() or len(word) > 7)


def _flag(match: re.Match[str]) -> str:
    value = match["quoted"] or match["bare"]
    if forms.PLACEHOLDER.match(value) or value.startswith(("-", "id=", "type=", "source=")):
        return ""
    return "token" if "token" in match["before"].lower() else "password"


# Words in every match of some rules, in lower case; most texts can skip these rules.
_NAMING: Final = ("pass", "token", "secret", "key")


@cache
def _rules() -> tuple[tuple[re.Pattern[str], _Judge, tuple[str, ...]], ...]:
    named = (*_NAMING, "pw", "psk", *each("secret_name"), *each("secret_name", spaced=False))
    return (
        (forms.PRIVATE_KEY, lambda _: "private_key", ()),
        (forms.SHAPES, _shape, ()),
        (forms.IN_URL, _in_url, ("@",)),
        (forms.USER_IN_URL, _in_url, ("@",)),
        (forms.QUERY, lambda match: "token" * _is_varied(match["value"]), ()),
        (forms.COOKIE, lambda _: "token", ("cookie",)),
        (forms.HEADER, _header, (*_NAMING, "bearer", "basic", "authorization")),
        (forms.assigned(), _assigned, named),
        (compiled(forms.ASSIGNED_UNSPACED), lambda _: "password", ()),
        (forms.SPOKEN, _in_xml, named),
        (forms.IN_XML, _in_xml, ()),
        (
            compiled(forms.PHRASE),
            lambda _: "password",
            ("phrase", "words", "mnemonic", "code", "pin"),
        ),
        (forms.FLAG, _flag, (*_NAMING, "login", "mysql", "curl")),
        (forms.CARD, lambda match: "credit_card" * forms.is_card(match.group()), ()),
        (forms.IBAN, lambda match: "iban" * forms.is_iban(match.group()), ()),
    )


@cache
def _any_cue() -> re.Pattern[str]:
    return re.compile("|".join(sorted({re.escape(cue) for *_, cues in _rules() for cue in cues})))
