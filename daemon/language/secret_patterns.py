"""Patterns of secrets: by a name, header, flag or URL before them, or by their shape.

A match by name is only a candidate; `secrets` decides whether the value is a secret.
"""

from __future__ import annotations

import re
from typing import Final

from .vocabulary import each, either

IN_URL: Final = re.compile(
    r"(?P<before>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s/:@\"'`<>]{0,128}:)"
    r"(?P<value>[^\s/@\"'`<>]{1,256})(?=@[^\s@])"
)
# A token in the place of a user: https://ghp_…@github.com.
USER_IN_URL: Final = re.compile(
    r"(?P<before>(?<![A-Za-z0-9])https?://)(?P<value>(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{20,256})"
    r"(?=@[A-Za-z0-9])"
)
# Signatures and keys in the query of a URL with less specific names.
QUERY: Final = re.compile(
    r"(?P<before>[?&;](?:sig|signature|appid|app_id|key|apikey|auth|x-amz-signature"
    r"|x-amz-security-token|x-goog-signature)=)(?P<value>[A-Za-z0-9%._~+/-]{16,4096})",
    re.IGNORECASE,
)
# Here and below, a set of the letters that a match may begin with saves trying each name at each
# letter of a text.
HEADER: Final = re.compile(
    r"\b(?=[abcgklmpst])(?P<before>(?:\bauthorization[\"']?\s?[:=]\s?[\"']?)?"
    r"\b(?:bearer|basic|token|apikey)\s{1,3}|\bauthorization[\"']?\s?[:=]\s?[\"']?|\b(?:api|access|secret|global|license|auth|account"
    r"|master|signing|service role)[ _-]?key:?\s|\b(?:password|passphrase|auth ?token|authkey"
    # Any kind of key; a hash does not have letters of both cases.
    r"|(?:client|api|app) secret):?\s|\bkey(?::\s|[\s=])(?=(?-i:\S{0,64}[a-z]))"
    r"(?=(?-i:\S{0,64}[A-Z]))(?=[A-Za-z0-9]{24,}(?![\w./:-])))(?P<value>[A-Za-z0-9._~+/=-]{12,4096})",
    re.IGNORECASE,
)
COOKIE: Final = re.compile(
    r"(?P<before>\b(?:set-)?cookie:\s?)(?P<value>[^\s=;\"']{1,64}=[^\n\"']{16,4096})", re.IGNORECASE
)
_NAMES: Final = (
    r"(?<![A-Za-z])pass|(?<![A-Za-z])pwd?|(?<![A-Za-z])psk|pre-?shared[_-]?key"
    r"|(?:client|app|shared|webhook|consumer)?[_-]?secret(?:[_-]?(?:access[_-]?)?key)?(?:_base)?"
    r"|(?:api|access|auth|account|(?<![A-Za-z])app|application|network|private|signing|encryption"
    r"|master|licen[cs]e)[_ -]?key|token"
)
# The letters that these begin with.
_BEGINNINGS: Final = frozenset("-_acelmnpstw")
_SEPARATOR: Final = r"[ \t]{0,4}(?::=|=>|->|→|=(?!=)|[:：])[ \t]{0,4}"
VALUE: Final = (
    r"(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{3,1024})(?P=quote)|(?P<bare>[^\s\"'`,;<>|]{4,1024})"
)
# A password that only the words before it identify. This finds candidates: quoted phrases, tokens
# of mixed characters, and words that a clause ends with.
CANDIDATE: Final = re.compile(
    r"(?P<before>(?<!\w)[\"'`“„«])(?P<quoted>[^\"'`“”„\n\[]{4,160})(?=[\"'`”“»])"
    r"|(?<![\w@/.:+#\\-])(?P<bare>[^\W_](?:[^\s\"'`,;<>|()\[\]“”„/\\]{3,63})(?<![.!?:]))"
)
_NAMED: Final = (
    r"(?:{secret_name}|{secret_login}|passcode|psk|\bpw|\btoken(?= (?:for|of|to|für|vom) ))"
    r"(?:['’]s)?(?![\w-])"
)
_FILLER: Final = r"(?:[\w'’/]+,? ){0,3}?"
# "The password", "his password lying around, it's", "Passwort fürs Archiv:", "I changed it to".
_TOLD: Final = rf"\b(?:{{secret_is}}|(?:set|changed)(?: it)? to|auf)[: ]{{1,2}}{_FILLER}"
_QUESTION: Final = r"[?？]\s+(?:[^.!?\n\d\[]{1,20}[,.] )?(?:[\w'’]+ ){0,4}?"
NAMED_BEFORE: Final = (
    rf"(?i){_NAMED}(?: ?[:=(]? ?|[^!?\n\[]{{0,60}}?{_TOLD}"
    rf"|[^.!?\n\[]{{0,60}}(?:(?:[:=(,→]|['’]s)[: ]{{1,2}}{_FILLER}|{_QUESTION}))$"
)
# A word in place of a mixed token: "the password of the safe is sunflower".
BEFORE_WORD: Final = (
    r"(?i)(?:{secret_name})(?: (?:{secret_of}|at|on|in|im|beim|zum|zur)(?: [\w'’-]{1,20}){1,4}?)?"
    r",? (?:{secret_is})(?: (?:{secret_now}))?:? $"
)
NAMED_AFTER: Final = (
    r"(?i)[^\n.!?]{0,12}\((?:the |my |our )?(?:\w+ )?(?:{secret_name})\)"
    r"| (?:{secret_is}) (?:[^\W\d]{2,8} ){0,3}?(?:{secret_name})\b"
)
# Names of programs and standards, times, amounts, versions and commits.
COMMON: Final = re.compile(
    r"(?i)(?:utf|sha|aes|iso|md|wpa|rsa|ed|base|pbkdf|argon|bcrypt|oauth|x|tls|http|ssh)-?\d\S*"
    r"|\d+(?:st|nd|rd|th|am|pm|[kmgt]b|h|min|x|ms|s|px|%|-?[a-z]{3,})|\d?[a-z]?password\w*|v?\d+(?:\.\d+)+\S*"
    r"|\S+\.(?:com|net|org|io|de|es|fr|dev|app|html|py|ts|js|json|toml|txt|pdf|md)|[\W\d]+|\d+\S{0,2}"
    r"|(?-i:[0-9a-f]{7,40}|ge[a-zß-ÿ]+t|[a-zß-ÿ]+(?:ed|[ai]ble|ly|lich|bar|[ai]d[ao]|ing))"
)
IN_XML: Final = re.compile(
    r"(?P<before><[\w:.-]{0,30}(?:passw(?:or)?d|passphrase|secret|token|api-?key)>)"
    r"(?P<value>[^\s<>]{4,256})(?=</)",
    re.IGNORECASE,
)
FLAG: Final = re.compile(
    r"(?=[-sdmc])(?P<before>(?<!\S)--?(?:[a-z]{1,12}-)?(?:password|passwd|passphrase|token|secret"
    r"|api-?key)[ =]"
    r"|\bsshpass -p ?|\bdocker login [^\n]{0,80}-p ?|\bmysql(?:dump|admin)?\s[^\n]{0,80}?(?<=\s)-p"
    rf"|\bcurl (?:-[^\s]{{1,12}} ){{0,4}}-u ?[^\s:]{{1,64}}:)(?:{VALUE})",
    re.IGNORECASE,
)
# Placeholders for a value, and references to it.
PLACEHOLDER: Final = re.compile(
    r"[<\[{(*$%@#_.…•]|![a-z]+\W*$|[xX]{3,}|[/~]|\.{1,2}/|[A-Z]:\\|[A-Za-z]+\[|(?:none|null|nil"
    r"|true|false|yes|no|str|string"
    r"|int|bool|bytes|object|any|optional|required|missing|invalid|expired|unknown|empty|unset|set"
    r"|changed|hidden|redacted|removed|cleared|wrong|incorrecta?|correct|weak|strong|valid|secure"
    r"|not|the|a|an|my|your|our|in|on|at|for|to|from|with|and|or|of|is|was|must|should|can|may|will"
    r"|use|see|stored|saved|kept|needed|protected|encrypted|reset|default|changeme|undefined|wpa[0-9]?"
    r"|authentication|based|count|limit|basic|bearer|still|now|too|very|old|new)\W*$"
    r"|(?:https?|file|ssh|git)://|[a-z]\w*\(|(?:my|your|the|new|old|user|api|auth|access|db)?[_-]?"
    r"(?:password|token|secret|api_?key|key)s?\W*$|(?!\S{0,40}[0-9]\S{0,40}[0-9]\S{0,40}[0-9])"
    r"[A-Za-z_]\w{0,30}(?:\.[A-Za-z_]\w{0,30})+(?:\(|\[|\W*$)"
    r"|.*(?:environ|getenv|process\.env|secrets?\.|vault|\$\{|\{\{|\(\))",
    re.IGNORECASE,
)

