"""The signals of a sentence by its wording, its topic, and how much it says.

The cues are data; see `vocabulary`. They are matched against the first 600 characters of the
folded sentence, which bounds the time.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, Literal, TypeAlias, cast, get_args

from ..memory.metadata import extract
from ..memory.records import Outcome
from ..memory.similarity import fold
from .names import is_given_name, people
from .openings import Finder
from .thesaurus import thesaurus
from .vocabulary import categories, compiled, cue, each, not_topics, table, words

Signal: TypeAlias = Literal[
    "question", "greeting", "request", "offer", "hedge", "decision", "solution", "correction",
    "preference", "error", "report", "commitment", "claim",
]  # fmt: skip

NEUTRAL: Final = "neutral"
ONGOING: Final[Outcome] = "ongoing"
OF_OURS: Final = re.compile(r"(?i:my|our|meine?|unsere?|mi|nuestr[oa]|mon|ma|notre)\b")
WORD: Final = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_LONGEST: Final = 600
_LONGEST_GREETING: Final = 80
# Not found by searching for their cues.
_SPECIAL: Final = frozenset({"greeting", "request"})
_SEARCHED: Final = tuple(get_arg for get_arg in get_args(Signal) if get_arg not in _SPECIAL)
_QUESTION_MARK: Final = re.compile(r"[?？؟][\"')\]”’*\s]*$")
_WORTH: Final[dict[str, float]] = {
    "correction": 3.5, "decision": 3.0, "preference": 3.0, "solution": 3.0, "report": 2.5,
    "commitment": 2.0, "error": 2.0, "claim": 1.5, "greeting": -8.0, "offer": -3.0,
    "question": -2.5, "request": -1.2, "hedge": -1.0,
}  # fmt: skip
# Without content words even a decision says little: "let's do it".
_BARE: Final = 0.5
_FILLED: Final = 0.25
_SHARE_OF_FURTHER: Final = 0.4
_WORD_WORTH: Final = 0.15
_MANY_WORDS: Final = 8
_TOO_MANY_WORDS: Final = 45
_NAME: Final = r"(?P<name>[^\W\d_][\w'’-]{0,40}(?: [A-ZÀ-Þ][\w'’-]{1,40}){0,2})"
_INTRODUCED: Final = rf"\b(?i:{{%s}}) {_NAME}(?=[,.!;]|$| (?i:{{and}}|{{aside}}|{{belonging}})\b)"
# "Priya here, …", "hi, it's Olu from the night shift, …".
_SPEAKING: Final = (
    rf"(?:(?i:{{introduced}}) |(?:(?:{{~greeting}}|{{greeting}})[,.!]? )*){_NAME} (?i:{{speaks}})"
    r"(?=[,.!;:]|$| (?i:{belonging})\b)"
)
_UNSPACED_NAME: Final = r"(?P<unspaced>[\u4e00-\u9fff]{1,4}?)(?=就|吧|[,，。.!！\s]|$)"
_CLAUSES: Final = r"[,;:.!?。，；！、→—](?:\s+|$)|(?<=[。，；！、])|\s[-–—→]+\s|\s(?:{turn})\s"
_OPENING: Final = r"\A(?:(?:{opening})[, ]+)+(?=\S)"
_GREETING: Final = (
    r"(?:(?:{greeting}|{~greeting})"
    r"(?:[\s,.!?…~:)('-]+|$|(?=[。！？])[。！？]+)(?:[a-zà-ÿ]{2,12}[!.,?]*$)?)+"
)
_BARE_ANSWER: Final = r"(?:(?:{bare}|{~bare})[\s,.!。，！]*)+"
_NAMING: Final = ("named", "called", "agent_named", "intro", "introduced", "speaks", "just")
_ONLY_CALLED: Final = rf"(?i:{{just}}) {_NAME} (?i:{{is_fine}})\b"
_NEARBY: Final = 40
# The concepts of what somebody is by their work, family or studies, and where a text names it.
_ROLES: Final = frozenset({"profession", "parent", "pupil"})
_WORDS_OF_ROLE: Final = 3


def signals_of(sentence: str) -> frozenset[Signal]:
    """All signals of one sentence; none for a plain statement."""
    folded = fold(sentence[:_LONGEST])
    sentence = compiled(_OPENING).sub("", folded, count=1) or folded
    names = cast(set[Signal], {*cue(*_SEARCHED).names_in(sentence)})
    # What was "not fixed" or "if it was fixed" was not done.
    if names & {"decision", "solution", "report"}:
        names -= _undone(sentence, names)
    if _QUESTION_MARK.search(folded):
        names.add("question")
    if len(folded) <= _LONGEST_GREETING and compiled(_GREETING).fullmatch(folded):
        names.add("greeting")
    if cue("request").pattern.match(sentence) and not cue("standing_request").any_in(folded):
        names.add("request")
    return frozenset(names)


def worth(text: str, signals: frozenset[Signal]) -> float:
    """How much a sentence says: below 1 hardly anything, 4 and more for a decision with a number.

    Its strongest signal counts most, further signals less; then its content words, numbers, names
    of people and references. Questions, greetings, offers and doubts reduce it.
    """
    text = text[:_LONGEST]
    content = content_words(text)
    values = sorted((_WORTH[signal] for signal in signals), reverse=True)
    gains = [value for value in values if value > 0]
    value = sum(gains[:1]) + _SHARE_OF_FURTHER * sum(gains[1:3])
    value *= min(1.0, _BARE + _FILLED * content)
    value += sum(value for value in values if value < 0)
    return value + _WORD_WORTH * min(content, _MANY_WORDS) + _extras(text, content)


def outcome_of(statements: list[str]) -> Outcome:
    """The outcome of statements in order: the last clause with an outcome decides.

    A promise makes it pending only if no clause has an outcome. Leave out questions.
    """
    last: Outcome | None = None
    promised = False
    for statement in statements:
        folded = fold(statement[:_LONGEST])
        conditional = cue("conditional").any_in(folded)
        for clause in [folded] if conditional else compiled(_CLAUSES).split(folded):
            if last == "negative" and cue("decided").any_in(clause):
                last = None
            last = _told(clause, conditional) or last
        promised = promised or cue("promise").any_in(folded)
    return last or ("pending" if promised else ONGOING)


def emotion_of(statements: list[str]) -> str:
    """One of seven words, or "first → last" if the feeling changes; neutral if none is named.

    "Not happy" is sad; other denied feelings do not count.
    """
    felt: list[str] = []
    for statement in statements:
        tokens = WORD.findall(fold(statement[:_LONGEST]))
        for at, word in enumerate(tokens):
            emotion = table("feelings").get(word, "")
            if emotion and not cue("denied").any_in(" ".join(tokens[max(0, at - 3) : at])):
                felt.append(emotion)
            elif emotion == "happy":
                felt.append("sad")
    if not felt or felt[0] == felt[-1]:
        return felt[0] if felt else NEUTRAL
    return f"{felt[0]} → {felt[-1]}"


def names_told(text: str) -> dict[str, str]:
    """The names that a speaker gives: `name` and `preferred_name`, or the `agent_name`."""
    text = text[:_LONGEST]
    result: dict[str, str] = {}
    if text.isascii() and not _naming().any_in(text.lower()):
        return result
    only = compiled(_ONLY_CALLED).match(text)
    called = only["name"] if only else _name_after("called", text)
    name = _name_after("named", text)
    if not name and (met := compiled(_INTRODUCED % "intro").search(text)):
        name = "" if met["name"].casefold() in not_topics() else met["name"]
    elif not name and (met := compiled(_SPEAKING).match(text)):
        name = met["name"] if may_be_name(met["name"]) else ""
    elif not name and (met := compiled(_INTRODUCED % "introduced").match(text)):
        first, after = met["name"].split()[0], fold(text[met.end() :]).lstrip(" ,.")
        in_passing = cue("aside").pattern.match(after) and first.casefold() not in words("no_names")
        of_self = not says("presents", text[: met.start("name")])
        beside = called or in_passing or (of_self and _is_role(first, after))
        known = is_given_name(first) or (first[0].isupper() and beside)
        # "This is Maria, my sister", "… Anna from accounting, she wrote to me".
        name = met["name"] if known and (of_self or not _is_of_another(after)) else ""
    if name:
        result["name"] = name
    if not text.rstrip().endswith("?"):
        others = {"preferred_name": called, "agent_name": _name_after("agent_named", text)}
        result |= {key: name for key, name in others.items() if name and not name[0].islower()}
    return result


def _is_role(word: str, following: str) -> bool:
    """Whether what follows a word that means nothing says who somebody is: "Niamh, mum of two"."""
    known = thesaurus()
    if known.codes_of(word) or cue("of_a_place").pattern.fullmatch(word.casefold()):
        return False
    opening = " ".join(following.split()[:_WORDS_OF_ROLE])
    return not _ROLES.isdisjoint(map(known.name_of, known.codes_of(opening)))


def _is_of_another(after: str) -> bool:
    """Whether what follows a name says that it is somebody else's than the speaker's."""
    tokens = WORD.findall(after)
    third = any(cue("he", "she").pattern.fullmatch(word) for word in tokens)
    return third or OF_OURS.match(after) is not None


def may_be_name(word: str) -> bool:
    """Whether a word at the place of a name may be one: given, or without a meaning."""
    first = word.split(maxsplit=1)[0]
    if is_given_name(first):
        return True
    is_known = first.casefold() in not_topics() | words("days", "no_names") | day_names()
    return first[0].isupper() and not (is_known or thesaurus().codes_of(first))


@cache
def _naming() -> Finder:
    """What any form of giving a name has before the name; a first test of `names_told`."""
    spaced = (each(name) for name in _NAMING)
    return Finder(("", item, r"\b") for items in spaced for item in items)


def introduced_as(text: str, reply: str) -> str:
    """The name of "I'm Marek" if the reply uses it: "Hi Marek!"; else ""."""
    name = own_name(text)
    first = re.escape(name.partition(" ")[0])
    return name if name and re.search(rf"(?:^|[,!] |\w ){first}[,.!?]", reply) else ""


def own_name(text: str) -> str:
    """What may be the speaker's name in "I'm Marek"; else ""."""
    met = compiled(_INTRODUCED % "introduced").match(text[:_LONGEST])
    first = met["name"].split()[0] if met else ""
    if met is None or not first[0].isupper() or first.casefold() in not_topics() | words("days"):
        return ""
    return str(met["name"])


