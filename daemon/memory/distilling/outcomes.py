"""The outcome of what a text reports: positive, negative, pending or ongoing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..records import Outcome
from ..similarity import fold
from ..statement import read
from ..vocabulary import NEGATIONS, word_set

_LONGEST: Final = 600
_BREAK: Final = (
    r"[,;:.!?。，；！、](?:\s+|$)|(?<=[。，；！、])|\s[-–—]+\s|—|\s→\s"
    r"|\s(?:but|however|although|though|then|aber|mais|pero|но|yet(?= (?:the|it|we|i)\b))\s"
)
_CLAUSE: Final = re.compile(_BREAK)
# Not where a condition holds for both: "if it is fixed and the tests pass".
_JOINED_CLAUSE: Final = re.compile(
    _BREAK + r"|\s(?:and|so)(?= (?:it|that|this|they|everything|all|the|i|we|he|she|now)\b)\s"
)
# Something reached; denied, it is still to come: "not fixed".
_DONE: Final = word_set(
    "fixed solved resolved completed finished done deployed shipped released merged passed",
    "succeeded recovered restored approved accepted installed migrated published launched",
    "delivered implemented repaired achieved landed cured healed booked paid verified upgraded",
    "finalized graduated won mended settled",
)
# A way of being; denied, it went wrong: "does not work", "did not pass".
_GOOD: Final = word_set(
    "work works worked working success successful successfully succeed succeeds pass passes stable",
    "smoothly perfectly healthy recover green",
)
_BAD: Final = word_set(
    "failed fails fail failing broke broken crashed crashes crashing crash rejected denied",
    "refused cancelled canceled lost impossible unsuccessful declined worse died aborted corrupted",
    "unusable unreachable rolled reverted ruined worsened",
)
# These go wrong only where nothing else is said of them: "fixed the error".
_TROUBLES: Final = word_set(
    "error errors failure failures timeout timeouts exception exceptions regression outage"
)
# "Error handling" does not report an error.
_COMPOUNDS: Final = word_set("handling message messages code codes budget log logs page pages")
# Nor is a limit of time that can be set: "the timeout is 60 s", "an idle timeout".
_LIMITS: Final = frozenset({"timeout", "timeouts"})
_AFTER_LIMIT: Final = word_set("is was to of from setting settings value limit")
_BEFORE_LIMIT: Final = word_set("idle read write connect connection session set raise raised")
_UNSPACED_TROUBLE: Final = re.compile("错误|錯誤|エラー|오류")
_OPEN: Final = word_set(
    "pending waiting awaiting todo to-do blocked unresolved unfinished postponed delayed scheduled",
    "deferred undecided tbd stuck",
)
_COMING: Final = word_set("will shall gonna should must be being to until once after plan plans")
_ALMOST: Final = word_set("partially partly almost nearly half mostly")
_CONDITION: Final = word_set("if when unless would could might may whether hope hopefully wish")
_DENIES: Final = NEGATIONS | word_set("without zero 0 longer fewer")
# "Works at a bank", "working on it".
_EMPLOYED: Final = word_set("at for as in from with on hard together out towards remotely")
# What is back is well again, unless it is what ailed, or somebody who was away.
_RETURNED: Final = (
    r"back (?:online|up(?! \w))|(?:everything is|(?!errors|problems|issues|bugs|crashes|symptoms"
    r"|pains|\w*aches)\w+s are)(?: all)? back(?! (?:on|in|at|to|from|by|for|home)\b)"
)
_TOLD_APART: Final[tuple[tuple[Outcome, re.Pattern[str]], ...]] = (
    (
        "pending",
        re.compile(
            r"\b(?:(?:not|n't|never|nothing|nobody|has|have|is|are) .{0,40}\byet|not yet|yet to"
            r"|on hold|under review|still (?:needs?|have to|has to|open|missing|to|waiting|pending"
            r"|unclear|not)|(?:remains?|left|needs?|has|have) to be|to be \w+ed|no answer"
            r"|no decision|noch nicht|ausstehend|steht (?:noch )?aus|pas encore|en attente"
            r"|todavía no|aún no|pendiente|ещё не|еще не|ожида\w+|ждём|ждем)\b|⏳"
            r"|待(?:办|定|处理|确认)|还没|還沒|尚未|等待|未完了|まだ|待ち|아직|대기"
        ),
    ),
    (
        "negative",
        re.compile(
            r"\b(?:gave up|giving up|no luck|no success|went wrong|fell through"
            r"|(?:is|are|went|was) down(?! (?:to|by|from)\b)"
            r"|to no avail|unable to|passed away|in vain|timed out|ran out of|out of memory"
            r"|fehlgeschlagen|gescheitert|kaputt|abgestürzt|funktioniert nicht|klappt nicht"
            r"|échoué|échec|en panne|ne (?:marche|fonctionne) pas|falló|fallado|no funciona|roto"
            r"|не работает|не удалось|сломал\w*|упал\w*|провал\w*)\b|[❌💥]"
            r"|失败|失敗|出错|坏了|崩溃|不行|壊れ|動かない|動きません|실패"
        ),
    ),
    (
        "ongoing",
        re.compile(
            r"\b(?:in progress|under ?way|ongoing|working on|in arbeit|en cours|en curso"
            r"|в процессе)\b|进行中|進行中|作業中|진행"
        ),
    ),
    (
        "positive",
        re.compile(
            rf"\b(?:up and running|{_RETURNED}|as expected|good to go|all (?:good|set|clear|fine)"
            r"|went (?:\w+ )?(?:well|fine|smoothly)|made it|(?:did|does) the trick|thumbs up"
            r"|(?:that|this) (?:was it$|did it|does it)"
            r"|no longer (?:fails?|crashes|broken|blocked|an issue)"
            r"|(?:builds|compiles|starts|boots|loads|runs|connects|prints|syncs|responds|plays)"
            r" (?:now|again|fine|cleanly)"
            r"|behoben|gelöst|erledigt|funktioniert|geklappt"
            r"|(?:geht|gehen|läuft|laufen|klappt)(?: \w+)? (?:wieder|jetzt)"
            r"|résolue?|corrigée?|terminée?|réussie?|fonctionne|ça marche|resuelto"
            r"|arreglado|terminado|funciona|решен[оа]|исправлен[оа]|готово|работает|удалось)\b"
            r"|[✅✔🎉]|修复|修好|(?:恢复|现在)正常|正常了"
            r"|解决了|解決し|已(?:完成|解决|修复|部署)|完成了|成功|完了|直り|완료|해결"
        ),
    ),
)
_PROMISE: Final = re.compile(
    r"\b(?:(?:will|'ll|going to|gonna|must) (?!(?:be|have|remember|help|let|see|try|note"
    r"|not|do|keep|bear|make sure)\b)|needs? to"
    r"|have to|has to|todo|to-do"
    r"|plan(?:s|ning)? to"
    r"|next steps?|remind|werde[nt]?|muss|müssen|doit|devons|tenemos que|voy a|нужно|надо)\b"
    r"|需要|计划|打算|予定|つもり"
)
# After it what failed before is no longer how it ended.
_DECIDED: Final = re.compile(r"\b(?:decided|chose|agreed|picked|settled)\b")
_EARLIER: Final = 5


def outcome_of(statements: Iterable[str]) -> Outcome:
    """What the statements, in their order, come to: the last of them that says it decides.

    A promise ("will deploy", "need to") makes it pending only where nothing tells of an end.
    Leave out questions.
    """
    last: Outcome | None = None
    promised = False
    for statement in statements:
        folded = fold(statement[:_LONGEST])
        for clause in _clauses(folded):
            if not clause or not clause.strip():
                continue
            if last == "negative" and _DECIDED.search(clause):
                last = None
            last = _told(clause) or last
        promised = promised or _PROMISE.search(folded) is not None
    return last or ("pending" if promised else "ongoing")


def _clauses(folded: str) -> list[str]:
    conditional = not _CONDITION.isdisjoint(read(folded).words)
    return (_CLAUSE if conditional else _JOINED_CLAUSE).split(folded)


def _told(clause: str) -> Outcome | None:
    for outcome, pattern in _TOLD_APART:
        if pattern.search(clause):
            return outcome
    words = read(clause).words
    for at in range(len(words) - 1, -1, -1):
        told = _told_by(words, at)
        if told is not None:
            return told
    return _trouble(clause, words)


def _told_by(words: tuple[str, ...], at: int) -> Outcome | None:
    """What one word tells, seen with the few before it."""
    word = words[at]
    before = frozenset(words[max(0, at - _EARLIER) : at])
    denied = not before.isdisjoint(_DENIES)
    if word in _OPEN:
        return "positive" if denied else "pending"
    if not _CONDITION.isdisjoint(words[:at]):
        return None
    if word in _BAD:
        return "positive" if denied else "negative"
    if word in _DONE:
        return _reached(before, denied=denied)
    if not _is_good(words, at):
        return None
    return "negative" if denied else _reached(before, denied=False)


def _reached(before: frozenset[str], *, denied: bool) -> Outcome:
    """What something done tells: "not fixed" is still to come, "never fixed" is not."""
    if denied:
        return "negative" if "never" in before else "pending"
    coming = not before.isdisjoint(_COMING) or not before.isdisjoint(_ALMOST)
    return "pending" if coming else "positive"


def _is_good(words: tuple[str, ...], at: int) -> bool:
    if words[at] not in _GOOD:
        return False
    following = words[at + 1] if at + 1 < len(words) else ""
    if words[at].startswith("work"):
        noun = words[at] == "work" and _DENIES.isdisjoint(words[:at]) and "will" not in words[:at]
        return not noun and following not in _EMPLOYED
    return words[at] != "green" or at == len(words) - 1


def _trouble(clause: str, words: tuple[str, ...]) -> Outcome | None:
    """The outcome of a clause that only reports an error, or the absence of errors."""
    for at, word in enumerate(words):
        before = frozenset(words[:at])
        following = words[at + 1] if at + 1 < len(words) else ""
        if word not in _TROUBLES or following in _COMPOUNDS or before & _CONDITION:
            continue
        if word not in _LIMITS or not (following in _AFTER_LIMIT or before & _BEFORE_LIMIT):
            return "negative" if before.isdisjoint(_DENIES) else "positive"
    return "negative" if _UNSPACED_TROUBLE.search(clause) else None
