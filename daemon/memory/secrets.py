"""Taking secrets out of a text before it leaves the device.

What is a secret is told by its shape, or by the name that it is given: `password=…`. Whatever
only looks random stays: hashes, UUIDs, encoded images; and so does prose about passwords.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from .secret_shapes import CARD, IBAN, PRIVATE_KEY, SHAPES, is_card, is_iban

_IN_URL: Final = re.compile(
    r"(?P<before>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s/:@\"'`<>]{0,128}:)"
    r"(?P<value>[^\s/@\"'`<>]{1,256})(?=@[^\s@])"
)
_HEADER: Final = re.compile(
    r"(?P<before>(?:\bauthorization[\"']?\s?[:=]\s?[\"']?)?\b(?:bearer|basic|token)\s{1,3})"
    r"(?P<value>[A-Za-z0-9._~+/=-]{12,4096})",
    re.IGNORECASE,
)
_NAMES: Final = (
    r"passw(?:or)?d|passphrase|passwort|kennwort|contraseña|mot de passe|пароль|密码|密碼"
    r"|パスワード|비밀번호|heslo|hasło|senha|wachtwoord|lösenord|clé api"
    r"|(?<![A-Za-z])pass|(?<![A-Za-z])pwd|(?:client|app|shared|webhook|consumer)?[_-]?secret"
    r"(?:[_-]?(?:access[_-]?)?key)?|(?:api|access|auth|account|private|signing|encryption|master"
    r"|license)[_ -]?key|token"
)
_SEPARATOR: Final = r"[ \t]{0,4}(?::=|=>|->|→|=(?!=)|[:：])[ \t]{0,4}"
_VALUE: Final = (
    r"(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{3,1024})(?P=quote)|(?P<bare>[^\s\"'`,;<>|]{4,1024})"
)
_ASSIGNED: Final = re.compile(
    rf"(?P<before>(?P<name>{_NAMES})(?:[_-]?(?:[0-9]{{1,3}}|prod|dev|test|value))?[\"'`]?\]?"
    rf"(?P<how>{_SEPARATOR}|[ ](?:is|was|ist|lautet|est|es)(?: now| changed to| set to)?:?[ ]"
    rf"|[ ](?:changed )?to[ ]|[ ](?=[\"'`])))(?:{_VALUE})",
    re.IGNORECASE,
)
_FLAG: Final = re.compile(
    r"(?P<before>(?<!\S)--?(?:[a-z]{1,12}-)?(?:password|passwd|passphrase|token|secret"
    r"|api-?key)[ =]"
    rf"|\bsshpass -p ?|\bdocker login [^\n]{{0,80}}-p ?"
    rf"|\bcurl (?:-[^\s]{{1,12}} ){{0,4}}-u ?[^\s:]{{1,64}}:)(?:{_VALUE})",
    re.IGNORECASE,
)
# Stands for a value, or names where it is.
_PLACEHOLDER: Final = re.compile(
    r"[<\[{(*$%@#_.…•]|[xX]{3,}|[/~]|\.{1,2}/|[A-Z]:\\|[A-Za-z]+\[|(?:none|null|nil|true|false|yes|no|str|string"
    r"|int|bool|bytes|object|any|optional|required|missing|invalid|expired|unknown|empty|unset|set"
    r"|changed|hidden|redacted|removed|cleared|wrong|incorrect|correct|weak|strong|valid|secure"
    r"|not|the|a|an|my|your|our|in|on|at|for|to|from|with|and|or|of|is|was|must|should|can|may|will"
    r"|use|see|stored|saved|kept|needed|protected|encrypted|reset|default|changeme|undefined"
    r"|authentication|based|count|limit|basic|bearer|still|now|too|very|old|new)\W*$"
    r"|(?:https?|file|ssh|git)://|[a-z]\w*\(|(?:my|your|the|new|old|user|api|auth|access|db)?[_-]?"
    r"(?:password|token|secret|api_?key|key)s?\W*$|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(|\[|\W*$)"
    r"|.*(?:environ|getenv|process\.env|secrets?\.|vault|\$\{|\{\{|\(\))",
    re.IGNORECASE,
)
_KINDS: Final = {"webhook": "url_password", "discord": "url_password"}


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
    counts: Counter[str] = Counter()
    for pattern, judge in _RULES:
        text = pattern.sub(_replacing(judge, counts), text)
    return Cleared(text, dict(counts))


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


def _header(match: re.Match[str]) -> _Secret | None:
    value = match["value"]
    announced = match["before"][:4].lower() == "auth"
    varied = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if not announced and not (varied and len(value) >= 16):
        return None
    return _Secret("bearer", match["before"])


def _assigned(match: re.Match[str]) -> _Secret | None:
    name = match["name"].lower()
    if not _is_secret(match["quoted"] or match["bare"], name, match):
        return None
    kind = "token" if name == "token" else "password"
    if "key" in name or "secret" in name:
        kind = "api_key"
    quote = match["quote"] or ""
    return _Secret(kind, match["before"] + quote, quote)


def _is_secret(value: str, name: str, match: re.Match[str]) -> bool:
    if _PLACEHOLDER.match(value) or (value.isdigit() and len(value) < 4):
        return False
    if "=" in match["how"]:
        return name[0] == "p" or not (value.isdigit() or _is_variable(value, match))
    varied = any(map(str.isdigit, value))
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
    if _PLACEHOLDER.match(value) or value.startswith(("-", "id=", "type=", "source=")):
        return None
    quote = match["quote"] or ""
    kind = "token" if "token" in match["before"].lower() else "password"
    return _Secret(kind, match["before"] + quote, quote)


def _card(match: re.Match[str]) -> _Secret | None:
    return _Secret("credit_card") if is_card(match.group()) else None


def _iban(match: re.Match[str]) -> _Secret | None:
    return _Secret("iban") if is_iban(match.group()) else None


_RULES: Final[tuple[tuple[re.Pattern[str], _Judge], ...]] = (
    (PRIVATE_KEY, _private_key),
    (SHAPES, _shape),
    (_IN_URL, _in_url),
    (_HEADER, _header),
    (_ASSIGNED, _assigned),
    (_FLAG, _flag),
    (CARD, _card),
    (IBAN, _iban),
)