def is_of_self(text: str) -> bool:
    """Whether the speaker speaks of themselves."""
    return not words("self").isdisjoint(re.findall(r"[^\W\d_]+", text.lower()))


def is_of_us(text: str) -> bool:
    """Whether the speaker speaks of themselves, or of those that they belong to."""
    return is_of_self(text) or not words("ours").isdisjoint(WORD.findall(fold(text)))


def is_lasting(text: str) -> bool:
    """Whether a text gives a name, a standing preference or a reminder."""
    return bool(names_told(text)) or says("standing", text) or says("reminder", text)


def is_health(text: str) -> bool:
    """Whether forgetting this could harm somebody."""
    return says("health", text)


def is_own_report(text: str) -> bool:
    """Whether a text begins with what its speaker did: "I raised the limit", "Deployed it"."""
    folded = fold(text[:_LONGEST])
    first = re.match(r"[^\W\d_]+", folded)
    by_self = first is not None and first.group() in words("self", "ours")
    return by_self or cue("report").pattern.match(folded) is not None


def is_bare_answer(text: str) -> bool:
    """Whether an answer is nothing but a yes or a no."""
    return compiled(_BARE_ANSWER).fullmatch(fold(text[:_LONGEST])) is not None


def is_injected(text: str) -> bool:
    """Whether a text tells a model to ignore its instructions."""
    return cue("injected").any_in(fold(text))


