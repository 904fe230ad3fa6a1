"""What a sentence does: decide, correct, report, prefer, fail, promise, ask, greet.

Patterns of wording, most of them English, the plainest also in other languages. They see a
sentence folded and cut to 600 characters, so that none can take long.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from ..similarity import fold
from .telling import CLAIM, COMMITMENT, NOT_IF, PREFERENCE, REPORT

Signal: TypeAlias = Literal[
    "question", "greeting", "request", "offer", "hedge", "decision", "solution", "correction",
    "preference", "error", "report", "commitment", "claim",
]  # fmt: skip

_LONGEST: Final = 600
_LONGEST_GREETING: Final = 80

_GREETING: Final = re.compile(
    r"(?:(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening|night|idea|point|luck|job)|thanks"
    r"|thank you|thx|ok|okay|k|sure|great|nice|cool|yes|yeah|yep|yup|no|nope|right|wow|awesome"
    r"|perfect|excellent|amazing|fine|got it|sounds (?:good|great)|you'?re welcome|bye|goodbye|haha"
    r"|see you(?: \w+)?|take care|no problem|no worries|np|lol|will do|of course|certainly|exactly"
    r"|absolutely|agreed|congrats|congratulations|welcome|understood|makes sense|that's (?:great"
    r"|awesome|amazing|cool|nice|wonderful|lovely|fantastic|so \w+)|how are you|what's up"
    r"|(?:so |very |too )?much|a lot|again|there|all|everyone|too|for \w+(?: \w+)?|man|mate|buddy"
    r"|hallo|guten (?:tag|morgen|abend)|danke|bitte|ja|nein|genau|bonjour|salut|merci|oui|non"
    r"|hola|gracias|buenos días|sí|claro|vale|привет|здравствуйте|спасибо|да|нет|хорошо"
    r"|你好|您好|谢谢|謝謝|好的?|是的?|嗯|こんにちは|ありがとう(?:ございます)?|はい|いいえ"
    r"|안녕하세요|감사합니다|네)(?:[\s,.!?…~:)('-]+|$|(?=[。！？])[。！？]+)"
    r"(?:[a-zà-ÿ]{2,12}[!.,?]*$)?)+"
)
_QUESTION: Final = re.compile(
    r"[?？؟][\"')\]”’*\s]*$|(?:吗|呢|嗎|か)[。.]?$|か[。]$"
    r"|^(?:(?:so|and|but|ok|hey|hi)[, ]+)?(?:(?:what|when|where|who|why|how|which)\b.{0,40}?\b"
    r"(?:is|are|was|were|do|does|did|can|could|should|would|will|have|has)\s(?:you|i|we|it|the"
    r"|there"
    r"|this|that|they|he|she|my|your|our)\b|(?:can|could|would|should|do|does|did|is|are|was|were"
    r"|will|have|has|shall|may)(?:n't)? (?:you|i|we|it|the|there|this|that|they|he|she|my|your"
    r"|our|anyone|someone)\b|(?:how|what) about\b|any (?:idea|thoughts|chance)\b|how (?:do|to)\b)"
)
_STANDING: Final = re.compile(
    r"\b(?:always|never|from now on|in future|whenever|remember|every(?:thing)?|all my)\b"
)
_REQUEST: Final = re.compile(
    r"^(?:(?:ok|okay|now|then|so|hey|hi|and|also|great|thanks)[, ]+)*(?:please\b|kindly\b"
    r"|(?:can|could|would|will) you\b|(?:i(?:'d| would) like|i want|i need) you to\b|(?:show|tell"
    r"|give|send|help|remind) me\b|(?:write|explain|find|create|make|generate|summari[sz]e|add"
    r"|translate|draft|look up|describe|calculate|suggest|rewrite|tell|let me know|remove|delete"
    r"|implement|fix (?:the|this|that|my)|(?:run|check|list|update|change|do|set|turn|start)"
    r" (?:the|this|my|an?)|(?:look at|open|visit|read)"
    r" (?:the|this|that|my)|book|order|schedule|remind|play|call|text|buy)\s"
    r"|(?:bitte|kannst du|könntest du|peux-tu|pouvez-vous|puedes|podrías|por favor|пожалуйста)\b"
    r"|请|請|帮我|幫我|.{0,60}(?:ください|주세요))"
)
# Nor does "I'll keep that in mind" say anything.
_TAKEN_NOTE: Final = (
    r"^noted\b|\bi(?:'ll| will) (?:remember\b|(?:keep|bear) (?:that|it|this)(?:$| in mind))"
)
_OFFER: Final = re.compile(
    rf"{_TAKEN_NOTE}|\b(?:how (?:can|may) i (?:help|assist)|what can i do for you"
    r"|(?:shall|should) i|soll ich|quieres que"
    r"|i can help|i can also|i could (?:also )?help|let me (?:know|check|see|help|try|look)"
    r"|would you like|do you want me|feel free|i (?:don't|can't|cannot) (?:have )?(?:access"
    r"|browse)|i'm unable to|happy to help|glad (?:i could|to) help"
    r"|glad (?:it|that|to hear|you)|is there anything|anything else|as an ai|i'm here to|i'll be"
    r" (?:happy|glad) to|here (?:is|are|'s) (?:a|the|some|your|my|an)\b|you(?:'re| are) (?:doing|so"
    r"|such|always|absolutely|very)|i(?:'m| am) (?:so )?(?:glad|happy|sorry|proud|excited) (?:to"
    r"|for you|you|that you|of you|it|i)|good luck|sounds like|i hope|hope (?:you|it|this|that)"
    r"|great (?:question|job|work|to hear)|i understand|keep it up)\b"
)
_HEDGE: Final = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|probably|i guess|not sure|i wonder|wondering|could be"
    r"|seems?|supposedly|i suppose|thinking (?:about|of)|considering|vielleicht|peut-être|quizás"
    r"|возможно|may be)\b|可能|也许|かもしれ|たぶん"
)
_DECISION: Final = re.compile(
    rf"{NOT_IF}\b(?:(?:we|i|they|he|she|team|everyone|both|all|and|finally|it was|was|is|has been"
    r"|have) (?:\w+ )?(?:decided|agreed|chose|picked|selected|settled on|opted|voted)"
    r"|decided (?:to|on|that|against|not|by)|^(?:\w+ )?(?:decided|chose|selected|picked|opted"
    r"|agreed(?=:| (?:to|on|that|upon|with)))\b"
    r"|(?:i|we)(?:'ll| will|'re going to| are going to|'m going to) (?:use|go with|switch to|stick"
    r" with|keep (?!(?:it|that|this|to|you|going|trying|at|up|an eye)\b)|adopt|drop|migrate to"
    r"|move to|start with|ship with)|going with|let'?s (?:use|go (?!on\b)\w+"
    r"|stick|keep (?!\w+ing\b|up)|switch|start|deploy|ship|do|make|move|drop|take|try|wait"
    r"|postpone|schedule|meet)"
    r"|use (?!to\b)\S.{0,40}\binstead\b(?! of)|then let'?s"
    r"|(?:final |the |our )?decision(?: is|(?=:)| was)|approved|signed off|switched? (?:\w+ )?from"
    r"|made up my mind|opted for|settled on|changed my mind"
    r"|entschieden|beschlossen|vereinbart|entschied(?:en)? uns|einigten uns|wir nehmen"
    r"|(?:avons|ai|a|ont) (?:décidé|choisi|convenu)|décidé de|(?:hemos |he |han )?(?:decidido"
    r"|acordado|elegido)|decidimos|acordamos|решили|решил|решила|договорились|выбрали)\b"
    r"|决定|決定|选定|商定|決めました|決めた|ことにし(?:た|ます|ました)|하기로|결정"
)
_SOLUTION: Final = re.compile(
    rf"{NOT_IF}\b(?:(?:fixed|solved|resolved|repaired|worked around|cured) (?:it |this |that |the "
    rf"|by |"
    r"with |in |a )|(?:the |a )?(?:fix|solution|workaround|trick|remedy)(?: is| was|:| that)"
    r"|(?:root )?cause (?:is|was)|was caused by|caused by|works? (?:now|again|after|fine)"
    r"|it(?:'s| is) back (?:up|online)|(?:it|that|this|everything) works(?=$|[,.;!])|worked after"
    r"|turns out|turned out|to (?:fix|solve|resolve) (?:it|this|the)|solves it"
    r"|did the trick|behoben|gelöst|la solution|résolu|corrigé|la solución|resuelto|solucionado"
    r"|arreglado|решено|исправил\w*|исправлено|решение)\b"
    r"|修复|修復|解决(?:了|方法|办法)|解決(?:しました|した|策)|直りました|고쳤|해결"
)
_CORRECTION: Final = re.compile(
    r"^(?:no|no wait|nope|wait|oh wait|sorry|actually|correction|wrong|nein|non|нет|eigentlich"
    r"|stimmt nicht)"
    r"\s?[,:.!—–-]+ ?(?!(?:i|we) (?:just|recently|also)\b)"
    r"(?=\w+ (?!problem|worries|thanks|thank|need))"
    r"|^actually (?:it|the|my|i|we|that)\b|\bnot (?!just|only|merely"
    r"|even)[\w@./:-]+(?: [\w@./:-]+){0,3}, but\b"
    r"|, not (?!just|only|to mention|even|sure|yet)[\w\"'@]|\bi meant?\b(?! to)|\bi misspoke\b"
    r"|\b(?:that|this|it)(?:'s| is| was)"
    r" (?:not (?:right|correct|true|what i (?:said|meant|asked))|wrong|incorrect|n't (?:right"
    r"|correct))|\byou (?:got|have) .{1,40}\bwrong\b|\bshould (?:be|have been) .{1,60}"
    r"\b(?:not|instead)\b|\bit's actually\b|\bsondern\b|\ben fait\b|\ben realidad\b|\bsino\b"
    r"|на самом деле|不对|不對|不是.{1,30}而?是|其实|應該是|应该是|更正|ではなく|じゃなくて"
    r"|違います|아니라"
)
# "The timeout is 60 s" tells of a setting.
_TIMEOUT: Final = (
    r"(?<!idle )(?<!connect )(?<!read )timeouts?(?! (?:is|was|to|of|from|settings?|limit)\b)"
)
_NOT_DOING: Final = (
    r"(?:never|won't|will not|can't|cannot|does(?:n't| not)|did(?:n't| not))"
    r" (?:complete|connect|boot|light up|respond|turn on|open)s?"
)
_STATUS: Final = (
    r"(?:http|status|code|returns?|returned|responds? with|gives?|throws?) (?:an? |the )?[45]\d\d"
    r"|[45]0\d(?: (?:errors?|responses?|bad gateway|not found|on|from|when)|s)"
)
_ERROR: Final = re.compile(
    r"\b(?:errors?|exceptions?|(?<!\bi )(?<!\bhe )(?<!she )fail(?:s|ed|ing|ures?)?|crash(?:es|ed"
    r"|ing)?|broken|breaks|broke"
    r"|(?:does|did|is|was|do)(?:n't| not) (?:work|start|load|respond|compile|build|run)\w*"
    rf"|not working|stopped working|{_NOT_DOING}|tim(?:ed|es|ing) out|{_TIMEOUT}|refused|segfaults?"
    r"|traceback|bugs?|panics?|corrupt(?:ed)?|unreachable|hangs|out of (?:memory|disk|space)"
    r"|(?:disk|memory|storage|drive|card)(?: is)? full"
    r"|(?:still|shows?|there is|there's|gets?) no"
    r" (?:data|signal|picture|sound|image|internet|connection|power|output)"
    r"|keeps? (?:dropping|crashing|dying|failing|restarting|freezing)"
    r"|(?:dead|died|drops|dropped) (?:again|every)|deadlocks?|regression"
    rf"|{_STATUS}|it still (?!works|holds|is|has)\w+s|fehler\w*|kaputt|abgestürzt|fehlgeschlagen"
    r"|(?:läuft|geht|funktioniert|startet) (?:\w+ )?nicht|erreurs?|échou\w+|en panne"
    r"|ne (?:marche|fonctionne|démarre) (?:pas|plus)|fall[óa]|roto"
    r"|no (?:funciona|arranca)|ошибк\w+|упал\w*|сломал\w*)\b"
    r"|失败|失敗|错误|錯誤|报错|崩溃|エラー|壊れ|動きません|動かない|오류|실패|^\w*(?:error|exception)\b"
)
_PATTERNS: Final[dict[Signal, re.Pattern[str]]] = {
    "question": _QUESTION,
    "offer": _OFFER,
    "hedge": _HEDGE,
    "decision": _DECISION,
    "solution": _SOLUTION,
    "correction": _CORRECTION,
    "preference": PREFERENCE,
    "error": _ERROR,
    "report": REPORT,
    "commitment": COMMITMENT,
    "claim": CLAIM,
}


def signals_of(sentence: str) -> frozenset[Signal]:
    """All that one sentence does; none for a plain statement."""
    folded = fold(sentence[:_LONGEST])
    found: set[Signal] = {signal for signal, pattern in _PATTERNS.items() if pattern.search(folded)}
    if len(folded) <= _LONGEST_GREETING and _GREETING.fullmatch(folded):
        found.add("greeting")
    if _REQUEST.match(folded) and not _STANDING.search(folded):
        found.add("request")
    return frozenset(found)
