"""Extracts the references of a text (URLs, shell commands, paths), and finds what a note lacks.

The rules and the caps are EvoClaw's, including its quirk that a line that begins with a known tool
is kept without the tool's name. No pattern backtracks: quantifiers are possessive where they
could. The patterns for URLs and paths read only words that may contain one, which makes ordinary
text several times faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from .records import Metadata, Omission, OmissionKind

MAX_URLS: Final = 10
MAX_COMMANDS: Final = 5
MAX_PATHS: Final = 10

# A longer match is data, not a reference.
_LONGEST: Final = 2_048

# Only names that do not also begin English sentences ("make sure", "go to", "find out").
_TOOLS: Final = (
    "ansible|apt|apt-get|aws|az|brew|bun|bundle|cargo|cd|chmod|chown|clawhub|cmake|composer|conda"
    "|cp|curl|deno|dnf|docker|docker-compose|ffmpeg|flatpak|gcloud|gem|gh|git|gradle|helm|htop"
    "|journalctl|kubectl|ls|mkdir|mv|mvn|node|npm|npx|openssl|pacman|pip|pip3|pipx|pnpm|podman"
    "|poetry|psql|pytest|python|python3|rm|rsync|ruby|rustup|scp|sed|sqlite3|ssh|sudo|systemctl"
    "|tar|terraform|tmux|turso|unzip|uv|wget|yarn|yum"
)

# Round brackets may belong to a URL; quotes, square brackets and CJK punctuation end it.
_URL_CHARS: Final = r"[^\s<>\"`\[\]{}|\\^\u3000-\u303f\uff00-\uff0f\uff1a-\uff20]"
_URL: Final = re.compile(
    rf"(?<![A-Za-z0-9_])(?:https?://|www\.)(?=[^\W_]){_URL_CHARS}++"
    r"|(?<![a-z0-9_\u00c0-\u024f@./:~-])(?:[a-z0-9-]++\.)+(?:com|org|ai|io|net|dev|app|studio|co)(?![\w@-]|\.\w)"
    rf"(?::[0-9]{{1,5}})?(?:[/?#]{_URL_CHARS}*+)?",
    re.IGNORECASE,
)
# At the start of a line.
_LINE: Final = (
    r"[ \t]*+\$[ ]++(?P<prompt>[^\n]++)"
    rf"|[ \t]*+(?:sudo[ \t]++)?(?:{_TOOLS})[ \t]++(?P<tool>[^\n]++)"
)
_LINE_COMMAND: Final = re.compile(_LINE)
_COMMAND: Final = re.compile(
    rf"(?<!`)(?P<fence>`{{1,3}}+)(?P<quoted>[^`\n]++)(?P=fence)(?!`)|\A(?:{_LINE})"
)
_SEGMENT: Final = r"[\w.@+%=,-]++"
_PATH: Final = re.compile(
    rf"(?<![\w.@+%,~<:/-])(?:(?:~|\.\.?)(?:/{_SEGMENT})++|(?:/{_SEGMENT}){{2,}}+)/?"
)


def extract(text: str) -> Metadata:
    """The first 10 URLs, 5 commands and 10 paths of `text`, in order, without repeats.

    Takes time linear in the length of the text: about 30 ms for a megabyte of prose.
    """
    words = " ".join(word for word in text.split() if "/" in word or "." in word[:-1])
    return Metadata(
        urls=_first(_urls(words), MAX_URLS),
        commands=_first(_commands(text), MAX_COMMANDS),
        paths=_first(_paths(words), MAX_PATHS),
    )


def merge(metadata: Metadata, other: Metadata) -> Metadata:
    """The references of `metadata`, then those of `other`, which alone are capped."""
    return Metadata(
        urls=tuple(dict.fromkeys(metadata.urls + other.urls[:MAX_URLS])),
        commands=tuple(dict.fromkeys(metadata.commands + other.commands[:MAX_COMMANDS])),
        paths=tuple(dict.fromkeys(metadata.paths + other.paths[:MAX_PATHS])),
    )


def within(metadata: Metadata, text: str) -> Metadata:
    """The references that stand in `text`, at most 16 of each kind: others are invented."""
    return Metadata(
        *(
            _first((value for value in map(str.strip, values) if value and value in text), 16)
            for values in (metadata.urls, metadata.commands, metadata.paths)
        )
    )


def _first(values: Iterable[str], number: int) -> tuple[str, ...]:
    first: dict[str, None] = {}
    for value in values:
        first[value] = None
        if len(first) == number:
            break
    return tuple(first)


def _urls(text: str) -> Iterator[str]:
    for match in _URL.finditer(text):
        url = _without_trailing(match.group())
        if len(url) <= _LONGEST:
            yield url


def _without_trailing(url: str) -> str:
    """The URL without trailing punctuation; a bracket stays if it was opened inside."""
    surplus = url.count(")") - url.count("(")
    end = len(url)
    while end:
        last = url[end - 1]
        if last == ")" and surplus > 0:
            surplus -= 1
        elif last not in ".,;:!?'*(":
            break
        end -= 1
    return url[:end]


def _commands(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if "`" in line:
            yield from filter(None, map(_command, _COMMAND.finditer(line)))
        elif (match := _LINE_COMMAND.match(line)) and (command := _command(match)):
            yield command


def _command(match: re.Match[str]) -> str:
    command = (match[match.lastgroup or 0]).strip()
    return command if 4 <= len(command) <= 199 else ""


def _paths(text: str) -> Iterator[str]:
    if "/" not in text:
        return
    for match in _PATH.finditer(_URL.sub(" ", text)):
        path = match.group().rstrip(".,")
        if 5 < len(path) <= _LONGEST:
            yield path


# The distance of a link or command from its word in characters, extended to whole lines.
NEARBY: Final = 250
_SNIPPET_CHARS: Final = 50
# The number of mentions of each word that are checked.
_MENTIONS: Final = 50

_TOOL_NAMES: Final = (
    "ComfyUI|LTX-Video|LTX-2|Stable Diffusion|Automatic1111|InvokeAI|Fooocus|Ollama|LM Studio"
    "|llama\\.cpp|vLLM|Whisper|Piper|Coqui|Open WebUI|LangChain|LlamaIndex|AutoGPT|CrewAI|n8n"
    "|Home Assistant|Node-RED|Grafana|Prometheus|Portainer|Traefik|Caddy|Nextcloud|Jellyfin"
    "|Immich|Syncthing|Tailscale|Headscale|Pi-hole|AdGuard Home|Proxmox|TrueNAS|Kubernetes|k3s"
    "|Terraform|Ansible|Litestream|Qdrant|Milvus|Weaviate|ChromaDB|Turso|Supabase|PocketBase"
    "|OpenClaw|ClawHub|Playwright|Puppeteer|Selenium|Blender|FFmpeg|Unsloth|Axolotl"
)
_TOOL: Final = re.compile(rf"(?<![\w/.-])(?:{_TOOL_NAMES})(?![\w/-]|\.\w)", re.IGNORECASE)
_ACTION: Final = re.compile(
    r"(?<![\w/.-])(?:(?P<download>download(?:s|ed|ing)?)|(?P<install>(?:re)?install(?:s|ed|ing)?)"
    r"|(?P<configure>(?:re)?configur(?:e[sd]?|ing))|(?P<setup>set(?:ting)?[ -]?up)"
    r"|(?P<deploy>(?:re)?deploy(?:s|ed|ing)?))(?![\w/-])",
    re.IGNORECASE,
)
_DECISION: Final = re.compile(
    r"(?<![\w-])(?:decided|chose|selected|will use)(?![\w-])", re.IGNORECASE
)
_NEXT_STEP: Final = re.compile(
    r"(?<![\w-])(?:next|todo|to-do|steps?|then|implement(?:s|ed|ing|ation)?|plan(?:s|ned)?|action"
    r"|follow[ -]?up|tomorrow|deadline|due|owner|assigned|start(?:s|ed|ing)?|until|by"
    r"|migrat(?:e|ed|ing)|creat(?:e|ed|ing)|add(?:ed|ing)?|need(?:s|ed)?|will(?! use)|going to)"
    r"(?![\w-])|\[ \]|→|->",
    re.IGNORECASE,
)
# Before a noun, or an action that was not done: "the download", "no need to install".
_NO_ACTION: Final = re.compile(
    r"(?:\b(?:the|a|an|this|that|my|our|your|their|its|each|every)|\b(?:not|never|without|cannot)"
    r"(?: \w+)?|n['’]t(?: \w+)?|\bno (?:need|reason) to)\s+$",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n(?:(?![ \t]*\1)[^\n]*+\n?)*+(?:[ \t]*+\1[^\n]*+)?",
    re.MULTILINE,
)
_SPAN: Final = re.compile(r"(?<!`)`[^`\n]+`(?!`)|<!--[^>]{0,2000}-->")
_SENTENCE_START: Final = re.compile(
    r"[.!?。](?:\s+|$)|\n|(?:^|(?<=\n))[ \t]*(?:[-*+]|\d+[.)])[ \t]+(?:\[.\][ \t]+)?"
)
_COMMANDS: Final = re.compile(r"`[^`\n]{2,}`|^[ \t]*\$ \S|^[ \t]*(?:```|~~~)", re.MULTILINE)
_EXAMPLES: Final[Mapping[str, str]] = {
    "download": "curl -LO https://…",
    "install": "pip install …",
    "configure": "nano ~/.config/…",
    "setup": "make setup",
    "deploy": "docker compose up -d",
}


def validate(text: str) -> list[Omission]:
    """The omissions of the note `text`, once for each tool, action and kind of decision.

    Ordered as tools, actions, decisions; their number is the exit code of the command.
    """
    words = _SPAN.sub(_blank, _FENCE.sub(_blank, text))
    tools = _grouped(_TOOL.finditer(words), lambda match: match.group().casefold())
    done = (match for match in _ACTION.finditer(words) if _is_done(words, match))
    actions = _grouped(done, lambda match: match.lastgroup or "")
    made = (match for match in _DECISION.finditer(words) if not _is_question(words, match))
    decisions = _grouped(made, lambda match: match.group().casefold())
    omissions: list[Omission] = []
    for mentions in tools.values():
        if not any(extract(_around(text, match)).urls for match in mentions):
            name = mentions[0].group()
            message = f"Tool '{name}' mentioned without URL/documentation link"
            what = f"add the URL of {name} or of its documentation"
            omissions.append(_omission(text, "url", mentions[0], message, what))
    for action, mentions in actions.items():
        if not any(_COMMANDS.search(_around(text, match)) for match in mentions):
            message = f"Action '{action}' mentioned without command example"
            what = f"add the command in back quotes, such as `{_EXAMPLES[action]}`"
            omissions.append(_omission(text, "command", mentions[0], message, what))
    for mentions in decisions.values():
        if not any(_NEXT_STEP.search(_around(words, match)) for match in mentions):
            near = _snippet(text, mentions[0])
            message = f"Decision near '{near}...' may lack implementation details"
            what = "say what follows from it: the next step, who takes it, by when"
            omissions.append(_omission(text, "next_step", mentions[0], message, what))
    return omissions


def _omission(
    text: str, kind: OmissionKind, match: re.Match[str], message: str, what: str
) -> Omission:
    line = text.count("\n", 0, match.start()) + 1
    return Omission(kind, message, line, f"line {line}: {what}")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def _grouped(
    matches: Iterator[re.Match[str]], key: Callable[[re.Match[str]], str]
) -> dict[str, list[re.Match[str]]]:
    groups: dict[str, list[re.Match[str]]] = {}
    for match in matches:
        group = groups.setdefault(key(match), [])
        if len(group) < _MENTIONS:
            group.append(match)
    return groups


def _is_done(words: str, match: re.Match[str]) -> bool:
    before = words[max(0, match.start() - 30) : match.start()]
    return _NO_ACTION.search(before) is None and not _is_question(words, match)


def _is_question(words: str, match: re.Match[str]) -> bool:
    end = re.search(r"[.!?\n]", words[match.end() : match.end() + NEARBY])
    return end is not None and end.group() == "?"


def _around(text: str, match: re.Match[str]) -> str:
    start = text.rfind("\n", 0, max(0, match.start() - NEARBY)) + 1
    end = text.find("\n", min(len(text), match.end() + NEARBY))
    end = len(text) if end < 0 else end
    return text[max(start, match.start() - 2 * NEARBY) : min(end, match.end() + 2 * NEARBY)]


def _snippet(text: str, match: re.Match[str]) -> str:
    start = max(0, match.start() - _SNIPPET_CHARS)
    for end in _SENTENCE_START.finditer(text, start, match.start()):
        start = end.end()
    line = text[start : start + max(_SNIPPET_CHARS, match.end() - start)]
    return line.split("\n", 1)[0].strip()