def is_acknowledgement(text: str) -> bool:
    """Whether an answer only confirms that something was understood."""
    folded = fold(text[:_LONGEST])
    rest = compiled(_OPENING).sub("", folded, count=1)
    return cue("acknowledged").pattern.match(rest) is not None


def matters_of(text: str) -> tuple[str, ...]:
    """Tags for what must not be forgotten, in the words of those who will ask for it."""
    result = {
        "name": bool(names_told(text)),
        "reminder": says("reminder", text),
        "health": is_health(text),
        "work": says("work", text),
        "answers": says("manner", text),
    }
    return tuple(name for name, so in result.items() if so)


def category_of(text: str, *, preference: bool) -> str | None:
    """The category of the tree that a statement belongs in, if its words tell."""
    if names_told(text):
        return "owner"
    if says("reminder", text):
        return "tasks"
    health = is_health(text)
    if says("standing", text) or (preference and not health):
        return "preferences"
    folded = fold(text[:_LONGEST])
    about = (name for name, known in categories().items() if known.any_in(folded))
    return "health" if health else next(about, None)


def _undone(sentence: str, names: set[Signal]) -> set[Signal]:
    """The signals of `names` that are only denied, or part of a condition."""

    def follows_denial(cue_of_it: re.Match[str]) -> bool:
        before = sentence[max(0, cue_of_it.start() - 12) : cue_of_it.start()]
        denials = cue("not_if").pattern.finditer(before)
        return any(denial.end() == len(before.rstrip()) for denial in denials)

    return {
        name
        for name in names & {"decision", "solution", "report"}
        if all(map(follows_denial, cue(name).pattern.finditer(sentence)))
    }


