"""The verbs with a summary each, as data: listing them must not import their modules."""

from __future__ import annotations

from typing import Final

VERBS: Final = {
    "daemon": "run the daemon in the foreground",
    "store": "store a memory",
    "retrieve": "search the memories, best match first",
    "context": "print what the agent reads before its turn",
    "get": "show one memory",
    "list": "list memories, newest first",
    "update": "change a memory",
    "forget": "delete memories for good",
    "merge": "merge a memory into another that says the same",
    "unmerge": "undo a merge",
    "history": "show earlier versions of memories, and values that lost a conflict",
    "undo": "restore an earlier version, or undo what a writer changed",
    "tidy": "merge duplicates, mark contradicted memories, archive faded ones",
    "consolidate": "run the upkeep now: score, archive, read notes, prune, merge, rebuild",
    "ingest-daily": "store the facts in the daily notes",
    "validate": "find what a note lacks: URLs, commands, next steps",
    "hot": "show or change the hot state, which is always in the agent's context",
    "tree": "show or change the tree of categories",
    "cold": "search the archive",
    "index": "watch Markdown and text files, and search them",
    "kv": "get, set, delete or list key-value pairs",
    "knowledge": "show the agent's knowledge, or propose lines to drop",
    "reflect": "list what the agent has learned, or add to it",
    "episode": "list summaries of conversations, or add one",
    "skill": "list, show or add skills",
    "experiences": "find, list, add, use or prune experiences and preferences",
    "graph": "show the people and things that memories name, and how they are related",
    "sessions": "open, list, archive or replay sessions of work",
    "search-url": "list stored URLs, or the memories that mention a URL",
    "distill": "condense a text to its facts",
    "observe": "keep what is worth remembering of a conversation, or its turns",
    "extract-metadata": "show the URLs, commands and paths in a file",
    "backup": "save all of an agent's memory in one file",
    "restore": "restore memories from the replica or a file, or verify that it would work",
    "import": "import the memory of another system, a state file, MEMORY.md, or a backup",
    "export": "write all rows as lines of JSON",
    "metrics": "show counters and sizes",
    "agents": "list the agents that have a memory",
    "sync": "show the state of replication, or replicate now",
    "sync-critical": "send the hot state and the tree now, as EvoClaw does",
    "devices": "list the devices that share the memory, or retire one",
    "upkeep": "show the upkeep schedule",
    "status": "show the state of the daemon, problems first",
    "config": "show the effective configuration, or check it",
    "connect": "connect Claude Code, Codex and other programs to this memory",
    "mcp": "serve the memory's tools to an MCP client on standard streams",
    "hook": "handle an event of an agent's session, or switch the memory for a project",
    "doctor": "find what is wrong on this device, and say what to do",
    "install": "install the daemon as a systemd service, for the system or for you",
    "uninstall": "remove the systemd service; memories and settings are kept",
    "completion": "print the command completion for a shell",
    "tui": "view and change the memory in the terminal",
    "events": "print events as they happen, until Ctrl-C",
}
_SEARCH: Final = "search the memories with: thermocline retrieve QUERY"
_STORE: Final = "store a memory with: thermocline store TEXT"
# Verbs of other systems, and what is meant by them.
MEANT: Final = {
    "recall": _SEARCH,
    "search": _SEARCH,
    "ask": _SEARCH,
    "find": _SEARCH,
    "remember": _STORE,
    "add": _STORE,
}
# Verbs that share a module; every other verb has a module of its name.
_MODULES: Final = {
    "agents": "status",
    "devices": "sync",
    "episode": "own_files",
    "export": "backup",
    "extract-metadata": "notes",
    "get": "list",
    "import": "import_",
    "ingest-daily": "consolidate",
    "knowledge": "own_files",
    "reflect": "own_files",
    "search-url": "list",
    "skill": "own_files",
    "sync-critical": "sync",
    "tidy": "merge",
    "uninstall": "install",
    "undo": "history",
    "unmerge": "merge",
    "update": "store",
    "upkeep": "consolidate",
    "validate": "notes",
}


def module_of(verb: str) -> str:
    """The module with a verb's `run_VERB` and, if it has options, `add_VERB`.

    `run_VERB(args, client)` returns what a person reads: a line, or a function that prints it. With
    `--json` the daemon's answer is printed in its place. A verb with another output prints it by
    itself, and returns None or an exit code.
    """
    return "." + _MODULES.get(verb, verb.replace("-", "_"))
