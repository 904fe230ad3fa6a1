"""Finds what is missing in a note: links, commands, next steps.

The three kinds of warnings and their texts are EvoClaw's, with fewer false alarms: code is not
searched for words, denied or questioned actions need no command, and one mention with a link is
enough for the whole note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from .metadata import extract
from .records import Omission, OmissionKind

# The distance of a link or command from its word in characters, extended to whole lines.
NEARBY: Final = 250
_SNIPPET_CHARS: Final = 50
# The number of mentions of each word that are checked.
_MENTIONS: Final = 50

_TOOLS: Final = (
    "ComfyUI|LTX-Video|LTX-2|Stable Diffusion|Automatic1111|InvokeAI|Fooocus|Ollama|LM Studio"
    "|llama\\.cpp|vLLM|Whisper|Piper|Coqui|Open WebUI|LangChain|LlamaIndex|AutoGPT|CrewAI|n8n"
    "|Home Assistant|Node-RED|Grafana|Prometheus|Portainer|Traefik|Caddy|Nextcloud|Jellyfin"
    "|Immich|Syncthing|Tailscale|Headscale|Pi-hole|AdGuard Home|Proxmox|TrueNAS|Kubernetes|k3s"
    "|Terraform|Ansible|Litestream|Qdrant|Milvus|Weaviate|ChromaDB|Turso|Supabase|PocketBase"
    "|OpenClaw|ClawHub|Playwright|Puppeteer|Selenium|Blender|FFmpeg|Unsloth|Axolotl"
)
_TOOL: Final = re.compile(rf"(?<![\w/.-])(?:{_TOOLS})(?![\w/-]|\.\w)", re.IGNORECASE)
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
    made = (match for match in _DECISION.finditer(words) if not _asked(words, match))
    decisions = _grouped(made, lambda match: match.group().casefold())
    found: list[Omission] = []
    for mentions in tools.values():
        if not any(extract(_around(text, match)).urls for match in mentions):
            name = mentions[0].group()
            message = f"Tool '{name}' mentioned without URL/documentation link"
            what = f"add the URL of {name} or of its documentation"
            found.append(_omission(text, "url", mentions[0], message, what))
    for action, mentions in actions.items():
        if not any(_COMMANDS.search(_around(text, match)) for match in mentions):
            message = f"Action '{action}' mentioned without command example"
            what = f"add the command in back quotes, such as `{_EXAMPLES[action]}`"
            found.append(_omission(text, "command", mentions[0], message, what))
    for mentions in decisions.values():
        if not any(_NEXT_STEP.search(_around(words, match)) for match in mentions):
            near = _snippet(text, mentions[0])
            message = f"Decision near '{near}...' may lack implementation details"
            what = "say what follows from it: the next step, who takes it, by when"
            found.append(_omission(text, "next_step", mentions[0], message, what))
    return found


def _omission(
    text: str, kind: OmissionKind, match: re.Match[str], message: str, what: str
) -> Omission:
    line = text.count("\n", 0, match.start()) + 1
    return Omission(kind, message, line, f"line {line}: {what}")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def _grouped(
    found: Iterator[re.Match[str]], key: Callable[[re.Match[str]], str]
) -> dict[str, list[re.Match[str]]]:
    groups: dict[str, list[re.Match[str]]] = {}
    for match in found:
        group = groups.setdefault(key(match), [])
        if len(group) < _MENTIONS:
            group.append(match)
    return groups


def _is_done(words: str, match: re.Match[str]) -> bool:
    before = words[max(0, match.start() - 30) : match.start()]
    return _NO_ACTION.search(before) is None and not _asked(words, match)


def _asked(words: str, match: re.Match[str]) -> bool:
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
