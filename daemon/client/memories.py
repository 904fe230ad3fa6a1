"""The calls about memories: storing, recall, the tiers, key-value pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from .. import shapes
from .caller import Caller, place

if TYPE_CHECKING:
    from .caller import Json

Memories: TypeAlias = "Sequence[shapes.memory.MemoryView]"


class MemoryCalls(Caller):
    """The calls about memories as methods."""

    # Memories

    def store(self, text: str, **fields: Json) -> shapes.memory.StoredMemory:
        """Store a memory with the fields of `StoreBody`; when this returns, it is on the disk.

        If the text is known word for word, that memory is strengthened, and `stored` is false.
        """
        body = {"text": text, **fields}
        return self.ask(shapes.memory.StoredMemory, "POST", "/api/memory", body=body)

    def batch(
        self, memories: Sequence[Mapping[str, Json]], *, force: bool = False
    ) -> Sequence[shapes.memory.StoredMemory]:
        """Store up to 500 at once, all or none of them; each is a `text` and its fields.

        With `force` even what is known.
        """
        body = {"memories": [*memories], **({"force": True} if force else {})}
        return self.ask(shapes.memory.Stored, "POST", "/api/memory/batch", body=body).results

    def get(self, memory_id: str) -> shapes.memory.MemoryView:
        """The memory with this id, or a unique prefix of it (4 characters or more)."""
        return self.ask(shapes.memory.MemoryView, "GET", place("/api/memory", memory_id))

    def list(self, **filters: Json) -> shapes.memory.MemoryPage:
        """A page of the memories that pass all filters of `ListQuery`, by default newest first."""
        filters["include"] = ",".join(filters.get("include") or ()) or None
        return self.ask(shapes.memory.MemoryPage, "GET", "/api/memory", filters)

    def update(self, memory_id: str, **changes: Json) -> shapes.memory.Updated:
        """Change the given fields of a memory, those of `MemoryChanges`."""
        return self.ask(shapes.memory.Updated, "PUT", place("/api/memory", memory_id), body=changes)

    def forget(self, memory_id: str) -> shapes.memory.Deleted:
        """Delete a memory for good."""
        return self.ask(shapes.memory.Deleted, "DELETE", place("/api/memory", memory_id))

    def forget_matching(self, **which: Json) -> shapes.memory.Forgotten:
        """Delete all memories that fit a `category`, the words of a `query`, or hold `secrets`.

        With `dry_run` it only counts them, and returns the newest.
        """
        return self.ask(shapes.memory.Forgotten, "POST", "/api/memory/forget", body=which)

    def forget_agent(self, agent: str, *, dry_run: bool = False) -> shapes.agents.AgentForgotten:
        """Delete an agent: all its memories, and its folder."""
        path, query = place("/api/agents", agent), {"dry_run": dry_run}
        return self.ask(shapes.agents.AgentForgotten, "DELETE", path, query)

    def reinforce(self, memory_id: str) -> shapes.memory.Reinforced:
        """Count one more use of a memory, which raises its score."""
        path = place("/api/memory", memory_id) + "/reinforce"
        return self.ask(shapes.memory.Reinforced, "POST", path)

    def unreinforce(self, memory_id: str) -> shapes.memory.Reinforced:
        """Take back one use that the daemon's device has counted."""
        path = place("/api/memory", memory_id) + "/reinforce"
        return self.ask(shapes.memory.Reinforced, "DELETE", path)

    def merge(self, memory_id: str, into: str) -> shapes.memory.Merged:
        """Merge a memory into another, which receives its uses, tags and references."""
        path = place("/api/memory", memory_id) + "/merge"
        return self.ask(shapes.memory.Merged, "POST", path, body={"into": into})

    def unmerge(self, memory_id: str) -> shapes.memory.Unmerged:
        """Undo the merge of a memory into another."""
        path = place("/api/memory", memory_id) + "/unmerge"
        return self.ask(shapes.memory.Unmerged, "POST", path)

    def tidy(self, *, dry_run: bool = False) -> shapes.memory.Tidied:
        """Merge duplicates, mark contradicted memories, archive faded ones; it takes seconds."""
        return self.ask(shapes.memory.Tidied, "POST", "/api/memory/tidy", body={"dry_run": dry_run})

    def recall(self, query: str, **options: Json) -> shapes.recall.Recalled:
        """Search everything for what answers `query`, best first; options are of `RecallBody`."""
        body = {"query": query, **options}
        return self.ask(shapes.recall.Recalled, "POST", "/api/recall", body=body)

    def context(self, query: str = "", **options: Json) -> shapes.context.ContextBlock:
        """What the agent reads before its turn; options are of `ContextQuery`."""
        body = {"query": query, **options}
        return self.ask(shapes.context.ContextBlock, "POST", "/api/context", body=body)

    def tools(self, **which: Json) -> Sequence[Json]:
        """The tools for models, in the form that `ToolsQuery` names."""
        return self.ask(shapes.tools.ToolList, "GET", "/api/tools", which).tools

    def use_tool(self, name: str, arguments: Json, tools: str | None = None) -> Json:
        """Call a tool with a model's arguments; `tools` says of which preset it is."""
        return self.request("POST", place("/api/tools", name), {"tools": tools}, arguments)

    def search_url(self, url: str, limit: int = 5) -> Memories:
        """The memories that mention a URL containing `url` in any case, by score."""
        return self.list(url=url, limit=limit, order="score").results

    def urls(self, limit: int = 50, offset: int = 0) -> shapes.memory.UrlPage:
        """The URLs that memories mention, with those memories, best first."""
        wanted = {"limit": limit, "offset": offset}
        return self.ask(shapes.memory.UrlPage, "GET", "/api/metadata/urls", wanted)

    def history(self, row_id: str | None = None, **query: Json) -> shapes.history.VersionList:
        """Earlier versions of a row, or the latest of all; options are of `HistoryQuery`."""
        return self.ask(shapes.history.VersionList, "GET", "/api/history", {"id": row_id, **query})

    def undo(self, **which: Json) -> shapes.history.Undone:
        """Restore an earlier version, or undo a writer's changes; options of `UndoBody`."""
        return self.ask(shapes.history.Undone, "POST", "/api/undo", body=which)

    # Tiers

    def hot(self) -> shapes.hot.HotView:
        """The hot state: what is always in the agent's context."""
        return self.ask(shapes.hot.HotView, "GET", "/api/hot")

    def hot_markdown(self) -> str:
        """The hot state as the text of MEMORY.md."""
        return str(self.request("GET", "/api/hot/markdown"))

    def hot_update(self, key: str, value: Json) -> shapes.hot.HotUpdated:
        """Merge `value` into a part of the hot state, or append it there.

        Args:
            key: identity, owner_profile, lesson, event, task or project.
            value: the JSON for it.
        """
        return self.ask(shapes.hot.HotUpdated, "PUT", place("/api/hot", key), body=value)

    def hot_remove(self, key: str, name: str) -> shapes.hot.HotRemoved:
        """Remove one entry of a part of the hot state."""
        return self.ask(shapes.hot.HotRemoved, "DELETE", place("/api/hot", key), {"name": name})

    def hot_rebuild(self) -> shapes.hot.HotRebuilt:
        """Write the section in MEMORY.md."""
        return self.ask(shapes.hot.HotRebuilt, "POST", "/api/hot/rebuild")

    def tree(self) -> shapes.tree.TreeView:
        """The category tree."""
        return self.ask(shapes.tree.TreeView, "GET", "/api/tree")

    def tree_text(self) -> str:
        """The category tree as indented text."""
        return str(self.request("GET", "/api/tree/text"))

    def tree_add(self, path: str, desc: str = "") -> shapes.tree.CategoryAdded:
        """Add a category and its missing parents."""
        body = {"path": path, "desc": desc}
        return self.ask(shapes.tree.CategoryAdded, "PUT", "/api/tree", body=body)

    def tree_remove(self, path: str) -> shapes.tree.CategoryRemoved:
        """Remove a category that contains no memories, with those below it."""
        return self.ask(shapes.tree.CategoryRemoved, "DELETE", "/api/tree", {"path": path})

    def tree_rename(self, path: str, to: str) -> shapes.tree.CategoryRenamed:
        """Rename a category with all below it; `tree_undo` takes it back."""
        body = {"path": path, "to": to}
        return self.ask(shapes.tree.CategoryRenamed, "POST", "/api/tree/rename", body=body)

    def tree_prune(self) -> shapes.tree.TreePruned:
        """Remove the categories that are empty and long unused."""
        return self.ask(shapes.tree.TreePruned, "POST", "/api/tree/prune")

    def tree_undo(self) -> shapes.tree.RebuildUndone:
        """Undo the last rebuild or renaming of the tree."""
        return self.ask(shapes.tree.RebuildUndone, "POST", "/api/tree/undo")

    def cold(self, query: str = "", limit: int = 10, offset: int = 0) -> shapes.memory.MemoryPage:
        """A page of the archive; `query` narrows it by words."""
        wanted = {"query": query, "limit": limit, "offset": offset}
        return self.ask(shapes.memory.MemoryPage, "GET", "/api/cold", wanted)

    def cold_init(self, **database: str) -> shapes.cold.Initialized:
        """Create the tables of a database (`url`, `token`; default: the agent's replica)."""
        return self.ask(shapes.cold.Initialized, "POST", "/api/cold/init", body=database)

    def cold_search(self, query: str, limit: int, **database: str) -> shapes.cold.ColdFound:
        """Search a database (`url`, `token`) that holds memories."""
        body = {"query": query, "limit": limit, **database}
        return self.ask(shapes.cold.ColdFound, "POST", "/api/cold/search", body=body)

    # Pairs

    def kv_get(self, key: str) -> shapes.pairs.Pair:
        """The pair with this key."""
        return self.ask(shapes.pairs.Pair, "GET", place("/api/kv", key))

    def kv_set(self, key: str, value: str) -> shapes.pairs.PairStored:
        """Set the value of a key, new or not."""
        body = {"value": value}
        return self.ask(shapes.pairs.PairStored, "PUT", place("/api/kv", key), body=body)

    def kv_delete(self, key: str) -> shapes.pairs.PairDeleted:
        """Delete a pair."""
        return self.ask(shapes.pairs.PairDeleted, "DELETE", place("/api/kv", key))

    def kv_list(self, prefix: str = "", limit: int = 50, offset: int = 0) -> shapes.pairs.PairPage:
        """A page of the pairs whose key begins with `prefix`."""
        wanted = {"prefix": prefix, "limit": limit, "offset": offset}
        return self.ask(shapes.pairs.PairPage, "GET", "/api/kv", wanted)