# No secret begins or ends within a longer word.
_BEGIN: Final = r"(?<![A-Za-z0-9_+/-])"
SHAPES: Final = re.compile(
    _BEGIN + "(?:"
    r"(?P<api_key>sk-(?:proj-|svcacct-|admin-|or-v1-|ant-[a-z0-9]{2,12}-|live-|test-)?"
    r"(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{20,255}|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,255}"
    r"|whsec_[A-Za-z0-9+/=]{24,99}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,512}"
    r"|GOCSPX-[A-Za-z0-9_-]{20,64}|(?:gsk|hf|npm|r8)_[A-Za-z0-9]{30,99}|(?:xai|nvapi|pplx|tvly)-"
    r"[A-Za-z0-9_-]{30,99}|pypi-[A-Za-z0-9_-]{50,512}|dop_v1_[a-f0-9]{64}|shp(?:at|ss"
    r"|ca)_[a-f0-9]{32}"
    r"|SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}|lin_api_[A-Za-z0-9]{32,64}"
    r"|dckr_pat_[A-Za-z0-9_-]{20,64}|hvs\.[A-Za-z0-9_-]{24,255}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"
    r"|[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{50,60}|NRAK-[A-Z0-9]{27}|SK[0-9a-f]{32}|[0-9a-f]{32}-us[0-9]{1,2}"
    r"|tskey-[a-z]{3,10}-[A-Za-z0-9-]{20,99}|xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}|pul-[0-9a-f]{40}"
    r"|dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9]{40,44}|EAAA[A-Za-z0-9_-]{60}"
    r"|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}|[A-Za-z0-9_-]{11}:APA91b[A-Za-z0-9_-]{100,300})"
    r"|(?P<github_token>gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}"
    r"|gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{20,64})"
    r"|(?P<aws_key>(?:AKIA|ASIA)[A-Z0-9]{16})"
    r"|(?P<slack_token>xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[0-9]-[A-Za-z0-9-]{10,255})"
    r"|(?P<jwt>eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,1024})"
    # Any provider: a short prefix, then random letters of both cases and digits.
    r"|(?P<prefixed>[a-z][a-z0-9]{1,9}_(?:[a-z]{2,8}_)?(?=[a-z0-9]{0,99}[A-Z])"
    r"(?=[A-Z0-9]{0,99}[a-z])(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{30,255}(?:_[0-9a-f]{6,10})?)"
    r")(?![A-Za-z0-9_])"
    r"|(?<=hooks\.slack\.com/services/)(?P<webhook>T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{16,40})"
    r"|(?<=api\.telegram\.org/bot)(?P<telegram>[0-9]{8,10}:[A-Za-z0-9_-]{35})"
    r"|(?<=discord\.com/api/webhooks/)(?P<discord>[0-9]{16,20}/[A-Za-z0-9_-]{60,80})"
)
PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN (?P<what>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
    # Not possessive, which Python 3.11.2 gets wrong. The rest is optional, so that this never
    # backtracks.
    r"(?:(?!-----(?:BEGIN|END))[^\n]*\n?)*(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
CARD: Final = re.compile(
    r"(?<![\w.+/=-])(?:[0-9]{13,19}|[0-9]{4}(?:(?P<gap>[ -])[0-9]{4})(?:(?P=gap)[0-9]{4}){2}"
    r"|3[0-9]{3}[ -][0-9]{6}[ -][0-9]{5})(?![\w/=-]|\.[0-9])"
)
_CARD_ISSUERS: Final = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7])[0-9]{14}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:6011|65[0-9]{2}|64[4-9][0-9]|35[2-8][0-9])[0-9]{12}"
)
IBAN: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)"
    r"(?![A-Za-z0-9])"
)


