"""Removes secrets from a text before it leaves the device, or is kept automatically.

Secrets are recognised by their shape, or by the name before them: `password=…`. Other random text
stays, such as hashes, UUIDs and encoded images, and so does prose about passwords.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ..memory.records import Json, Memory, Metadata
from . import secret_patterns as forms
from .contextual_secrets import contextual_secrets
from .secret_candidates import BEFORE
from .secret_names import names_in
from .vocabulary import compiled, cue, each

_KINDS: Final = {
    **dict.fromkeys(("webhook", "discord", "telegram"), "url_password"),
    "prefixed": "api_key",
}
# The letters of the shortest secret that has nothing but letters, and that nothing names.
_SHORTEST: Final = 16
_LEAST_REPEATED: Final = 4
_DIGIT: Final = re.compile("[0-9]")
# What is in every match of some rules, and not in most texts.
_DIGITS: Final = re.compile("[0-9]{2}")
_LONG: Final = re.compile(r"\S{12}")
_ASSIGNED: Final = re.compile("[=:：→>]| [\"'`]")
_DIALLED: Final = re.compile(r"(?:left|right) \S+(?: \S+)? (?:left|right)")
_MARK: Final = re.compile(r"\[\w+ removed\]")  # which names no other secret
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
# What a secret is called by the kind of the name beside it; see `contextual_secrets`.
_SPELLED_KINDS: Final = frozenset({"password", "word", "login"})
_CALLED: Final = {"person": "identity_number", "token": "token", "bank": "credit_card"}


class Cleared(msgspec.Struct, frozen=True):
    """A text without its secrets, and how many of each kind were taken out."""

    text: str
    counts: dict[str, int]


def clear(text: str) -> Cleared:
    """`text` with `[… removed]`, which names the kind, in place of each secret.

    The kinds: api_key, github_token, aws_key, slack_token, jwt, private_key, url_password,
    bearer, password, token, credit_card, iban, identity_number. Clearing a cleared
    text changes nothing. Takes time that grows with the length of the text.
    """
    # Most tags end here.
    if len(text) < _SHORTEST and (not text or (text.isascii() and text.isalpha())):
        return Cleared(text, {})
    counts: Counter[str] = Counter()
    secrets: dict[str, str] = {}
    text = _without_contextual(without_shapes(text, counts, secrets), counts, secrets)
    return Cleared(_without(secrets, text) if secrets else text, dict(counts))


@lru_cache(2_048)
def holds_secret(text: str) -> bool:
    """Whether a text holds a secret; cached, since each context block asks it of the same texts."""
    return bool(clear(text).counts)


def clear_turns(texts: Iterable[str]) -> list[str]:
    """`clear` of the turns of one conversation.

    A secret may be named in one turn, and given in the next; it is removed wherever it is repeated.
    """
    secrets: dict[str, str] = {}
    turns: list[str] = []
    for text in texts:
        before = turns[-1][-BEFORE:] + "\n" if turns else ""
        turn = without_shapes(text, Counter(), secrets, in_talk=True)
        whole = _without_contextual(before + turn, Counter(), secrets, begin=len(before))
        turns.append(whole[len(before) :])
    return [_without(secrets, turn) for turn in turns]


def clear_after(before: str, texts: Sequence[str]) -> Sequence[str]:
    """Cleared turns without the secret that the turn `before` them names."""
    return clear_turns((before, *texts))[1:] if names_in(before[-BEFORE:]) else texts


def without_shapes(
    text: str, counts: Counter[str], secrets: dict[str, str], *, in_talk: bool = False
) -> str:
    """`text` without what its shape tells, or a name in the notations of programs."""
    folded = text.casefold()
    has_cue = _any_cue().search(folded) is not None
    varies = in_talk and _DIGIT.search(text) is not None
    lacking = {needed for needed in (_DIGITS, _LONG, _ASSIGNED) if not needed.search(text)}
    for pattern, judge, needed, cues in _rules():
        if needed in lacking or (cues and not (has_cue and any(cue in folded for cue in cues))):
            continue
        if pattern.search(text):
            text = pattern.sub(_replacing(judge, counts, secrets), text)
    if varies:
        text = forms.VARIED.sub(_replacing(lambda _: "password", counts, secrets), text)
    if in_talk and _DIALLED.search(folded):
        text = forms.TURNS_IN_WORDS.sub(_replacing(lambda _: "password", counts, secrets), text)
    return text


def _without_contextual(
    text: str, counts: Counter[str], secrets: dict[str, str], *, begin: int | None = None
) -> str:
    """`text` without what the words around it tell.

    With `begin`, the text is of a talk and what stands before that place has been cleared.
    """
    folded = text.casefold()
    if any(cue in folded for cue in _PHRASES):
        text = forms.WORDS_IN_A_ROW.sub(_replacing(_seed, counts, secrets), text)
    if begin is not None and cue("spelled").any_in(folded):
        text = compiled(forms.SPELLED).sub(_replacing(_spelled, counts, secrets), text)
        text = forms.SPELLED_AGAIN.sub(_replacing(lambda _: "password", counts, secrets), text)
    # What has been removed may say of another what it is.
    while found := contextual_secrets(text, begin or 0, in_talk=begin is not None):
        for secret in reversed(found):
            kind = _CALLED.get(secret.name, "password")
            counts[kind] += 1
            mark = f"[{kind.replace('_', ' ')} removed]"
            secrets[text[secret.start : secret.end]] = mark
            text = f"{text[: secret.start]}{mark}{text[secret.end :]}"
    return text


def _without(secrets: Mapping[str, str], text: str) -> str:
    """`text` without the repeated secrets, which are given with their marks.

    Digits may be dictated: "2246" as "2, 2, 4, 6".
    """
    for secret, mark in secrets.items():
        if len(secret) >= _LEAST_REPEATED and (secret.isdigit() or secret in text):
            repeated = "[ ,-]{0,2}".join(secret) if secret.isdigit() else re.escape(secret)
            within = re.compile(rf"(?<![\w.-]){repeated}(?![\w-])")
            text = within.sub(lambda _, mark=mark: mark, text)  # type: ignore[misc]
    return text


def without_secrets(memory: Memory) -> Memory:
    """`memory` with marks in place of its secrets, in all its texts, tags and data."""
    lists = msgspec.structs.asdict(memory.metadata)
    return replace(
        memory,
        text=clear(memory.text).text,
        subject=clear(memory.subject).text,
        outcome=clear(memory.outcome).text,
        tags=tuple(dict.fromkeys(clear(tag).text for tag in memory.tags)),
        metadata=Metadata(**{name: tuple(cleared(list(values))) for name, values in lists.items()}),
        data=cleared(memory.data),
    )


def secrets_of(memory: Memory) -> tuple[str, ...]:
    """The kinds of secrets in a memory, in words."""
    texts = [memory.text, memory.subject, memory.outcome, *memory.tags]
    lists = msgspec.structs.asdict(memory.metadata).values()
    rest = [value for result in lists for value in result if value not in memory.text]
    return secrets_in([*texts, *rest, memory.data])


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
        cleared = clear(value)
        kinds.update(cleared.counts)
        return cleared.text
    if isinstance(value, list):
        return [_cleared(item, kinds) for item in value]
    if isinstance(value, dict):
        return {_cleared(key, kinds): _named_value(key, item, kinds) for key, item in value.items()}
    return value


def _named_value(name: str, value: Json, kinds: Counter[str]) -> Any:
    """The value under a key that may identify it as a secret: `{"password": "…"}`."""
    plain = _cleared(value, kinds)
    if not isinstance(plain, str) or plain != value:
        return plain
    before = f"{name}: "
    cleared = clear(before + plain)
    if not cleared.counts or not cleared.text.startswith(before):
        return plain
    kinds.update(cleared.counts)
    return cleared.text[len(before) :]


# Returns the kind of secret of a match, or "".
_Judge: TypeAlias = Callable[[re.Match[str]], str]
# A pattern, what judges its matches, what is in each match, and cues of which a text in lower case
# must have one.
_Rule: TypeAlias = tuple[re.Pattern[str], _Judge, re.Pattern[str] | None, tuple[str, ...]]


def _replacing(
    judge: _Judge, counts: Counter[str], secrets: dict[str, str]
) -> Callable[[re.Match[str]], str]:
    def replaced(match: re.Match[str]) -> str:
        kind = judge(match)
        if not kind:
            return match.group()
        counts[kind] += 1
        groups = match.groupdict()
        before = "".join(groups[name] or "" for name in groups if name.startswith("before"))
        quote = groups.get("quote") or ""
        end = "\n" if match.group().endswith("\n") else ""
        mark = f"[{kind.replace('_', ' ')} removed]"
        secret = match.group()[len(before) + len(quote) :]
        secrets[secret.removesuffix("\n").removesuffix(quote)] = mark
        return f"{before}{quote}{mark}{quote}{end}"

    return replaced


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
    if ("key" in name and "word" not in name) or "secret" in name:
        return "api_key"
    return "token" if name == "token" else "password"


def _is_secret(value: str, name: str, match: re.Match[str]) -> bool:
    if forms.PLACEHOLDER.match(value) or (value.isdigit() and len(value) < 4):
        return False
    if "=" in match["how"]:
        # "token = current" is an assignment in a program.
        is_bare = match["bare"] is not None and match["how"].startswith(" ")
        is_variable = is_bare and value.replace("_", "").isalpha()
        return name[0] == "p" or not (value.isdigit() or is_variable)
    varied = any(map(str.isdigit, value))
    if match["quoted"]:
        return varied or (" " not in value and not match["how"].isspace())
    if name == "pass" and not (varied and len(value) > 6):
        return False
    return _is_unlike_prose(value, match)


def _is_unlike_prose(value: str, match: re.Match[str]) -> bool:
    """Whether the value after a colon is hardly a word of a sentence."""
    word = re.sub("[-'’/]", "", value.rstrip(".!?):"))
    if word.isalpha() and (word.islower() or word.istitle()):
        alone = match.string[match.end() : match.end() + 1] in {"", "\n", "\r"}
        return alone and len(word) > 5
    return len(word) >= 4 and (not word.isalpha() or len(word) > 7)


def _seed(match: re.Match[str]) -> str:
    """A phrase of words in a row, such as a wallet's, that is named: terse notes have such rows."""
    text, start, end = match.string, match.start(), match.end()
    before = _MARK.sub("", text[max(0, start - BEFORE) : start])
    if len(_WORD.findall(match.group())) < forms.SEED_WORDS:
        return "password" * (compiled(forms.BEFORE_SEED).search(before) is not None)
    around = before + text[start : end + BEFORE]
    return "password" * (compiled(forms.SEED).search(around) is not None)


