"""Removes secrets from a text before it leaves the device, or is kept automatically.

Secrets are recognised by their shape, or by the name before them: `password=…`. Other random text
stays, such as hashes, UUIDs and encoded images, and so does prose about passwords.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ..memory.records import Json, Memory, Metadata
from . import secret_patterns as forms
from .openings import Finder
from .vocabulary import compiled, each, not_topics, words

_KINDS: Final = {
    **dict.fromkeys(("webhook", "discord", "telegram"), "url_password"),
    "prefixed": "api_key",
}
# The letters of the shortest secret that has nothing but letters, and that nothing names.
_SHORTEST: Final = 16
_LEAST_REPEATED: Final = 4
# Where "(the database password)" may stand behind a value, and what a code of three digits opens.
_NEAR: Final = 40
# A word in small letters that may be a password; shorter ones describe it.
_LEAST_WORD: Final = 10
# Candidates of these have a digit, which most texts have not.
_WITH_DIGITS: Final = frozenset({forms.CARD, forms.CODE, forms.IBAN, forms.NUMBER, forms.RESCUE})
_DIGIT: Final = re.compile("[0-9]")
_LONG: Final = re.compile(r"\S{15}")  # as every secret that its shape tells
_MARK: Final = re.compile(r"\[\w+ removed\]")  # which names no other secret
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
# Letters beside digits or signs, and several words of which one is large.
_MIXED: Final = re.compile(
    r"[^\W\d_].*\d|\d.*[^\W\d_]|\w[!@#$%^&*?+=~_]+\w|[a-zß-ÿ]-[A-ZÀ-Þ]|[a-z][!#$%&*]"
)
_CLAUSE_END: Final = re.compile(r"[,.;!?)]?(?:\s*$|[,.;!?)])|\s(?:and|und|lol|haha)\b")
_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?\n]*")


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
    text = _clear(text, counts, secrets)
    _note_same_codes(text, secrets)
    return Cleared(_without(secrets, text), dict(counts))


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
        before = turns[-1][-forms.BEFORE :] + "\n" if turns else ""
        turn = _clear(before + text, Counter(), secrets, in_talk=True)
        known = turn.startswith(before)
        turns.append(
            turn[len(before) :] if known else _clear(text, Counter(), secrets, in_talk=True)
        )
    _note_same_codes("\n".join(turns), secrets)
    return [_without(secrets, turn) for turn in turns]


def _clear(
    text: str, counts: Counter[str], secrets: dict[str, str], *, in_talk: bool = False
) -> str:
    folded = text.casefold()
    has_cue = _any_cue().search(folded) is not None
    has_digit = _DIGIT.search(text) is not None
    for pattern, judge, cues in _rules():
        if pattern in _WITH_DIGITS and not has_digit:
            continue
        if pattern is forms.SHAPES and not _LONG.search(text):
            continue
        # Looking for what names a code takes longer than looking for one.
        if pattern is forms.CODE and not (
            pattern.search(text) and _naming_codes().any_in(text.casefold())
        ):
            continue
        if not cues or (has_cue and any(cue in folded for cue in cues)):
            text = pattern.sub(_replacing(judge, counts, secrets), text)
    if in_talk and _said("secret_word").any_in(folded):
        text = compiled(forms.NAMED_WORDS).sub(_replacing(_named_words, counts, secrets), text)
    if in_talk and has_digit:
        text = forms.VARIED.sub(_replacing(lambda _: "password", counts, secrets), text)
        text = forms.TALKED_CODE.sub(_replacing(_opening, counts, secrets), text)
    return text


@cache
def _naming_codes() -> Finder:
    """Finds in folded text what a code of digits is told by: every code has one near it."""
    names = (*each("secret_code"), *each("secret_box"), "puk|tan")
    parts = (*each("secret_code", spaced=False), *each("card_back"))
    expressions = (*(rf"\b(?:{name})" for name in names), *parts)
    return Finder(("", expression, None) for expression in expressions)


@cache
def _said(name: str) -> Finder:
    """Finds the cues of a name in folded text, by which most texts need no search."""
    return Finder(("", rf"\b(?:{item})\b", None) for item in each(name))


def _note_same_codes(text: str, secrets: dict[str, str]) -> None:
    """Add codes that are said to be a secret's: in the same sentence, or named before it."""
    # Looking for what is said takes longer than all the rest.
    if not (_DIGIT.search(text) and _said("same_as").any_in(text.casefold())):
        return
    for match in compiled(forms.SAME_CODE).finditer(text):
        other = match["other"] or ""
        result = forms.CODE.findall(other)
        if not result:
            before = [
                sentence
                for sentence in _SENTENCE.findall(text[: match.start()])
                if forms.CODE.search(sentence)
            ]
            words = [word for word in _WORD.findall(other.lower()) if word not in not_topics()]
            named = [item for item in before if any(word in item.lower() for word in words)]
            named = named or [item for item in before if compiled(forms.NAMED_CODE).search(item)]
            result = forms.CODE.findall(named[-1]) if named else []
        secrets.update(dict.fromkeys(result, "[password removed]"))


