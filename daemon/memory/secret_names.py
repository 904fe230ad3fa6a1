"""Secrets that are told by what stands before them: a name, a header, a flag, a question.

What is found here is only a candidate; `secrets` judges whether the value is one.
"""

from __future__ import annotations

import re
from typing import Final

IN_URL: Final = re.compile(
    r"(?P<before>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s/:@\"'`<>]{0,128}:)"
    r"(?P<value>[^\s/@\"'`<>]{1,256})(?=@[^\s@])"
)
# A token in the place of a user: https://ghp_…@github.com.
USER_IN_URL: Final = re.compile(
    r"(?P<before>(?<![A-Za-z0-9])https?://)(?P<value>(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{20,256})"
    r"(?=@[A-Za-z0-9])"
)
# Signatures and keys in the query of a URL, beyond those whose names say what they are.
QUERY: Final = re.compile(
    r"(?P<before>[?&;](?:sig|signature|appid|app_id|key|apikey|auth|x-amz-signature"
    r"|x-amz-security-token|x-goog-signature)=)(?P<value>[A-Za-z0-9%._~+/-]{16,4096})",
    re.IGNORECASE,
)
HEADER: Final = re.compile(
    r"(?P<before>(?:\bauthorization[\"']?\s?[:=]\s?[\"']?)?\b(?:bearer|basic|token|apikey)\s{1,3}"
    r"|\bauthorization[\"']?\s?[:=]\s?[\"']?|\b(?:api|access|secret|global|license|auth|account"
    r"|master|signing|service role)[ _-]?key:?\s|\b(?:password|passphrase|auth ?token|authkey"
    # Whatever the key is for; a hash has no letters of both cases.
    r"|(?:client|api|app) secret):?\s|\bkey(?::\s|[\s=])(?=(?-i:\S{0,64}[a-z]))"
    r"(?=(?-i:\S{0,64}[A-Z]))(?=[A-Za-z0-9]{24,}(?![\w./:-])))(?P<value>[A-Za-z0-9._~+/=-]{12,4096})",
    re.IGNORECASE,
)
COOKIE: Final = re.compile(
    r"(?P<before>\b(?:set-)?cookie:\s?)(?P<value>[^\s=;\"']{1,64}=[^\n\"']{16,4096})", re.IGNORECASE
)
_NAMES: Final = (
    r"passw(?:or)?d|passphrase|passwort|kennwort|contraseña|mot de passe|пароль|密码|密碼"
    r"|パスワード|비밀번호|heslo|hasło|senha|wachtwoord|lösenord|clé api"
    r"|(?<![A-Za-z])pass|(?<![A-Za-z])pwd?|(?<![A-Za-z])psk|pre-?shared[_-]?key"
    r"|(?:client|app|shared|webhook|consumer)?[_-]?secret(?:[_-]?(?:access[_-]?)?key)?(?:_base)?"
    r"|(?:api|access|auth|account|(?<![A-Za-z])app|application|network|private|signing|encryption|master|license)"
    r"[_ -]?key|token"
)
_SEPARATOR: Final = r"[ \t]{0,4}(?::=|=>|->|→|=(?!=)|[:：])[ \t]{0,4}"
# "The password for the guest network is …".
_OF: Final = r"(?P<of> (?:for|of|to|del?|de la|du|vom?|für|fürs|para|pour)(?: [\w'-]{1,20}){1,3}?)?"
VALUE: Final = (
    r"(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{3,1024})(?P=quote)|(?P<bare>[^\s\"'`,;<>|]{4,1024})"
)
ASSIGNED: Final = re.compile(
    rf"(?P<before>(?P<name>{_NAMES})(?:[_-]?(?:[0-9]{{1,3}}|prod|dev|test|value))?[\"'`]?\]?"
    rf"(?P<how>{_OF}(?:{_SEPARATOR}|[ ](?:is|was|ist|lautet|est|es|è)"
    r"(?: now| jetzt| ahora| maintenant| changed to| set to)?:?[ ])"
    rf"|[ ](?:changed )?to[ ]|[ ](?=[\"'`])))(?:{VALUE})",
    re.IGNORECASE,
)
# Scripts without blanks say "is" with a syllable, and go on right after the value.
ASSIGNED_UNSPACED: Final = re.compile(
    r"(?P<before>(?:密码|密碼|口令|パスワード|暗証番号|비밀번호)\s?(?:是|为|為|は|는|은)\s?)"
    r"(?P<value>(?=[!-~]{0,64}[0-9])[!-~]{4,256})"
)
IN_XML: Final = re.compile(
    r"(?P<before><[\w:.-]{0,30}(?:passw(?:or)?d|passphrase|secret|token|api-?key)>)"
    r"(?P<value>[^\s<>]{4,256})(?=</)",
    re.IGNORECASE,
)
# Of several words, or of digits alone: only their names give them away.
PHRASE: Final = re.compile(
    r"(?P<before>\b(?i:(?:seed|recovery|backup) (?:phrase|words)|mnemonic)(?:(?i: is)|\s?[:=])\s*)"
    r"(?P<words>(?:[a-z]{3,8}\s){11,23}[a-z]{3,8}\b)"
    r"|(?P<before_code>\b(?i:(?:recovery|backup|rescue) codes?)(?:(?i: is)|\s?[:=])?\s+)"
    r"(?P<code>(?=[a-z-]{0,24}[0-9])[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{4,12}){1,7})"
    r"|(?P<before_pin>\bPIN(?:(?i: is| lautet| ist| code)|\s?[:=])\s?)(?P<pin>[0-9]{4,8})(?![\w.-])"
)
FLAG: Final = re.compile(
    r"(?P<before>(?<!\S)--?(?:[a-z]{1,12}-)?(?:password|passwd|passphrase|token|secret"
    r"|api-?key)[ =]"
    r"|\bsshpass -p ?|\bdocker login [^\n]{0,80}-p ?|\bmysql(?:dump|admin)?\s[^\n]{0,80}?(?<=\s)-p"
    rf"|\bcurl (?:-[^\s]{{1,12}} ){{0,4}}-u ?[^\s:]{{1,64}}:)(?:{VALUE})",
    re.IGNORECASE,
)
# Stands for a value, or names where it is.
PLACEHOLDER: Final = re.compile(
    r"[<\[{(*$%@#_.…•]|![a-z]+\W*$|[xX]{3,}|[/~]|\.{1,2}/|[A-Z]:\\|[A-Za-z]+\[|(?:none|null|nil"
    r"|true|false|yes|no|str|string"
    r"|int|bool|bytes|object|any|optional|required|missing|invalid|expired|unknown|empty|unset|set"
    r"|changed|hidden|redacted|removed|cleared|wrong|incorrect|correct|weak|strong|valid|secure"
    r"|not|the|a|an|my|your|our|in|on|at|for|to|from|with|and|or|of|is|was|must|should|can|may|will"
    r"|use|see|stored|saved|kept|needed|protected|encrypted|reset|default|changeme|undefined|wpa[0-9]?"
    r"|authentication|based|count|limit|basic|bearer|still|now|too|very|old|new)\W*$"
    r"|(?:https?|file|ssh|git)://|[a-z]\w*\(|(?:my|your|the|new|old|user|api|auth|access|db)?[_-]?"
    r"(?:password|token|secret|api_?key|key)s?\W*$|(?!\S{0,40}[0-9]\S{0,40}[0-9]\S{0,40}[0-9])"
    r"[A-Za-z_]\w{0,30}(?:\.[A-Za-z_]\w{0,30})+(?:\(|\[|\W*$)"
    r"|.*(?:environ|getenv|process\.env|secrets?\.|vault|\$\{|\{\{|\(\))",
    re.IGNORECASE,
)
