"""The people, places, organizations, technologies and projects that a statement names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from .names import people
from .vocabulary import word_set

EntityType: TypeAlias = Literal[
    "person", "project", "technology", "place", "organization", "concept"
]

_NAME: Final = r"(?P<name>[A-Z][\w&.'’-]*\w(?: (?:(?:of|de|la|van|von) )?[A-Z][\w&'’-]*\w){0,3})"
_THING: Final = r"(?P<name>[A-Za-z][\w.+#-]*[\w+#])"
_PLACE: Final = re.compile(
    r"\b(?P<relation>lives? in|living in|lived in|(?:has )?(?:moved|relocated) to|(?:is )?based in"
    r"|was born in|born in|grew up in|visited|travel+ed to|flew to|went to|is from|comes? from)"
    rf" (?:the |downtown |central |sunny )?{_NAME}"
)
_EMPLOYER: Final = re.compile(
    r"\b(?P<relation>works? (?:at|for)|working (?:at|for)|worked (?:at|for)|employed (?:at|by)"
    rf"|joined|hired by|interns? at|studies at|studied at) (?:the )?{_NAME}"
)
_USES: Final = re.compile(
    r"\b(?P<relation>uses|use|using|prefers|prefer|likes|switch(?:es|ed)? to|migrat(?:es|ed) to"
    r"|moved to|deployed (?:to|on|with)|runs on|written in|built with|installed|go(?:ing)? with"
    rf"|chose|picked|decided (?:on|to use)|upgraded to|works with) {_THING}"
)
_PROJECTS: Final = (
    re.compile(r"\b[Pp]roject (?P<name>[A-Z][\w-]{2,})"),
    re.compile(
        r"\b(?:[Tt]he|our|[Mm]y|their) (?P<name>[A-Z][\w-]{2,}) (?:project|repo|repository|app)\b"
    ),
    re.compile(r"(?<![\w/.:-])(?P<name>[a-z][\w-]{1,38}/[A-Za-z][\w.-]{1,60})(?= repo)"),
)
_KIN: Final = re.compile(
    r"\b(?:[Mm]y|[Oo]ur|(?P<owner>[A-Z][\w-]*\w)['’]s?) (?P<relation>sister|brother|mother|father"
    r"|mom|dad|wife|husband|son|daughter|friend|boss|manager|partner|girlfriend|boyfriend|cousin"
    r"|colleague|dog|cat) (?:is (?:called |named )?|called |named )?(?P<name>[A-Z][\w-]*\w)"
)
_MARRIED: Final = re.compile(r"\b(?P<relation>(?:is )?(?:married|engaged) to) " + _NAME)
_ANY_THING: Final = re.compile(rf"(?<![\w.+#/-]){_THING}")
_TECHNOLOGIES: Final = word_set(
    "postgres postgresql mysql mariadb sqlite redis mongodb duckdb turso libsql kafka rabbitmq",
    "nats",
    "docker podman kubernetes k3s helm terraform ansible nginx caddy traefik haproxy systemd",
    "python rust go golang java kotlin scala typescript javascript ruby php elixir haskell swift",
    "c++ c# perl lua zig bash zsh fish react vue svelte angular nextjs node nodejs deno bun django",
    "flask fastapi rails laravel spring pytorch tensorflow jax numpy pandas litellm ollama vllm",
    "comfyui git github gitlab jenkins linux ubuntu debian arch fedora nixos windows macos android",
    "ios aws azure gcp s3 cloudflare vercel netlify grafana prometheus vim neovim emacs vscode",
    "cursor tmux figma notion slack discord jira aiohttp asyncio pytest mypy ruff webpack vite",
    "graphql grpc rest oauth jwt openai anthropic gpt claude gemini llama mistral whisper",
)
_SIMPLE: Final = {
    "live in": "lives_in", "living in": "lives_in", "born in": "born_in", "based in": "lives_in",
    "is based in": "lives_in", "has moved to": "moved_to", "has relocated to": "moved_to",
    "relocated to": "moved_to", "come from": "is_from", "comes from": "is_from",
    "work at": "works_at", "work for": "works_at", "works for": "works_at",
    "working at": "works_at", "working for": "works_at", "worked for": "worked_at",
    "employed at": "works_at", "employed by": "works_at", "hired by": "works_at",
    "married to": "married_to", "engaged to": "engaged_to", "is engaged to": "engaged_to",
    "is married to": "married_to", "use": "uses", "using": "uses", "prefer": "prefers",
    "going with": "uses", "go with": "uses", "chose": "uses", "picked": "uses",
    "decided on": "uses", "decided to use": "uses",
}  # fmt: skip
# Written small these are words of every day.
_EVERYDAY: Final = word_set(
    "go swift spring rest cursor fish arch rust rails bash node vue react bun flask helm notion",
    "slack whisper llama windows java ruby lua zig caddy discord claude vite",
)
_PATTERNS: Final[tuple[tuple[re.Pattern[str], EntityType], ...]] = (
    (_MARRIED, "person"),
    (_EMPLOYER, "organization"),
    (_USES, "technology"),
    (_PLACE, "place"),
    *((pattern, "project") for pattern in _PROJECTS),
    (_ANY_THING, "technology"),
)


class MentionedRelation(msgspec.Struct, frozen=True):
    """How something is related to another, by the other's name; `lives_in`."""

    relation: str
    target: str