def _without(secrets: Mapping[str, str], text: str) -> str:
    """`text` without the repeated secrets, which are given with their marks."""
    for secret, mark in secrets.items():
        if secret in text and len(secret) >= _LEAST_REPEATED:
            within = re.compile(rf"(?<![\w.-]){re.escape(secret)}(?![\w-])")
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
    if match["of"] and not varied:
        return False
    if match["quoted"]:
        return varied or (" " not in value and not match["how"].isspace())
    if name == "pass" and not (varied and len(value) > 6):
        return False
    return _is_unlike_prose(value, match)


def _is_unlike_prose(value: str, match: re.Match[str]) -> bool:
    """Whether the value after a colon or "is" is hardly a word of a sentence."""
    word = re.sub("[-'’/]", "", value.rstrip(".!?):"))
    if word.isalpha() and (word.islower() or word.istitle()):
        alone = match.string[match.end() : match.end() + 1] in {"", "\n", "\r"}
        is_introduced = match["how"].strip(" :").isalpha()
        return alone and not is_introduced and len(word) > 5
    return len(word) >= 4 and (not word.isalpha() or len(word) > 7)


def _number(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - forms.BEFORE) : match.start()]
    named = compiled(forms.BEFORE_NUMBER).search(before)
    if not named and not match.group().isdigit():
        named = compiled(forms.BEFORE_LETTERS).search(before)
        if forms.OF_DOCUMENT.fullmatch(match.group()) and not compiled(forms.UNLIKE).search(before):
            named = named or compiled(forms.DOCUMENT).search(before)
    return "identity_number" * bool(named or forms.SOCIAL_SECURITY.fullmatch(match.group()))


def _card(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - forms.BEFORE) : match.start()]
    named = match["gap"] and compiled(forms.BEFORE_CARD).search(before)
    return "credit_card" * bool(named or forms.is_card(match.group()))


def _code(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - forms.BEFORE) : match.start()]
    around = before + match.string[match.end() : match.end() + forms.BEFORE]
    if len(match.group()) < _LEAST_REPEATED + 1 and compiled(forms.BACK_OF_CARD).match(
        match.string, match.end()
    ):
        return "password"
    if _is_of_box(match, before):
        return "password"
    if not compiled(forms.ANY_CODE_NAME).search(around):
        return ""
    named = compiled(forms.BEFORE_CODE).search(before)
    after = compiled(forms.AFTER_CODE).match(match.string, match.end())
    if not (named or after) and not compiled(forms.COUNTED).match(match.string, match.end()):
        named = compiled(forms.NEAR_BEFORE_CODE).search(before)
        after = compiled(forms.NEAR_AFTER_CODE).match(match.string, match.end())
        least = 3 if forms.CARD_CODE.search(around) else _LEAST_REPEATED
        if len(match.group()) < least or forms.DATED.search(before + match.group()):
            return ""
    return "password" * bool(named or after)


