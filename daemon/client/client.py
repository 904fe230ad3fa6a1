"""Talk to the daemon from any Python program; needs nothing but the standard library.

with Client(agent="assistant") as memory:
    memory.store("Ana prefers tea", category="people/ana", importance=0.8)
    for found in memory.recall("what does Ana drink?")["results"]:
        print(found["text"])
"""

from __future__ import annotations

import json

from .caller import Caller, default_socket, place
from .channel import AnswerLost, ApiError, ClientError, DaemonUnreachable, lines_of, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Unpack

    from .. import answers, status_answers, thinking_answers
    from ..answers import Json
    from ..recall_answers import ColdFound, Recall, RecallOptions

__all__ = ["AnswerLost", "ApiError", "Client", "ClientError", "DaemonUnreachable", "default_socket"]


class Client(Caller):
    """The daemon's calls as methods; see `Caller` for the connection, and for any other call."""

    # Memories

    def store(self, text: str, **fields: Unpack[answers.NewFields]) -> answers.Memory:
        """Remember `text`; when this returns, it is on the disk."""
        stored: answers.Memory = self.request("POST", "/api/memory", body={"text": text, **fields})
        return stored

    def batch(self, memories: Sequence[Mapping[str, Json]]) -> answers.Memories:
        """Remember up to 500 at once, all or none of them; each is a `text` and its fields."""
        body = {"memories": [*memories]}
        stored: answers.Memories = self.request("POST", "/api/memory/batch", body=body)["results"]
        return stored

    def get(self, memory_id: str) -> answers.Memory:
        """The memory with this id, or with the only id that begins so (4 characters or more)."""
        memory: answers.Memory = self.request("GET", place("/api/memory", memory_id))
        return memory

    def list(self, **filters: Unpack[answers.Filters]) -> answers.Page:
        """A page of the memories that fit every filter, newest first unless told otherwise."""
        query: dict[str, Json] = dict(filters)
        query["tag"] = query.pop("tags", None)
        query |= {
            one: query.pop(many, None) for one, many in (("type", "types"), ("event", "events"))
        }
        query["include"] = ",".join(query.pop("include", ())) or None
        page: answers.Page = self.request("GET", "/api/memory", query)
        return page

    def update(self, memory_id: str, **changes: Unpack[answers.Changes]) -> answers.Updated:
        """Change the given fields of a memory."""
        path = place("/api/memory", memory_id)
        updated: answers.Updated = self.request("PUT", path, body=changes)
        return updated

    def forget(self, memory_id: str) -> answers.Deleted:
        """Delete a memory for good."""
        deleted: answers.Deleted = self.request("DELETE", place("/api/memory", memory_id))
        return deleted

    def forget_matching(
        self, *, category: str | None = None, query: str | None = None, dry_run: bool = False
    ) -> answers.Forgotten:
        """Delete all memories of a category, or that contain words, or both.

        Args:
            category: it and all below it.
            query: words that the memory contains, all of them.
            dry_run: only count them, and show the newest.
        """
        body = {"category": category, "query": query, "dry_run": dry_run}
        forgotten: answers.Forgotten = self.request("POST", "/api/memory/forget", body=body)
        return forgotten

    def forget_agent(self, agent: str, *, dry_run: bool = False) -> status_answers.AgentForgotten:
        """Delete an agent: all its memories, and its folder.

        Args:
            agent: its id.
            dry_run: only tell what it has.
        """
        path, query = place("/api/agents", agent), {"dry_run": "true"} if dry_run else None
        forgotten: status_answers.AgentForgotten = self.request("DELETE", path, query)
        return forgotten

    def reinforce(self, memory_id: str) -> answers.Reinforced:
        """Count one more use of a memory, which raises its score."""
        path = place("/api/memory", memory_id) + "/reinforce"
        reinforced: answers.Reinforced = self.request("POST", path)
        return reinforced

    def merge(self, memory_id: str, into: str) -> answers.Merged:
        """Retire a memory into another, which gains its uses, tags and references."""
        path = place("/api/memory", memory_id) + "/merge"
        merged: answers.Merged = self.request("POST", path, body={"into": into})
        return merged

    def unmerge(self, memory_id: str) -> answers.Unmerged:
        """Bring a memory back that was merged into another, and undo what that gained."""
        path = place("/api/memory", memory_id) + "/unmerge"
        unmerged: answers.Unmerged = self.request("POST", path)
        return unmerged

    def tidy(self, *, dry_run: bool = False) -> answers.Tidied:
        """Merge repeated memories, mark contradicted ones, archive what has faded.

        It takes seconds where there are many memories.

        Args:
            dry_run: change nothing, and tell what would be done.
        """
        tidied: answers.Tidied = self.request("POST", "/api/memory/tidy", body={"dry_run": dry_run})
        return tidied

    def recall(self, query: str, **options: Unpack[RecallOptions]) -> Recall:
        """Search by meaning of the words: the memories that fit `query`, best first."""
        body = {"query": query, **options}
        recall: Recall = self.request("POST", "/api/recall", body=body)
        return recall

    def search_url(self, url: str, limit: int = 5) -> answers.Memories:
        """The memories that mention a URL containing `url` in any case, by score."""
        return self.list(url=url, limit=limit, order="score")["results"]

    # Tiers

    def hot(self) -> answers.Hot:
        """The hot state: what is always in the agent's context."""
        hot: answers.Hot = self.request("GET", "/api/hot")
        return hot

    def hot_markdown(self) -> str:
        """The hot state as the text of MEMORY.md."""
        return str(self.request("GET", "/api/hot/markdown"))

    def hot_update(self, key: str, value: Json) -> answers.HotUpdated:
        """Merge `value` into a part of the hot state, or append it there.

        Args:
            key: identity, owner_profile, lesson, event, task or project.
            value: the JSON for it.
        """
        updated: answers.HotUpdated = self.request("PUT", place("/api/hot", key), body=value)
        return updated

    def hot_remove(self, key: str, name: str) -> answers.HotRemoved:
        """Remove one entry of a part of the hot state."""
        path = place("/api/hot", key)
        removed: answers.HotRemoved = self.request("DELETE", path, {"name": name})
        return removed

    def hot_rebuild(self) -> answers.HotRebuilt:
        """Write MEMORY.md anew."""
        rebuilt: answers.HotRebuilt = self.request("POST", "/api/hot/rebuild")
        return rebuilt

    def tree(self) -> answers.Tree:
        """The category tree."""
        tree: answers.Tree = self.request("GET", "/api/tree")
        return tree

    def tree_text(self) -> str:
        """The category tree as indented text."""
        return str(self.request("GET", "/api/tree/text"))

    def tree_add(self, path: str, desc: str = "") -> answers.NodeAdded:
        """Add a category and its missing parents."""
        body = {"path": path, "desc": desc} if desc else {"path": path}
        added: answers.NodeAdded = self.request("PUT", "/api/tree", body=body)
        return added

    def tree_remove(self, path: str) -> answers.NodeRemoved:
        """Remove a category in which, and below which, there are no memories."""
        removed: answers.NodeRemoved = self.request("DELETE", "/api/tree", {"path": path})
        return removed

    def tree_prune(self) -> answers.Pruned:
        """Remove the categories that are empty and long unused."""
        pruned: answers.Pruned = self.request("POST", "/api/tree/prune")
        return pruned

    def cold(self, query: str = "", limit: int = 10, offset: int = 0) -> answers.Page:
        """A page of the archive; `query` narrows it by words."""
        wanted = {"query": query or None, "limit": limit, "offset": offset}
        page: answers.Page = self.request("GET", "/api/cold", wanted)
        return page

    def cold_search(
        self, query: str = "", limit: int = 10, **database: Unpack[answers.Database]
    ) -> ColdFound:
        """What the replica, or another database, holds of the words in `query`."""
        body = {"query": query, "limit": limit, **database}
        found: ColdFound = self.request("POST", "/api/cold/search", body=body)
        return found

    def cold_init(self, **database: Unpack[answers.Database]) -> answers.Initialized:
        """Make the tables of the replica, or of another database, that are missing."""
        made: answers.Initialized = self.request("POST", "/api/cold/init", body=database)
        return made

    # Texts and conversations

    def distill(
        self, text: str, **options: Unpack[thinking_answers.Distilling]
    ) -> thinking_answers.DistilledText:
        """What is worth remembering of a text, and by which way it was found.

        Args:
            text: any length that a request may have.
            **options: `facts` for each statement, `core_summary` for one line; `store` keeps
                what was found, in the fitting category or in `category`; `llm` says by what.
        """
        body = {"text": text, **options}
        found: thinking_answers.DistilledText = self.request("POST", "/api/distill", body=body)
        return found

    def observe(
        self,
        conversation: str,
        turns: Sequence[thinking_answers.Turn] = (),
        *,
        end: bool = False,
        **reading: Unpack[thinking_answers.Reading],
    ) -> thinking_answers.Observed:
        """Tell what was said; what is worth remembering of it is kept after a pause.

        When this returns, the turns are on the disk.

        Args:
            conversation: any name; the same for all its turns.
            turns: up to 500, in their order; none may be left to say when it ends.
            end: it is over, and becomes an episode.
            **reading: `wait` for the memories that are made of it; `llm` and `llm_endpoint` then
                say by what.
        """
        body = {"conversation": conversation, "turns": [*turns], "end": end, **reading}
        observed: thinking_answers.Observed = self.request("POST", "/api/observe", body=body)
        return observed

    def graph(self, entity: str, depth: int = 2) -> thinking_answers.Graph:
        """What memories say of somebody or something, and what is up to `depth` relations away."""
        wanted: dict[str, Json] = {"entity": entity, "depth": depth}
        graph: thinking_answers.Graph = self.request("GET", "/api/graph", wanted)
        return graph

    def compact(
        self,
        messages: Sequence[Mapping[str, Json]],
        **options: Unpack[thinking_answers.Compacting],
    ) -> thinking_answers.Compacted:
        """Make a conversation with a model fit into its window again. Nothing is stored.

        Args:
            messages: the oldest first, each with a `role` and a `content`; whatever else they
                have comes back with them.
            **options: `window` is what the model can read, in tokens (128,000 when left out);
                `check` only tells whether it is time.
        """
        body = {"messages": [*messages], **options}
        compacted: thinking_answers.Compacted = self.request("POST", "/api/compact", body=body)
        return compacted

    # The replica

    def sync_status(self) -> status_answers.SyncStanding:
        """How the agent's replication stands."""
        standing: status_answers.SyncStanding = self.request("GET", "/api/sync")
        return standing

    def sync(
        self,
        *,
        critical: bool = False,
        **database: Unpack[answers.Database],
    ) -> answers.Synced:
        """Send and receive everything now; it takes as long as there is something to send.

        Args:
            critical: the hot state and the tree alone.
            **database: `url` and `token` of another database, which is sent to, and not followed.
        """
        body = {"critical": critical, **database}
        synced: answers.Synced = self.request("POST", "/api/sync", body=body)
        return synced

    def devices(self) -> status_answers.Devices:
        """The devices that share the agent's replica."""
        devices: status_answers.Devices = self.request("GET", "/api/devices")
        return devices

    def retire_device(self, device_id: str) -> status_answers.DeviceRetired:
        """Wait for a device no longer, by its id, the beginning of it, or its name."""
        path = place("/api/devices", device_id) + "/retire"
        retired: status_answers.DeviceRetired = self.request("POST", path)
        return retired

    def rejoin(self) -> status_answers.DeviceRejoined:
        """Take the daemon's own device in again after it was retired."""
        rejoined: status_answers.DeviceRejoined = self.request("POST", "/api/devices/rejoin")
        return rejoined

    # Pairs

    def kv_get(self, key: str) -> answers.Pair:
        """The pair with this key."""
        pair: answers.Pair = self.request("GET", place("/api/kv", key))
        return pair

    def kv_set(self, key: str, value: str) -> Json:
        """Set the value of a key, new or not."""
        return self.request("PUT", place("/api/kv", key), body={"value": value})

    def kv_delete(self, key: str) -> answers.Deleted:
        """Delete a pair."""
        deleted: answers.Deleted = self.request("DELETE", place("/api/kv", key))
        return deleted

    def kv_list(self, prefix: str = "", limit: int = 50, offset: int = 0) -> answers.Pairs:
        """A page of the pairs whose key begins with `prefix`."""
        query = {"prefix": prefix or None, "limit": limit, "offset": offset}
        pairs: answers.Pairs = self.request("GET", "/api/kv", query)
        return pairs

    # The daemon

    def consolidate(self, mode: str = "quick", **options: Any) -> Any:
        """Run the upkeep now: `quick`, `daily`, `monthly` or `full`."""
        return self.request("POST", "/api/consolidate", body={"mode": mode, **options})

    def ingest(self, **wish: Any) -> Any:
        """Store the facts of the daily notes."""
        return self.request("POST", "/api/ingest", body=wish)

    def upkeep(self) -> Any:
        """The schedule of the upkeep."""
        return self.request("GET", "/api/upkeep")

    def validate(self, **note: Any) -> Any:
        """What a note lacks: today's, or the given text."""
        return self.request("POST", "/api/validate", body=note)

    def history(self, row_id: str | None = None, **query: Any) -> Any:
        """Earlier versions of a row, or the latest of all."""
        return self.request("GET", "/api/history", {"id": row_id, **query})

    def undo(self, **wish: Any) -> Any:
        """Put back an earlier version, or undo what a writer changed."""
        return self.request("POST", "/api/undo", body=wish)

    def tree_undo(self) -> Any:
        """Undo the last rebuild of the tree."""
        return self.request("POST", "/api/tree/undo")

    def verify(self) -> Any:
        """Check that the replica has everything."""
        return self.request("POST", "/api/restore", body={"verify": True})

    def import_(self, **wish: Any) -> Any:
        """Import a file, a folder or a database."""
        return self.request("POST", "/api/import", body=wish)

    def stats(self) -> Any:
        """Sizes against their limits."""
        return self.request("GET", "/api/memory/stats")

    def metrics_history(self) -> Any:
        """The recorded days, and how they compare."""
        return self.request("GET", "/api/metrics/history")

    def distill_all(self, texts: Sequence[str], **options: Any) -> Any:
        """Distil up to 50 texts."""
        body = {**options, "texts": [*texts]}
        return self.request("POST", "/api/distill", body=body)["results"]

    def metadata(self, text: str) -> answers.Extracted:
        """The URLs, commands and paths in a text, which is not stored."""
        found: answers.Extracted = self.request("POST", "/api/metadata", body={"text": text})
        return found

    def agents(self) -> status_answers.Agents:
        """The agents that this daemon keeps."""
        agents: status_answers.Agents = self.request("GET", "/api/agents")
        return agents

    def status(self) -> status_answers.Status:
        """The daemon's state, its problems, and the sizes of the open agents."""
        status: status_answers.Status = self.request("GET", "/api/status")
        return status

    def health(self) -> status_answers.Health:
        """`ok` or `degraded`; the latter is an answer here, not an error."""
        status, parsed = self._channel.call("GET", "/api/health", None, None)
        health: status_answers.Health = parsed
        if not isinstance(parsed, dict) or "status" not in parsed:
            raise refusal(status, parsed)
        return health

    def metrics(self) -> dict[str, Json]:
        """The agent's counters and sizes, and under `daemon` the daemon's."""
        metrics: dict[str, Json] = self.request("GET", "/api/metrics")
        return metrics

    def backup(self) -> Iterator[bytes]:
        """All of the agent's memory as one archive (a `.tar.gz`), in pieces as they come.

        Takes a connection of its own. The archive is of one moment, however long it takes.

        Raises:
            AnswerLost: it broke off; what came is not a whole archive.
        """
        return self.download("/api/backup")

    def export(self) -> Iterator[dict[str, Json]]:
        """Everything that is remembered, an object each; raises `AnswerLost` if it breaks off.

        The `kind` of an object says what it is.
        """
        return map(json.loads, lines_of(self.download("/api/export")))

    def events(
        self, types: Sequence[str] = (), last_id: str | None = None
    ) -> Iterator[answers.Event]:
        """What happens from now on, as (id, type, data), over a connection of its own.

        Ends when the daemon leaves.

        Args:
            types: only these; all when empty.
            last_id: of the last event seen, to get those missed since (of the last 1000) first.

        Raises:
            AnswerLost: the stream broke off, or was silent longer than the daemon ever is.
        """
        wanted = {"types": ",".join(types) or None}
        return self._channel.stream("/api/events", wanted, last_id)