def _spelled(match: re.Match[str]) -> str:
    """A password in words, if it is named so near by: "the new one is blue stork, all one word"."""
    around = match.string[max(0, match.start() - BEFORE) : match.end() + BEFORE]
    return "password" * any(name.kind in _SPELLED_KINDS for name in names_in(around))


def _flag(match: re.Match[str]) -> str:
    value = match["quoted"] or match["bare"]
    if forms.PLACEHOLDER.match(value) or value.startswith(("-", "id=", "type=", "source=")):
        return ""
    return "token" if "token" in match["before"].lower() else "password"


# What stands in every match of some rules, in lower case; most texts can skip these rules.
_PHRASES: Final = (
    "phrase", "frase", "seed", "wallet", "words are", "words:", "wörter", "wiederherstellung",
    "sicherung", "palabras", "mots", "mnemonic", "mnémonique", "ledger", "trezor", "metamask",
    "助记词",
)  # fmt: skip
_NAMING: Final = ("pass", "pw", "psk", "token", "secret", "key")


@cache
def _rules() -> tuple[_Rule, ...]:
    names = (*each("secret_name"), *each("secret_name", spaced=False))
    is_placeholder = forms.PLACEHOLDER.match
    return (
        (forms.PRIVATE_KEY, lambda _: "private_key", None, ()),
        (forms.SHAPES, lambda match: _KINDS.get(match.lastgroup, match.lastgroup), _LONG, ()),
        (forms.IN_URL, _in_url, None, ("@",)),
        (forms.USER_IN_URL, _in_url, None, ("@",)),
        (forms.QUERY, lambda match: "token" * _is_varied(match["value"]), None, ()),
        (forms.COOKIE, lambda _: "token", None, ("cookie",)),
        (forms.HEADER, _header, _LONG, (*_NAMING, "bearer", "basic", "authorization")),
        (forms.assigned(), _assigned, _ASSIGNED, (*_NAMING, *names)),
        (forms.IN_XML, lambda match: "password" * (not is_placeholder(match["value"])), None, ()),
        (forms.SOCIAL_SECURITY, lambda _: "identity_number", _DIGITS, ()),
        (forms.FLAG, _flag, None, (*_NAMING, "login", "mysql", "curl")),
        (forms.CARD, lambda match: "credit_card" * forms.is_card(match.group()), _DIGITS, ()),
        (forms.IBAN, lambda match: "iban" * forms.is_iban(match.group()), _DIGITS, ()),
    )


@cache
def _any_cue() -> re.Pattern[str]:
    return re.compile("|".join(sorted({re.escape(cue) for *_, cues in _rules() for cue in cues})))