def _is_of_box(match: re.Match[str], before: str) -> bool:
    """Whether digits are the code of a safe, a locker or a till, wherever its name stands."""
    text, end = match.string, match.end()
    around = forms.BOX_BEFORE.findall(before)[0] + "#" + forms.BOX_AFTER.findall(text, end)[0]
    digits = sum(map(str.isdigit, match.group()))
    if digits < _LEAST_REPEATED or not compiled(forms.BOX).search(around):
        return False
    if compiled(forms.COUNTED).match(text, end) or forms.DATED.search(before + match.group()):
        return False
    opens = compiled(forms.OPENS).search(around) or compiled(forms.BEFORE_BOXED).search(before)
    return opens is not None


def _opening(match: re.Match[str]) -> str:
    """Whether a code opens something or pays, by what is said around it."""
    text, end, value = match.string, match.end(), match.group()
    before = text[max(0, match.start() - forms.BEFORE) : match.start()]
    if forms.DATED.search(before + value) or compiled(forms.COUNTED).match(text, end):
        return ""
    is_mixed = any(map(str.isalpha, value))
    if is_mixed and (re.search(forms.KIND_OF, before) or forms.COMMIT.fullmatch(value)):
        return ""
    if value[-1] != "#" and compiled(forms.UNLIKE).search(before):
        return ""
    if len(value) > _LEAST_REPEATED:
        around = forms.BOX_BEFORE.findall(before)[0] + forms.BOX_AFTER.findall(text, end)[0]
        if _said("secret_kept").any_in(around.casefold()):
            return "password"
    ends, digits = value[-1] in "#*", sum(map(str.isdigit, value))
    behind = compiled(forms.BEHIND_LOCK).search(before)
    is_near = behind and behind.end() - behind.start() < _NEAR
    least = 2 if is_mixed else 3 if ends or "-" in value or is_near else _LEAST_REPEATED
    if digits < least or (not behind and forms.ORDINARY.fullmatch(value)):
        return ""
    is_code = ends or value.count("-") > 1 or forms.RANDOM.search(value) is not None
    is_listed = " removed]" in before.rpartition(".")[2] or compiled(forms.LISTED).search(before)
    acts = compiled(forms.BEHIND_ACT).search(before) or compiled(forms.BEFORE_ACT).match(text, end)
    if not behind and (is_code or is_listed or acts):
        behind = compiled(forms.BEHIND_ENTRY).search(before)
        behind = behind or compiled(forms.BEFORE_ENTRY).match(text, end)
    # "7703#" needs no word for what it opens.
    return "password" * bool(behind or value[-1] == "#")


def _named_words(match: re.Match[str]) -> str:
    """A word or a few that a name for such words stands before, and no more of the sentence."""
    tokens = match["value"].lower().split()
    prose = not_topics() - words("leading")
    if not prose.isdisjoint(tokens) or any(map(forms.COMMON.fullmatch, tokens)):
        return ""
    return _unless_placeholder(match)


def _unless_placeholder(match: re.Match[str]) -> str:
    return "" if forms.PLACEHOLDER.match(match["value"]) else "password"