class Mention(msgspec.Struct, frozen=True):
    """Something that a statement names, and what it says of it."""

    name: str
    type: EntityType
    relations: tuple[MentionedRelation, ...] = ()


def mentions(text: str, speaker: str = "") -> tuple[Mention, ...]:
    """The entities that `text` names, each once, its subject first.

    Args:
        text: one statement.
        speaker: who made it; what it says of "I" and "my" is theirs.
    """
    named = people(text, (speaker,) if speaker else ())
    types: dict[str, EntityType] = {}
    relations: dict[str, dict[MentionedRelation, None]] = {}
    about = _subject(text, named, speaker)
    if about:
        types[about] = "person"
    for kin in _KIN.finditer(text):
        types.setdefault(kin["name"], "concept" if kin["relation"] in {"dog", "cat"} else "person")
        owner = kin["owner"] or speaker
        if owner:
            types.setdefault(owner, "person")
            relations.setdefault(owner, {})[MentionedRelation(kin["relation"], kin["name"])] = None
        about = kin["name"] if kin.start() == 0 else about
    types.update((name, "person") for name in named if name not in types)
    for name, kind, relation in _found(text):
        types.setdefault(name, kind)
        if relation and about and name != about:
            relations.setdefault(about, {})[MentionedRelation(relation, name)] = None
    return tuple(
        Mention(name, kind, tuple(relations.get(name, ()))) for name, kind in types.items()
    )


def _subject(text: str, named: tuple[str, ...], speaker: str) -> str:
    """Whom a statement is about: who stands at its beginning, else who made it of themselves."""
    for name in named:
        if text.startswith(name):
            return name
    own = re.match(r"(?:I|My|We|Our|I['’]\w+|We['’]\w+)\b", text)
    return speaker if own else ""


def _found(text: str) -> Iterator[tuple[str, EntityType, str]]:
    """What the patterns find: a name, its type, and how the statement's subject relates to it."""
    for pattern, kind in _PATTERNS:
        for match in pattern.finditer(text):
            if (kind == "technology") == _is_technology(match["name"]):
                yield match["name"], kind, _relation(match)


def _relation(match: re.Match[str]) -> str:
    said = (match.groupdict().get("relation") or "").lower()
    return _SIMPLE.get(said, said.removeprefix("has ").replace(" ", "_"))


def _is_technology(name: str) -> bool:
    key = name.casefold()
    return key in _TECHNOLOGIES and (name != key or key not in _EVERYDAY)