def content_words(text: str) -> int:
    """The number of words in `text` that could be a topic."""
    result = WORD.findall(text)
    if not text.isascii() and len(result) < len(text) // 4:
        return len(text) // 3
    stems = [re.split("['’]", word.casefold(), maxsplit=1)[0] for word in result]
    return sum(stem not in not_topics() or stem in words("days") for stem in stems)


@cache
def day_names() -> frozenset[str]:
    """Names of days and months."""
    return words("days", "weekdays") - {"today", "heute", "tomorrow", "morgen"}


def _extras(text: str, content: int) -> float:
    metadata = extract(text)
    folded = fold(text)
    value = -0.5 if text.count(" ") > _TOO_MANY_WORDS else 0.0
    # "One of them" counts nothing.
    counting = words("numbers").intersection(folded.split()) - not_topics()
    counted = counting or any(map(str.isdigit, text))
    value += 0.7 if counted else 0.0
    value += 0.5 if people(text) else 0.0
    dated = cue("dated").any_in(folded) or not day_names().isdisjoint(WORD.findall(folded))
    value += 0.5 if dated else 0.0
    value += 1.0 if metadata.urls or metadata.commands or metadata.paths else 0.0
    value -= 1.0 if text.endswith((":", "：")) else 0.0
    if cue("vague").pattern.match(folded):
        value -= 0.4 if content > 2 else 2.0
    value += 1.5 if cue("marked").pattern.match(folded) else 0.0
    return value - (1.5 if cue("to_another").pattern.match(folded) else 0.0)


def _told(clause: str, conditional: bool) -> Outcome | None:
    if pending := cue("pending").pattern.search(clause):
        denied = cue("denied").any_in(clause[: pending.start()])
        # "Not blocked any more".
        return "positive" if denied else None if conditional else "pending"
    if cue("ongoing").any_in(clause):
        return ONGOING
    if conditional:
        return None
    positive, negative = _last("positive", clause), _last("negative", clause)
    # An error counts only without another outcome: "fixed the error".
    if not positive[0] and not negative[0]:
        negative = _last("trouble", clause)
    if not positive[0] and not negative[0]:
        return None
    failed = negative[0] >= positive[0]
    start = (negative if failed else positive)[1]
    before = clause[max(0, start - _NEARBY) : start]
    denied = cue("denied").any_in(before)
    if failed:
        return "positive" if denied else "negative"
    return "pending" if denied or cue("coming").any_in(before) else "positive"


def _last(name: str, clause: str) -> tuple[int, int]:
    """The end and the start of the last cue; zeros without any."""
    matches = cue(name).pattern.finditer(clause)
    return max(((match.end(), match.start()) for match in matches), default=(0, 0))


def says(name: str, text: str) -> bool:
    """Whether a text has a cue: "reminder", "advice", "unreal" and others of the lexicon."""
    return cue(name).any_in(fold(text[:_LONGEST]))


def _name_after(name: str, text: str) -> str:
    names = compiled(rf"\b(?i:{{{name}}}) {_NAME}|(?:{{~{name}}}){_UNSPACED_NAME}")
    match = names.search(text)
    result = (match["name"] or match["unspaced"]) if match else ""
    return "" if result.casefold() in not_topics() else result
