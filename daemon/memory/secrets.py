"""Taking secrets out of a text before it leaves the device, or is kept without a person asking.

What is a secret is told by its shape, or by the name that it is given: `password=…`. Whatever
only looks random stays: hashes, UUIDs, encoded images; and so does prose about passwords.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from .records import Json, Memory, Metadata
from .secret_patterns import (
    ASSIGNED,
    ASSIGNED_UNSPACED,
    CARD,
    COOKIE,
    FLAG,
    HEADER,
    IBAN,
    IN_URL,
    IN_XML,
    PHRASE,
    PLACEHOLDER,
    PRIVATE_KEY,
    QUERY,
    SHAPES,
    USER_IN_URL,
    is_card,
    is_iban,
)

_KINDS: Final = {
    **dict.fromkeys(("webhook", "discord", "telegram"), "url_password"),
    "prefixed": "api_key",
}


class Cleared(msgspec.Struct, frozen=True):
    """A text without its secrets, and how many of each kind were taken out."""

    text: str
    counts: dict[str, int]


def clear(text: str) -> Cleared:
    """`text` with each secret replaced by `[… removed]`, which names its kind.

    The kinds: api_key, github_token, aws_key, slack_token, jwt, private_key, url_password,
    bearer, password, token, credit_card, iban. Clearing a cleared text changes nothing. Takes
    time that grows with the length of the text.
    """
    if not text:
        return Cleared(text, {})
    counts: Counter[str] = Counter()
    folded = text.casefold()
    told = _ANY_CUE.search(folded) is not None
    for pattern, judge, cues in _RULES:
        if not cues or (told and any(cue in folded for cue in cues)):
            text = pattern.sub(_replacing(judge, counts), text)
    return Cleared(text, dict(counts))


def without_secrets(memory: Memory) -> Memory:
    """`memory` with its secrets replaced by marks, in all that it says, tags and data included."""
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
    """The kinds of secrets that a memory holds, in words."""
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
    """A JSON value with the secrets in its strings replaced; a name may give its value away."""
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
    """The value under a name, which says what it is: `{"password": "…"}`."""
    plain = _cleared(value, kinds)
    if not isinstance(plain, str) or plain != value:
        return plain
    before = f"{name}: "
    found = clear(before + plain)
    if not found.counts or not found.text.startswith(before):
        return plain
    kinds.update(found.counts)
    return found.text[len(before) :]


class _Secret(msgspec.Struct, frozen=True):
    """What a match is, and what of it stays before and after."""

    kind: str
    before: str = ""
    after: str = ""


_Judge: TypeAlias = Callable[[re.Match[str]], _Secret | None]


def _replacing(judge: _Judge, counts: Counter[str]) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        secret = judge(match)
        if secret is None:
            return match.group()
        counts[secret.kind] += 1
        marker = f"[{secret.kind.replace('_', ' ')} removed]"
        return f"{secret.before}{marker}{secret.after}"

    return replace


def _private_key(match: re.Match[str]) -> _Secret:
    return _Secret("private_key", after="\n" if match.group().endswith("\n") else "")


def _shape(match: re.Match[str]) -> _Secret:
    kind = match.lastgroup or "api_key"
    return _Secret(_KINDS.get(kind, kind))


def _in_url(match: re.Match[str]) -> _Secret | None:
    if match["value"][0] in "$<{[*%":
        return None
    return _Secret("url_password", match["before"])


def _in_query(match: re.Match[str]) -> _Secret | None:
    return _Secret("token", match["before"]) if _is_varied(match["value"]) else None


def _cookie(match: re.Match[str]) -> _Secret:
    return _Secret("token", match["before"])


def _header(match: re.Match[str]) -> _Secret | None:
    value = match["value"]
    before = match["before"].lower()
    scheme = before.rstrip(" \"'")
    announced = before.startswith("authorization") and not scheme.endswith((":", "="))
    if not announced and not (_is_varied(value) and len(value) >= 16):
        return None
    named = "authorization" not in before
    kind = "api_key" if named and ("key" in before or "secret" in before) else "bearer"
    return _Secret("password" if "pass" in before else kind, match["before"])


def _is_varied(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _assigned(match: re.Match[str]) -> _Secret | None:
    name = match["name"].lower()
    if not _is_secret(match["quoted"] or match["bare"], name, match):
        return None
    kind = "token" if name == "token" else "password"
    if "key" in name or "secret" in name:
        kind = "api_key"
    quote = match["quote"] or ""
    return _Secret(kind, match["before"] + quote, quote)


def _named(match: re.Match[str]) -> _Secret:
    return _Secret("password", match["before"])


def _in_xml(match: re.Match[str]) -> _Secret | None:
    return None if PLACEHOLDER.match(match["value"]) else _named(match)


def _phrase(match: re.Match[str]) -> _Secret:
    before = match["before"] or match["before_code"] or match["before_pin"]
    return _Secret("password", before)


def _is_secret(value: str, name: str, match: re.Match[str]) -> bool:
    if PLACEHOLDER.match(value) or (value.isdigit() and len(value) < 4):
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
    """Whether a line of a program gives a name to the value of another: `token = current`."""
    bare = match["bare"] is not None and match["how"].startswith(" ")
    return bare and value.replace("_", "").isalpha()


def _is_unlike_prose(value: str, match: re.Match[str]) -> bool:
    """Whether what follows a colon or "is" can hardly be a word of a sentence."""
    word = re.sub("[-'’/]", "", value.rstrip(".!?):"))
    if word.isalpha() and (word.islower() or word.istitle()):
        alone = match.string[match.end() : match.end() + 1] in {"", "\n", "\r"}
        said = match["how"].strip(" :").isalpha()
        return alone and not said and len(word) > 5
    return len(word) >= 4 and (not word.isalpha() or len(word) > 7)


def _flag(match: re.Match[str]) -> _Secret | None:
    value = match["quoted"] or match["bare"]
    if PLACEHOLDER.match(value) or value.startswith(("-", "id=", "type=", "source=")):
        return None
    quote = match["quote"] or ""
    kind = "token" if "token" in match["before"].lower() else "password"
    return _Secret(kind, match["before"] + quote, quote)


def _card(match: re.Match[str]) -> _Secret | None:
    return _Secret("credit_card") if is_card(match.group()) else None


def _iban(match: re.Match[str]) -> _Secret | None:
    return _Secret("iban") if is_iban(match.group()) else None


# What stands in whatever a rule finds, in lower case: most texts are spared the slower rules.
_NAMING: Final = ("pass", "token", "secret", "key")
_HEADING: Final = (*_NAMING, "bearer", "basic", "authorization")
_ASSIGNING: Final = (
    *(*_NAMING, "pw", "psk", "kennwort", "contraseña", "пароль", "密码", "密碼", "パスワード"),
    *("비밀번호", "heslo", "hasło", "senha", "wachtwoord", "lösenord", "clé api"),
)
_PHRASING: Final = ("phrase", "words", "mnemonic", "code", "pin")
_FLAGGING: Final = (*_NAMING, "login", "mysql", "curl")
_RULES: Final[tuple[tuple[re.Pattern[str], _Judge, tuple[str, ...]], ...]] = (
    (PRIVATE_KEY, _private_key, ()),
    (SHAPES, _shape, ()),
    (IN_URL, _in_url, ("@",)),
    (USER_IN_URL, _in_url, ("@",)),
    (QUERY, _in_query, ()),
    (COOKIE, _cookie, ("cookie",)),
    (HEADER, _header, _HEADING),
    (ASSIGNED, _assigned, _ASSIGNING),
    (ASSIGNED_UNSPACED, _named, ()),
    (IN_XML, _in_xml, ()),
    (PHRASE, _phrase, _PHRASING),
    (FLAG, _flag, _FLAGGING),
    (CARD, _card, ()),
    (IBAN, _iban, ()),
)
_ANY_CUE: Final = re.compile(
    "|".join(sorted({re.escape(cue) for *_, cues in _RULES for cue in cues}))
)