def _token(match: re.Match[str]) -> str:
    """A password in the words of a talk: "his password is still around, it's kestrel-Moped-81"."""
    value = match["quoted"] or match["bare"]
    is_word = not (match["quoted"] or _MIXED.search(value))
    # Most words of a text end here.
    if is_word and not (
        (value[0].isupper() or (value.islower() and len(value) >= _LEAST_WORD))
        and _CLAUSE_END.match(match.string, match.end())
    ):
        return ""
    after = compiled(forms.NAMED_AFTER).match(match.string, match.end())
    if forms.PLACEHOLDER.match(value) or (forms.COMMON.fullmatch(value) and not after):
        return ""
    before = match.string[max(0, match.start() - forms.BEFORE) : match.start()]
    folded = match.string[max(0, match.start() - forms.BEFORE) : match.end() + _NEAR].casefold()
    if not any(name in folded for name in _names()):
        return ""
    if is_word:
        return "password" * bool(compiled(forms.BEFORE_WORD).search(before))
    named = compiled(forms.NAMED_BEFORE).search(before)
    if not named and match["quoted"]:
        named = compiled(forms.BEFORE_SEED).search(before)
    elif not named:
        named = after
    return "password" * bool(named)


def _seed(match: re.Match[str]) -> str:
    """A phrase of words in a row, such as a wallet's, that is named: terse notes have such rows."""
    before = match.string[max(0, match.start() - forms.BEFORE) : match.start()]
    before = _MARK.sub("", before)
    if len(_WORD.findall(match.group())) < forms.SEED_WORDS:
        folded = before.casefold()
        if not any(name in folded for name in _names()):
            return ""
        return "password" * (compiled(forms.BEFORE_SEED).search(before) is not None)
    around = before + match.string[match.start() : match.end() + forms.BEFORE]
    return "password" * (compiled(forms.SEED).search(around) is not None)


def _flag(match: re.Match[str]) -> str:
    value = match["quoted"] or match["bare"]
    if forms.PLACEHOLDER.match(value) or value.startswith(("-", "id=", "type=", "source=")):
        return ""
    return "token" if "token" in match["before"].lower() else "password"


# Words in every match of some rules, in lower case; most texts can skip these rules.
_PHRASES: Final = (
    "phrase", "frase", "seed", "wallet", "words are", "words:", "wörter", "wiederherstellung",
    "sicherung", "mnemonic", "mnémonique", "ledger", "trezor", "metamask", "助记词",
)  # fmt: skip
_NAMING: Final = ("pass", "token", "secret", "key")


@cache
def _names() -> tuple[str, ...]:
    """What texts with a secret that is told by its name have in them, in lower case."""
    names = (
        each(name, spaced=spaced)
        for name in ("secret_name", "secret_login")
        for spaced in (True, False)
    )
    return (*_NAMING, "pw", "psk", *_PHRASES, *(name for listed in names for name in listed))


@cache
def _rules() -> tuple[tuple[re.Pattern[str], _Judge, tuple[str, ...]], ...]:
    return (
        (forms.PRIVATE_KEY, lambda _: "private_key", ()),
        (forms.SHAPES, _shape, ()),
        (forms.IN_URL, _in_url, ("@",)),
        (forms.USER_IN_URL, _in_url, ("@",)),
        (forms.QUERY, lambda match: "token" * _is_varied(match["value"]), ()),
        (forms.COOKIE, lambda _: "token", ("cookie",)),
        (forms.HEADER, _header, (*_NAMING, "bearer", "basic", "authorization")),
        (forms.assigned(), _assigned, _names()),
        (compiled(forms.ASSIGNED_UNSPACED), lambda _: "password", ()),
        (forms.CANDIDATE, _token, _names()),
        (forms.IN_XML, _unless_placeholder, ()),
        (forms.WORDS_IN_A_ROW, _seed, _names()),
        (forms.RESCUE, lambda _: "password", ()),
        (forms.NUMBER, _number, ()),
        (forms.CODE, _code, ()),
        (forms.FLAG, _flag, (*_NAMING, "login", "mysql", "curl")),
        (forms.CARD, _card, ()),
        (forms.IBAN, lambda match: "iban" * forms.is_iban(match.group()), ()),
    )


@cache
def _any_cue() -> re.Pattern[str]:
    return re.compile("|".join(sorted({re.escape(cue) for *_, cues in _rules() for cue in cues})))
