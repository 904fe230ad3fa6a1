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
    "tidy": "merge what repeats, mark what is contradicted, archive what has faded",
    "hot": "show or change the hot state, which is always in the agent's context",
    "tree": "show or change the tree of categories",
    "cold": "search the archive",
    "kv": "get, set, delete and list key-value pairs",
    "search-url": "find the memories that mention a URL",
    "extract-metadata": "show the URLs, commands and paths in a file",
    "metrics": "show counters and sizes",
    "agents": "list the agents that have a memory",
    "status": "show how the daemon is, problems first",
    "config": "show the effective configuration, or check it",
    "events": "follow what happens, until Ctrl-C",
}


def module_of(verb: str) -> str:
    """The module of a verb, relative to this package."""
    return "." + verb.replace("-", "_")
