"""The verbs: the module of each, and what it does. Listing them must not import their modules."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from .usage import Verb

VERBS: Final = {
    "daemon": ("local", "run the daemon in the foreground"),
    "store": ("memories", "store a memory"),
    "retrieve": ("recall", "search the memories, best match first"),
    "context": ("recall", "print what the agent reads before its turn"),
    "get": ("memories", "show one memory"),
    "list": ("memories", "list memories, newest first"),
    "update": ("memories", "change a memory"),
    "forget": ("changes", "delete memories for good"),
    "merge": ("changes", "merge a memory into another that says the same"),
    "unmerge": ("changes", "undo a merge"),
    "history": ("changes", "show earlier versions of memories, and values that lost a conflict"),
    "undo": ("changes", "restore an earlier version, or undo what somebody changed"),
    "tidy": ("changes", "merge duplicates, mark contradicted memories, archive faded ones"),
    "consolidate": (
        "upkeep",
        "run the upkeep now: score, archive, read notes, prune, merge, rebuild",
    ),
    "ingest-daily": ("upkeep", "store the facts in the daily notes"),
    "validate": ("conversations", "find what a note lacks: URLs, commands, next steps"),
    "hot": ("tiers", "show or change the hot state, which is always in the agent's context"),
    "workspace": ("tiers", "show where MEMORY.md is, or take the daemon's section out of it"),
    "tree": ("tiers", "show or change the tree of categories"),
    "cold": ("memories", "search the archive"),
    "index": ("tiers", "watch Markdown and text files, and search them"),
    "kv": ("tiers", "get, set, delete or list key-value pairs"),
    "knowledge": ("learning", "show the agent's knowledge"),
    "reflect": ("learning", "list what the agent has learned, or add to it"),
    "episode": ("learning", "list summaries of conversations, or add one"),
    "skill": ("learning", "list, show or add skills"),
    "experiences": ("learning", "search, list, add, use or prune experiences and preferences"),
    "graph": (
        "learning",
        "show the people and things that memories name, and how they are related",
    ),
    "sessions": ("learning", "open, list or archive sessions of work"),
    "search-url": ("memories", "list the memories that mention a URL"),
    "distill": ("conversations", "condense a text to its facts"),
    "observe": ("conversations", "keep what is worth remembering of a conversation, or its turns"),
    "extract-metadata": ("conversations", "show the URLs, commands and paths in a file"),
    "backup": ("archive", "save all of an agent's memory in one file"),
    "restore": (
        "restore",
        "restore memories from the replica or a file, or verify that it would work",
    ),
    "provision": ("provision", "make a database in the cloud for an owner of devices"),
    "import": (
        "import_",
        "import the memory of another system, a state file, MEMORY.md, or a backup",
    ),
    "export": ("archive", "write all rows as lines of JSON"),
    "metrics": ("status", "show counters and sizes"),
    "agents": ("status", "list the agents that have a memory"),
    "sync": ("upkeep", "show the state of replication, or replicate now"),
    "sync-critical": ("upkeep", "send the hot state and the tree now, as EvoClaw does"),
    "devices": ("upkeep", "list the devices that share the memory, or retire one"),
    "seal": ("sealing", "let only your devices read the replica, or show whether it is so"),
    "pair": ("sealing", "give another device the keys of a sealed replica"),
    "join": ("sealing", "take the keys from a device that shows a code"),
    "upkeep": ("upkeep", "show the upkeep schedule"),
    "status": ("status", "show the state of the daemon, problems first"),
    "config": ("local", "show the effective configuration, or check it"),
    "encoder": ("models", "try the model that encodes texts as vectors, and say what it costs"),
    "connect": ("connect", "connect Claude Code, Codex and other programs to this memory"),
    "mcp": ("local", "serve the memory's tools to an MCP client on standard streams"),
    "hook": ("local", "handle an event of an agent's session, or switch the memory for a project"),
    "doctor": ("local", "find what is wrong on this device, and say what to do"),
    "install": ("install", "install the daemon as a systemd service, for the system or for you"),
    "uninstall": ("install", "remove the systemd service; memories and settings are kept"),
    "completion": ("completion", "print the command completion for a shell"),
    "tui": ("local", "view and change the memory in the terminal"),
    "events": ("status", "print events as they happen, until Ctrl-C"),
}
_SEARCH: Final = "search the memories with: thermocline retrieve QUERY"
_STORE: Final = "store a memory with: thermocline store TEXT"
_FORGET: Final = "delete memories for good with: thermocline forget ID"
# Verbs of other systems, and the verb that does the same.
_RUN: Final = "run the daemon with: thermocline daemon"
MEANT: Final = {
    "recall": _SEARCH,
    "search": _SEARCH,
    "ask": _SEARCH,
    "find": _SEARCH,
    "remember": _STORE,
    "add": _STORE,
    "delete": _FORGET,
    "remove": _FORGET,
    "rm": _FORGET,
    "erase": _FORGET,
    "start": _RUN,
    "run": _RUN,
    "serve": _RUN,
    "restart": _RUN,
    "stop": "end the daemon with Ctrl-C where it runs, or stop its service with systemctl",
    "show": "show a memory with: thermocline get ID",
    "edit": "change a memory with: thermocline update ID",
}


def load(verb: str) -> Verb:
    """The declaration of a verb, in `VERBS` of its module."""
    module = import_module(f".{VERBS[verb][0]}", __package__)
    declared: Verb = module.VERBS[verb]
    return declared
