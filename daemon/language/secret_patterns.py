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
    r"|(?:sk|rk|pk)_(?:[a-z]{2,16}_)?(?=[A-Za-z]{0,64}\d)(?=[a-z0-9]{0,64}[A-Z])[A-Za-z0-9]{12,255}"
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
# A search skips what cannot begin a match if that is read before what must not stand before it.
CARD: Final = re.compile(
    r"[0-9](?<![\w.+/=-].)(?:[0-9]{12,18}|[0-9]{3}(?:[ -][0-9]{4}){3}"
    r"|(?<=3)[0-9]{3}[ -][0-9]{6}[ -][0-9]{5})(?![\w/=-]|\.[0-9])"
)
_CARD_ISSUERS: Final = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7])[0-9]{14}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:6011|65[0-9]{2}|64[4-9][0-9]|35[2-8][0-9])[0-9]{12}"
)
IBAN: Final = re.compile(
    r"[A-Z](?<![A-Za-z0-9].)[A-Z][0-9]{2}"
    r"(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)(?![A-Za-z0-9])"
)


def assigned() -> re.Pattern[str]:
    """A secret in the notations of programs: "password = …", "Passwort: …"."""
    names = f"{either('secret_name')}|{either('secret_name', spaced=False)}|{_NAMES}"
    begin = _BEGINNINGS.union(
        name[0] for name in (*each("secret_name"), *each("secret_name", spaced=False))
    )
    return re.compile(
        rf"(?=[{re.escape(''.join(begin))}])(?P<before>(?P<name>{names})"
        r"(?:[_-]?(?:[0-9]{1,3}|prod|dev|test|value))?[\"'`]?\]?"
        rf"(?P<how>{_SEPARATOR}|[ ](?=[\"'`])))(?:{VALUE})",
        re.IGNORECASE,
    )


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
# A password in words, by how it is spelled: "all one word, lower case"; and the same again.
SPELLED: Final = (
    r"(?P<before>(?i:\b(?:{secret_is}))[: ]\s?)(?P<value>(?:[^\W_][\w'’-]* ){0,5}[^\W_][\w'’-]*)"
    r"(?=,? (?i:{spelled})\b)"
)
SPELLED_AGAIN: Final = re.compile(
    r"(?P<before>\[password removed\][^.!?\n]{0,80}?(?:->|→|=|:|\bso) )"
    r"(?P<value>(?=\w*[^\W\d_])(?=\w*\d)\w{6,64})"
)
SOCIAL_SECURITY: Final = re.compile(r"[0-9](?<![\w.+-].)[0-9]{2}-[0-9]{2}-[0-9]{4}(?![\w-])")
_TURN: Final = (
    r"(?:right|left|rechts|links|derecha|izquierda|droite|gauche) (?:(?:to|auf|a|à) )?\d{1,2}"
)
_NUMBER_WORD: Final = (
    r"(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[ -](?:one|two|three|four|five"
    r"|six|seven|eight|nine))?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen|\d{1,2})"
)
# The turns of a dial as they are dictated: "thirty-one left nine right fifty-two left".
TURNS_IN_WORDS: Final = re.compile(
    rf"(?i)(?<![\w-])(?:{_NUMBER_WORD} (?:to the )?(?:left|right)"
    r"(?:,? (?:then|and))? ?){3,5}(?<! )"
)
# A word with both cases, digits and signs is a password, whatever is said around it.
VARIED: Final = re.compile(
    r"(?<![^\s(\"'“„‘:])(?=\S{0,30}?[a-zß-ÿ])(?=\S{0,30}?[A-ZÀ-Þ])(?=\S{0,30}?[0-9])"
    r"(?=\w{1,24}(?:[!?$&^~*]|%(?![0-9A-F]{2})))[\w!?$%&^~*-]{8,32}(?![\w/(){}<>=@]|[.:][\w/])"
    r"|(?<![\w-])(?=[0-9-]*[A-Z])(?=[A-Z-]*[0-9])[A-Z0-9]{4,5}(?:-[A-Z0-9]{4,5}){2,5}(?![\w-])"
    # The turns of a dial: "right 31, left 7, right 54".
    rf"|\b(?i:(?:{_TURN}(?:[,;]|,? (?:then|and|dann|und))? ){{2,4}}{_TURN})\b"
)


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
