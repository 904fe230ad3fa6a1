"""The verbs and what each does, as data: naming them must not import them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

VERBS: Final = {
    "daemon": "run the daemon in the foreground",
    "store": "remember a text",
    "retrieve": "search the memories, best match first",
    "get": "show one memory",
    "list": "list memories, newest first",
    "update": "change a memory",
    "forget": "delete memories for good",
    "merge": "retire a memory into another that says the same",
    "unmerge": "bring a merged memory back",
    "history": "show the versions that a memory had, and what lost a conflict",
    "undo": "put back what a memory said before, or what a writer changed",
    "tidy": "merge what repeats, mark what is contradicted, archive what has faded",
    "consolidate": "do the upkeep now: score, archive, take in notes, prune, merge, rebuild",
    "ingest-daily": "remember what the daily notes say",
    "validate": "find what a note leaves out: URLs, commands, next steps",
    "hot": "show or change the hot state, which is always in the agent's context",
    "tree": "show or change the tree of categories",
    "cold": "search the archive",
    "kv": "get, set, delete and list key-value pairs",
    "search-url": "find the memories that mention a URL",
    "distill": "condense a text to what is worth remembering",
    "extract-metadata": "show the URLs, commands and paths in a file",
    "backup": "save all of an agent's memory in one file",
    "restore": "bring memories back from the cloud or a file, or prove that it works",
    "import": "take in a state file, a folder, MEMORY.md, or a database of EvoClaw's",
    "export": "write everything that is remembered as lines of JSON",
    "metrics": "show counters and sizes",
    "agents": "list the agents that have a memory",
    "sync": "show how replication stands, or replicate now",
    "sync-critical": "send the hot state and the tree now, as EvoClaw does",
    "devices": "list the devices that share the memory, or retire one",
    "upkeep": "show what happens by itself, and when",
    "status": "show how the daemon is, problems first",
    "config": "show the effective configuration, or check it",
    "events": "follow what happens, until Ctrl-C",
}


# No module can have these names.
_KEYWORDS: Final = ("import",)


def module_of(verb: str) -> str:
    """The module of a verb, relative to this package."""
    name = verb.replace("-", "_")
    return f".{name}_" if name in _KEYWORDS else f".{name}"