def assigned() -> re.Pattern[str]:
    """A secret after its name: "password = …", "the password for the guest network is …"."""
    names = f"{either('secret_name')}|{either('secret_name', spaced=False)}|{_NAMES}"
    begin = _BEGINNINGS.union(
        name[0] for name in (*each("secret_name"), *each("secret_name", spaced=False))
    )
    of = rf"(?P<of> (?:{either('secret_of')})(?: [\w'-]{{1,20}}){{1,3}}?)?"
    return re.compile(
        rf"(?=[{re.escape(''.join(begin))}])(?P<before>(?P<name>{names})"
        r"(?:[_-]?(?:[0-9]{1,3}|prod|dev|test|value))?[\"'`]?\]?"
        rf"(?: (?:{either('secret_for_it')}))?"
        rf"(?P<how>{of}(?:{_SEPARATOR}|[ ](?:{either('secret_is')})"
        rf"(?: (?:{either('secret_now')}))?:?[ ])|[ ](?:changed )?to[ ]|[ ](?=[\"'`])))(?:{VALUE})",
        re.IGNORECASE,
    )


# The same in scripts without blanks, where text directly follows the value.
ASSIGNED_UNSPACED: Final = (
    r"(?P<before>(?:{~secret_name})\s?(?:{~secret_is})\s?)"
    r"(?P<value>(?=[!-~]{0,64}[0-9])[!-~]{4,256})"
)
_SAYS: Final = r"(?:,? (?:{secret_is})(?: (?:{secret_now}))?:?|['’]s|\s?[:=→])\s?"
# Up to seven words between a name and its value: "of my card".
_GAP: Final = r"(?: (?!removed\])[^\W\d][\w'’-]{0,19}){0,7}?"
_SAYS_UNSPACED: Final = r"\s?(?:{~secret_is}|[:：])?\s?"
# Secrets that only the words around them identify: phrases of several words, without the words of
# grammar that no such phrase has …
WORDS_IN_A_ROW: Final = re.compile(
    r"(?<![\w'’/.-])(?:(?!(?:the|and|for|are|was|were|with|your|our|his|her|its|has|had|not|but|from|been"
    r"|which|would|could|should|than|der|die|das|den|dem|und|ist|sind|war|ein|eine|einen|mit|von|für"
    r"|auf|nicht|auch|aber|los|las|del|que|por|para|con|una|les|des|est|pour|avec|dans|removed)\b)"
    r"[^\W\d_][a-zß-ÿ]{2,7}(?:\s?[,;/|·–-]\s?|\s)(?:\d{1,2}[.:)]?\s)?){2,23}"
    r"[a-zß-ÿ]{3,8}(?![\w'’-])"
)
# That many words are a wallet's; fewer need their name right before them.
SEED_WORDS: Final = 12
BEFORE_SEED: Final = (
    r"(?i)\b(?:{secret_phrase}|{secret_name})\b[^.!?\n\[]{0,50}?"
    r"(?:\b(?:{secret_is})|[:=,])[: ] ?$"
)
SEED: Final = r"\b(?i:{secret_phrase})\b|{~secret_phrase}"
RESCUE: Final = re.compile(
    r"(?P<before>\b(?i:(?:recovery|backup|rescue) codes?"
    r"|(?:licen[cs]e|product|activation) (?:key|code))"
    r"(?i: (?:for|of|to)(?: \w+){1,3}?)?(?:\s?[:=→]\s?|(?i: is| are|:)?\s+))"
    r"(?P<value>(?=[A-Za-z-]{0,24}[0-9])[A-Za-z0-9]{2,12}(?:-[A-Za-z0-9]{2,12}){1,7})"
)
# … codes of digits, and numbers of people and documents. These patterns only find candidates.
_END: Final = r"(?![\w-]|[.,:/][0-9])"
CODE: Final = re.compile(
    rf"(?<![A-Za-z0-9.,/-])[0-9](?:[ -]?[0-9]){{2,7}}(?:-?[A-Z]{{1,2}}|[#*])?{_END}"
)
NUMBER: Final = re.compile(
    r"(?<![A-Za-z0-9.,/-])(?![A-Z]{3,} )(?=(?:[A-Z .-]{0,9}[0-9]){4})"
    rf"[A-Z0-9](?:[ ./-]?[A-Z0-9]){{5,24}}{_END}"
)
SOCIAL_SECURITY: Final = re.compile(r"[0-9]{3}-[0-9]{2}-[0-9]{4}")
# What stands before and after such a code or number.
BEFORE: Final = 150
BEFORE_CODE: Final = (
    rf"(?:\b(?i:{{secret_code}}){_GAP}(?i:{_SAYS})"
    r"|(?i:\b(?:\w*karten?|\w*konto|handy|banking|(?:bank|fuel|debit|credit) card|phone|sim"
    r"|reader|till|terminal),? pin) "
    rf"|\b(?:PIN|CV[VC]2?)(?i:[ -](?:code|number|nummer))? |(?i:{{~secret_code}}){_SAYS_UNSPACED})$"
)
AFTER_CODE: Final = r" (?i:{secret_is}) (?:[^\W\d][\w'’-]{0,19} ){0,3}?(?:PIN|(?i:{secret_code}))\b"
# The same, elsewhere in the sentence, or in the sentence beside it; "pin 1024" has no card.
_CODE_NAME: Final = (
    r"(?:\b(?:PIN|(?<=[a-z] )Pin|CV[VC]2?|PUK|TAN)\b|(?i:\b(?:my|our|your|his|her|their"
    r"|card|phone|bank|same|sim|staff|till|terminal|door|alarm|login|app|unlock|screen|account"
    r"|\w+'s|the) pin\b"
    r"|\b(?!pin\b(?! (?:code|number)))(?:{secret_code})\b|(?:{~secret_code})))"
)
# "The PIN of the card is the same as the garage code": the code before it is a secret.
SAME_CODE: Final = (
    rf"(?:{_CODE_NAME}|\b(?i:{{secret_name}}|{{secret_holder}})\b)[^\n]{{0,60}}\b(?i:{{same_as}})\b"
    r"(?P<other>[^.!?\n]{0,80})"
    rf"|\b(?i:{{same_as}})\b(?P<holder>[^.!?\n]{{0,40}}\b(?i:{{secret_holder}})\b)"
)
NAMED_CODE: Final = r"(?i)\b(?:{has_code})\b"
ANY_CODE_NAME: Final = r"\b(?:(?i:{secret_code})|PUK|TAN)|(?i:{~secret_code})"
# What is locked, and that it opens so, near a code on either side: "the safe has 4711 as its code".
BOX: Final = r"(?i)\b(?:{secret_box})\b"
OPENS: Final = r"(?i)\b(?:{secret_opens})\b"
BEFORE_BOXED: Final = (
    rf"(?i)(?:\b(?:{{secret_box}}){_GAP}{_SAYS}|(?:safe|tresor|fuerte|coffre(?:-fort)?|alarm) )$"
)
BOX_BEFORE: Final = re.compile(r"[^.!?\n]{0,60}$")
BOX_AFTER: Final = re.compile(r"[^.!?\n]{0,60}")
# No other code stands between them.
_BETWEEN: Final = r"(?:[^.!?\n\d[]|(?<!\d)\d{1,2}(?!\d))"
NEAR_BEFORE_CODE: Final = (
    _CODE_NAME + rf"(?:{_BETWEEN}{{0,80}}(?:\d{{4,8}},? (?i:to|and|or|now|auf|zu|und|oder|jetzt) )?"
    rf"|{_BETWEEN}{{0,60}}(?:[.!?…]\s+[^.!?\n\d[]{{1,25}})?[.!?…]?\s+"
    r"(?:[^\W\d][\w'’]{0,12},? ){0,6})$"
)
NEAR_AFTER_CODE: Final = (
    rf"(?:{_BETWEEN}{{0,80}}?|[.!?…]\s+(?:[\w'’]+ ){{0,2}}|[.!?…]\s+(?i:and |which )?"
    r"(?i:that|it|this|same|also|the same|das|dies|die|auch|es|c)\b"
    r"[\w'’]*(?: [\w'’]+){0,6}?[^\w]?)" + _CODE_NAME + r"(?![^.!?\n]{0,60}(?:\d{3}|removed\]))"
)
COUNTED: Final = r"(?i)\s?(?:[%€$£°]|(?:{counted_units})\b)"
CARD_CODE: Final = re.compile(r"(?i)\bcv[vc]2?\b|security code|prüf")
# In a talk also what opens a door or pays in a shop: "the gate is 4711#", "I punch in 4711".
TALKED_CODE: Final = re.compile(
    rf"(?<![A-Za-z0-9.,/€$£*#-])[*#]?[0-9](?:[ *-]?[0-9]){{2,7}}"
    rf"(?:-?[A-Z]{{1,2}}[0-9]{{0,2}}|[#*])?{_END}"
    # Letters among digits: "the door code is c19y44", "R31-L07-R55".
    r"|(?<![\w.,/@€$£*#-])(?=[0-9A-Za-z]{0,8}[A-Za-z]-?[0-9])(?=(?:[A-Za-z-]{0,8}[0-9]){2})"
    rf"[A-Za-z0-9]{{1,12}}(?:-[A-Za-z0-9]{{1,8}}){{0,3}}[#*]?{_END}"
)
# What letters among digits name otherwise: "an A1278", "model C220".
KIND_OF: Final = r"(?i)\b(?:an?|eine?[nmr]?|une?|una?) $"
# Digits and letters that alternate were made by chance.
RANDOM: Final = re.compile(r"[0-9][A-Za-z]+-?[0-9]|[A-Za-z][0-9]+[A-Za-z]|^[0-9]{3,5}[A-Z]$")
COMMIT: Final = re.compile(r"[0-9a-f]{7,40}")
# A year, and a round number, which is an amount.
ORDINARY: Final = re.compile(r"(?:19|20)[0-9]{2}|[0-9]+00")
_TURN: Final = (
    r"(?:right|left|rechts|links|derecha|izquierda|droite|gauche) (?:(?:to|auf|a|à) )?\d{1,2}"
)
# A word with both cases, digits and signs is a password, whatever is said around it.
VARIED: Final = re.compile(
    r"(?<![^\s(\"'“„‘:])(?=\S{0,30}?[a-zß-ÿ])(?=\S{0,30}?[A-ZÀ-Þ])(?=\S{0,30}?[0-9])"
    r"(?=\w{1,24}(?:[!?$&^~*]|%(?![0-9A-F]{2})))[\w!?$%&^~*-]{8,32}(?![\w/(){}<>=@]|[.:][\w/])"
    r"|(?<![\w-])(?=[0-9-]*[A-Z])(?=[A-Z-]*[0-9])[A-Z0-9]{4,5}(?:-[A-Z0-9]{4,5}){2,5}(?![\w-])"
    # The turns of a dial: "right 31, left 7, right 54".
    rf"|\b(?i:(?:{_TURN}(?:[,;]|,? (?:then|and|dann|und))? ){{2,4}}{_TURN})\b"
)
_UNLESS: Final = r"(?:(?!\b(?:{secret_unlike})\b)[^.!?\n\d]){0,70}?"
BEHIND_LOCK: Final = rf"(?i)(?:\b(?:{{secret_lock}})\b|{{~secret_lock}}){_UNLESS}$"
BEHIND_ENTRY: Final = rf"(?i)(?:\b(?:{{secret_entry}})\b|{{~secret_entry}}){_UNLESS}$"
BEFORE_ENTRY: Final = rf"(?i){_UNLESS}(?:\b(?:{{secret_entry}})\b|{{~secret_entry}})"
BEHIND_ACT: Final = rf"(?i)(?:\b(?:{{secret_act}})\b|{{~secret_act}}){_UNLESS}$"
BEFORE_ACT: Final = r"(?i)\W{0,3}(?:(?:{secret_act})\b|{~secret_act})"
UNLIKE: Final = (
    r"(?i)\b(?:{secret_unlike})(?: (?:code|number|nummer|código|numéro))?(?: (?:{secret_is}))?\W*$"
)
# In a list, or "the gate has a new lock, 66218".
LISTED: Final = r"(?i): $|\b(?:{secret_entry}), $"
# A word or a few that somebody is asked for: "my phone word, it's bluetick pancake".
NAMED_WORDS: Final = (
    r"(?P<before>(?i:\b(?:{secret_word})\b[^.!?\n\[]{0,50}?(?:\b(?:{secret_is})|[:=,?])[: ]{1,2}))"
    r"(?P<value>[^\W\d_]{3,20}(?: [^\W\d_]{2,20}){0,2})(?=[.,;!?)]|\s*$|\s(?i:and|und|y|et)\b)"
)
# An amount, a place, a time or a year.
DATED: Final = re.compile(
    r"(?i)(?:[$€£] ?|\b(?:at|um|gegen|version|room|chapter|port) )\d+$"
    r"|\b(?:in|since|until|by|of|from|around|seit|im|jahr|bis|von|en|desde|depuis|january|february"
    r"|march|april|may|june|july|august|september|october|november|december),? (?:19|20)\d\d$"
)
_APART: Final = r"[^.!?\n\d\[]{0,60}?[?]?(?:['’]s)?[:=→,(]?\s+(?:(?:it['’]?s|is) )?"
BEFORE_NUMBER: Final = (
    rf"(?i)(?:\b(?:(?:{{secret_number}}){_APART}|(?:{{secret_document}})\b(?:[^!\d\[]{{0,50}}?"
    rf"\b(?:{{secret_numbered}}){_APART}))|(?:{{~secret_number}}){_SAYS_UNSPACED})$"
)
# The number of a passport or licence that is named somewhere before it.
OF_DOCUMENT: Final = re.compile(r"(?=(?:[A-Z]*[0-9]){4})(?=[0-9]*[A-Z])[A-Z0-9]{7,12}")
DOCUMENT: Final = r"(?i)\b(?:{secret_document})\b"
BEFORE_LETTERS: Final = (
    r"(?i)\b(?:{secret_document})(?:['’]s|,|,? (?:{secret_is})(?: (?:the|die|der|el|le|la))?)?:? $"
)
# A card's number that has no check digit of an issuer, and the code on its back.
BEFORE_CARD: Final = r"(?i)\b(?:{card})\b[^.!?\n\d\[]{0,40}$"
BACK_OF_CARD: Final = r"(?i),? (?:{card_back})\b"


def is_card(written: str) -> bool:
    """Whether digits, with or without gaps, are a card number of a known issuer (Luhn)."""
    digits = re.sub(r"\D", "", written)
    if not _CARD_ISSUERS.fullmatch(digits) or len(set(digits)) < 2:
        return False
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(int(digit) for digit in digits[-1::-2])) % 10 == 0


def is_iban(written: str) -> bool:
    """Whether letters and digits are an account number by its check digits (ISO 7064)."""
    plain = written.replace(" ", "")
    digits = "".join(str(int(char, 36)) for char in plain[4:] + plain[:4])
    # The reference of an invoice begins with "RF", and has the same check digits.
    return not plain.startswith("RF") and int(digits) % 97 == 1
