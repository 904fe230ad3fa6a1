"""Talk to the daemon from any Python program.

with Client(agent="assistant") as memory:
    memory.store("Ana prefers tea", category="people/ana", importance=0.8)
    for found in memory.recall("what does Ana drink?").results:
        print(found.text)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import shapes
from .caller import Caller, place
from .errors import refusal
from .wire import lines_of

if TYPE_CHECKING:
    from .caller import Json

Memories: TypeAlias = "Sequence[shapes.memory.MemoryView]"


class Client(Caller):
    """The daemon's calls as methods; see `Caller` for the connection, and for any other call.

    Options that a method passes on are the fields of the request in `thermocline.daemon.shapes`.
    """

    # Memories

    def store(self, text: str, **fields: Json) -> shapes.memory.MemoryView:
        """Store a memory with the fields of `NewMemory`; when this returns, it is on the disk."""
        body = {"text": text, **fields}
        return self.ask(shapes.memory.MemoryView, "POST", "/api/memory", body=body)

    def batch(self, memories: Sequence[Mapping[str, Json]]) -> Memories:
        """Store up to 500 at once, all or none of them; each is a `text` and its fields."""
        body = {"memories": [*memories]}
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
        path = place("/api/memory", memory_id)
        return self.ask(shapes.memory.Updated, "PUT", path, body=changes)

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

    def merge(self, memory_id: str, into: str) -> shapes.merging.Merged:
        """Merge a memory into another, which receives its uses, tags and references."""
        path = place("/api/memory", memory_id) + "/merge"
        return self.ask(shapes.merging.Merged, "POST", path, body={"into": into})

    def unmerge(self, memory_id: str) -> shapes.merging.Unmerged:
        """Undo the merge of a memory into another."""
        path = place("/api/memory", memory_id) + "/unmerge"
        return self.ask(shapes.merging.Unmerged, "POST", path)

    def tidy(self, *, dry_run: bool = False) -> shapes.merging.Tidied:
        """Merge duplicates, mark contradicted memories, archive faded ones; it takes seconds."""
        body = {"dry_run": dry_run}
        return self.ask(shapes.merging.Tidied, "POST", "/api/memory/tidy", body=body)

    def recall(self, query: str, **options: Json) -> shapes.recall.Recalled:
        """Search: the memories that answer `query`, best first; options are of `RecallBody`."""
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

    def urls(self, limit: int = 50, offset: int = 0) -> shapes.metadata.UrlPage:
        """The URLs that memories mention, with those memories, best first."""
        wanted = {"limit": limit, "offset": offset}
        return self.ask(shapes.metadata.UrlPage, "GET", "/api/metadata/urls", wanted)

    def history(self, row_id: str | None = None, **query: Json) -> shapes.history.VersionList:
        """Earlier versions of a row, or the latest of all; options are of `HistoryQuery`."""
        wanted = {"id": row_id, **query}
        return self.ask(shapes.history.VersionList, "GET", "/api/history", wanted)

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

    # Texts and conversations

    def distill(self, text: str, **options: Json) -> shapes.distill.DistilledText:
        """The facts of a text; options are of `DistilBody`."""
        body = {"text": text, **options}
        return self.ask(shapes.distill.DistilledText, "POST", "/api/distill", body=body)

    def distill_all(self, texts: Sequence[str], **options: Json) -> shapes.distill.DistilledTexts:
        """The same for up to 50 texts."""
        body = {"texts": [*texts], **options}
        return self.ask(shapes.distill.DistilledTexts, "POST", "/api/distill", body=body)

    def observe(
        self, conversation: str, turns: Sequence[Mapping[str, Json]] | None = None, **options: Json
    ) -> shapes.observe.Observed:
        """Report what was said; after a pause the facts in it are stored.

        When this returns, the turns are on the disk.

        Args:
            conversation: any name; the same for all its turns.
            turns: up to 500 `TurnBody`, in their order.
            **options: of `ObserveBody`: `messages` or `text` in place of `turns`; `end` makes it
                an episode, `wait` reads it at once.
        """
        given = {} if turns is None else {"turns": [*turns]}
        body = {"conversation": conversation, **given, **options}
        return self.ask(shapes.observe.Observed, "POST", "/api/observe", body=body)

    def turns(self, conversation: str, **talk: Json) -> shapes.observe.TurnsStored:
        """Store the `turns`, `messages` or `text` of a conversation, as they are; see `Talk`."""
        body = {"conversation": conversation, **talk}
        return self.ask(shapes.observe.TurnsStored, "POST", "/api/turns", body=body)

    def compact(
        self, messages: Sequence[Mapping[str, Json]], **options: Json
    ) -> shapes.compact.CompactedMessages:
        """Fit a conversation into a model's window again; options are of `CompactBody`."""
        body = {"messages": [*messages], **options}
        return self.ask(shapes.compact.CompactedMessages, "POST", "/api/compact", body=body)

    def graph(
        self, entity: str | None = None, depth: int = 2, limit: int = 20
    ) -> shapes.graph.Graph:
        """An entity and what is up to `depth` relations away; without one, the best known."""
        wanted = {"entity": entity, "depth": depth} if entity else {"limit": limit}
        return self.ask(shapes.graph.Graph, "GET", "/api/graph", wanted)

    def change_entity(self, name: str, **changes: Json) -> shapes.graph.EntityView:
        """Set the `type` or the `aliases` of an entity."""
        path = place("/api/graph", name)
        return self.ask(shapes.graph.EntityView, "PUT", path, body=changes)

    def metadata(self, text: str) -> shapes.metadata.MetadataFound:
        """The URLs, commands and paths in a text, which is not stored."""
        body = {"text": text}
        return self.ask(shapes.metadata.MetadataFound, "POST", "/api/metadata", body=body)

    def validate(self, **note: Json) -> shapes.validate.Validated:
        """What a note lacks: today's, or that of `ValidateBody`."""
        return self.ask(shapes.validate.Validated, "POST", "/api/validate", body=note)

    # Files of the agent's own

    def reflections(self, **which: Json) -> shapes.own_files.ReflectionPage:
        """What the agent has learned, newest first; options are of `ReflectionQuery`."""
        return self.ask(shapes.own_files.ReflectionPage, "GET", "/api/reflections", which)

    def reflect(self, **reflection: Json) -> shapes.own_files.ReflectionStored:
        """Add a reflection: the fields of `ReflectionBody`."""
        path = "/api/reflections"
        return self.ask(shapes.own_files.ReflectionStored, "POST", path, body=reflection)

    def episodes(self, **which: Json) -> shapes.own_files.EpisodePage:
        """What conversations came to, newest first; options are of `EpisodeQuery`."""
        return self.ask(shapes.own_files.EpisodePage, "GET", "/api/episodes", which)

    def add_episode(self, **episode: Json) -> shapes.own_files.EpisodeStored:
        """Add an episode: the fields of `EpisodeBody`."""
        return self.ask(shapes.own_files.EpisodeStored, "POST", "/api/episodes", body=episode)

    def skills(self, limit: int = 100, offset: int = 0) -> shapes.own_files.SkillPage:
        """The skills, without their texts."""
        wanted = {"limit": limit, "offset": offset}
        return self.ask(shapes.own_files.SkillPage, "GET", "/api/skills", wanted)

    def skill(self, skill_id: str) -> shapes.own_files.SkillView:
        """A skill with its text."""
        return self.ask(shapes.own_files.SkillView, "GET", place("/api/skills", skill_id))

    def add_skill(self, **skill: Json) -> shapes.own_files.SkillStored:
        """Write a skill: the fields of `SkillBody`."""
        return self.ask(shapes.own_files.SkillStored, "POST", "/api/skills", body=skill)

    def knowledge(self, *, fold: bool = False) -> shapes.own_files.KnowledgeView:
        """The knowledge; `fold` proposes what could go while it is too long."""
        return self.ask(shapes.own_files.KnowledgeView, "GET", "/api/knowledge", {"fold": fold})

    # Sessions

    def sessions(self, **which: Json) -> shapes.sessions.SessionPage:
        """The sessions, newest first; options are of `SessionQuery`."""
        return self.ask(shapes.sessions.SessionPage, "GET", "/api/sessions", which)

    def start_session(self, **fields: Json) -> shapes.sessions.SessionView:
        """Open a session: the fields of `SessionBody`."""
        return self.ask(shapes.sessions.SessionView, "POST", "/api/sessions", body=fields)

    def session(self, session_id: str) -> shapes.sessions.SessionView:
        """A session."""
        path = place("/api/sessions", session_id)
        return self.ask(shapes.sessions.SessionView, "GET", path)

    def archive_session(self, session_id: str) -> shapes.sessions.SessionView:
        """Close a session."""
        path = place("/api/sessions", session_id) + "/archive"
        return self.ask(shapes.sessions.SessionView, "POST", path)

    def reopen_session(self, session_id: str) -> shapes.sessions.SessionView:
        """Open a session again."""
        path = place("/api/sessions", session_id) + "/reopen"
        return self.ask(shapes.sessions.SessionView, "POST", path)

    def session_used(self, session_id: str, **which: Json) -> shapes.sessions.UsedPage:
        """What went into the answers of a session; options are of `UsedQuery`."""
        path = place("/api/sessions", session_id) + "/used"
        return self.ask(shapes.sessions.UsedPage, "GET", path, which)

    def replay_session(self, session_id: str, **which: Json) -> shapes.sessions.Replayed:
        """What has changed since the answers of a session; options are of `UsedQuery`."""
        path = place("/api/sessions", session_id) + "/replay"
        return self.ask(shapes.sessions.Replayed, "GET", path, which)

    # Experiences

    def experiences(self, **which: Json) -> shapes.experiences.ExperiencePage:
        """The experiences of most weight; options are of `ExperienceQuery`."""
        return self.ask(shapes.experiences.ExperiencePage, "GET", "/api/experiences", which)

    def similar_experiences(
        self, intent: str, tags: Sequence[str] = (), limit: int = 5
    ) -> shapes.experiences.SimilarExperiences:
        """The experiences with a similar intent."""
        query = {"q": intent, "tags": ",".join(tags) or None, "limit": limit}
        path = "/api/experiences/search"
        return self.ask(shapes.experiences.SimilarExperiences, "GET", path, query)

    def add_experience(self, **experience: Json) -> shapes.experiences.ExperienceView:
        """Store an experience: the fields of `ExperienceBody`."""
        path = "/api/experiences"
        return self.ask(shapes.experiences.ExperienceView, "POST", path, body=experience)

    def experience(self, experience_id: str) -> shapes.experiences.ExperienceView:
        """An experience, pruned or not."""
        path = place("/api/experiences", experience_id)
        return self.ask(shapes.experiences.ExperienceView, "GET", path)

    def use_experience(self, experience_id: str) -> shapes.experiences.ExperienceView:
        """Count a use, after which it has its full weight."""
        path = place("/api/experiences", experience_id) + "/use"
        return self.ask(shapes.experiences.ExperienceView, "POST", path)

    def delete_experience(self, experience_id: str) -> shapes.experiences.ExperienceDeleted:
        """Delete an experience for good."""
        path = place("/api/experiences", experience_id)
        return self.ask(shapes.experiences.ExperienceDeleted, "DELETE", path)

    def prune_experiences(self, **options: Json) -> shapes.experiences.Pruned:
        """Take what has faded out of recall; options are of `PruneBody`."""
        path = "/api/experiences/prune"
        return self.ask(shapes.experiences.Pruned, "POST", path, body=options)

    def experience_stats(self) -> shapes.experiences.ExperienceStats:
        """How many experiences there are, by type."""
        path = "/api/experiences/stats"
        return self.ask(shapes.experiences.ExperienceStats, "GET", path)

    def observe_experiences(
        self, conversation: str, **talk: Json
    ) -> shapes.observe.ExperiencesObserved:
        """Store what of a conversation is an experience: the fields of `Talk`."""
        body = {"conversation": conversation, **talk}
        path = "/api/experiences/observe"
        return self.ask(shapes.observe.ExperiencesObserved, "POST", path, body=body)

    def preferences(self, **which: Json) -> shapes.experiences.PreferencePage:
        """What users prefer; options are of `PreferenceQuery`."""
        return self.ask(shapes.experiences.PreferencePage, "GET", "/api/preferences", which)

    def prefer(
        self, category: str, value: str, user: str = ""
    ) -> shapes.experiences.PreferenceView:
        """Store what a user prefers; told again, it is surer."""
        body = {"category": category, "value": value, "user": user}
        path = "/api/preferences"
        return self.ask(shapes.experiences.PreferenceView, "POST", path, body=body)

    # The replica

    def sync_status(self) -> shapes.sync.SyncStatus:
        """The state of the agent's replication."""
        return self.ask(shapes.sync.SyncStatus, "GET", "/api/sync")

    def sync(self, *, critical: bool = False, **database: str) -> shapes.sync.Synced:
        """Send and receive everything now; it takes as long as there is something to send.

        Args:
            critical: only the hot state and the tree.
            **database: `url` and `token` of another database, which is only sent to.
        """
        body = {"critical": critical, **database}
        return self.ask(shapes.sync.Synced, "POST", "/api/sync", body=body)

    def devices(self) -> shapes.devices.DeviceList:
        """The devices that share the agent's replica."""
        return self.ask(shapes.devices.DeviceList, "GET", "/api/devices")

    def retire_device(self, device_id: str) -> shapes.devices.DeviceRetired:
        """Stop waiting for a device, by its id, the beginning of it, or its name."""
        path = place("/api/devices", device_id) + "/retire"
        return self.ask(shapes.devices.DeviceRetired, "POST", path)

    def rejoin(self) -> shapes.devices.DeviceRejoined:
        """Use the daemon's own device again after it was retired."""
        return self.ask(shapes.devices.DeviceRejoined, "POST", "/api/devices/rejoin")

    def verify(self) -> shapes.restore.Verification:
        """Check that a restore from the replica would bring everything back."""
        body = {"verify": True}
        return self.ask(shapes.restore.Verification, "POST", "/api/restore", body=body)

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

    # Watched files

    def files_search(self, query: str, **options: Json) -> shapes.files.FilesFound:
        """The parts of watched files that answer, best first; options are of `FileSearch`."""
        body = {"query": query, **options}
        return self.ask(shapes.files.FilesFound, "POST", "/api/files/search", body=body)

    def files_get(self, path: str, **options: Json) -> shapes.files.FileLines:
        """Lines of a watched file; options are of `LinesQuery`."""
        body = {"path": path, **options}
        return self.ask(shapes.files.FileLines, "POST", "/api/files/get", body=body)

    def files_sync(self) -> shapes.files.FilesSynced:
        """Look at every watched file now."""
        return self.ask(shapes.files.FilesSynced, "POST", "/api/files/sync")

    def files_list(self, prefix: str = "", **options: Json) -> shapes.files.FilePage:
        """A page of the watched files; options are of `FilesQuery`."""
        wanted = {"prefix": prefix, **options}
        return self.ask(shapes.files.FilePage, "GET", "/api/files/list", wanted)

    def files_chunks(self, path: str) -> shapes.files.ChunkList:
        """The chunks of a watched file, by their lines."""
        return self.ask(shapes.files.ChunkList, "GET", "/api/files/chunks", {"path": path})

    def files_stats(self) -> shapes.files.FilesStats:
        """How much is indexed, and what is watched."""
        return self.ask(shapes.files.FilesStats, "GET", "/api/files/stats")

    def files_add(self, path: str) -> shapes.files.PathAdded:
        """Watch a folder or file of the daemon's machine."""
        return self.ask(shapes.files.PathAdded, "POST", "/api/files/paths", body={"path": path})

    def files_remove(self, path: str) -> shapes.files.PathRemoved:
        """Stop watching a path that was added."""
        wanted = {"path": path}
        return self.ask(shapes.files.PathRemoved, "DELETE", "/api/files/paths", wanted)

    # The daemon

    def consolidate(self, mode: str = "quick", **options: Json) -> shapes.upkeep.Consolidated:
        """Run the upkeep now: `quick`, `daily`, `monthly` or `full`; `dry_run` changes nothing."""
        body = {"mode": mode, **options}
        return self.ask(shapes.upkeep.Consolidated, "POST", "/api/consolidate", body=body)

    def ingest(self, **options: Json) -> shapes.upkeep.Ingested:
        """Store the facts of the daily notes; options are of `IngestBody`."""
        return self.ask(shapes.upkeep.Ingested, "POST", "/api/ingest", body=options)

    def upkeep(self) -> shapes.upkeep.UpkeepStatus:
        """The schedule of the upkeep."""
        return self.ask(shapes.upkeep.UpkeepStatus, "GET", "/api/upkeep")

    def import_(self, **what: Json) -> shapes.imports.Imported:
        """Import a text, a path or a database, as `ImportBody` describes it."""
        return self.ask(shapes.imports.Imported, "POST", "/api/import", body=what)

    def agents(self) -> shapes.agents.AgentList:
        """The agents of this daemon."""
        return self.ask(shapes.agents.AgentList, "GET", "/api/agents")

    def status(self) -> shapes.status.Status:
        """The daemon's state, its problems, and the sizes of the open agents."""
        return self.ask(shapes.status.Status, "GET", "/api/status")

    def config(self) -> shapes.config.ConfigPage:
        """Every setting with its value, origin, default and help."""
        return self.ask(shapes.config.ConfigPage, "GET", "/api/config")

    def configure(
        self, values: Mapping[str, Json], unset: Sequence[str] = ()
    ) -> shapes.config.ConfigChanged:
        """Set `values` by dotted key and take out the keys in `unset`: all of it, or nothing."""
        body = {"set": {**values}, "unset": [*unset]}
        return self.ask(shapes.config.ConfigChanged, "PUT", "/api/config", body=body)

    def health(self) -> shapes.status.Health:
        """`ok` or `degraded`; the latter is an answer here, not an error."""
        answer = self._call("GET", "/api/health")
        found = self._parsed(answer)
        if not isinstance(found, dict) or "status" not in found:
            raise refusal(answer.status, found)
        return self._decoded(answer.body, shapes.status.Health)

    def metrics(self) -> shapes.status.Metrics:
        """The agent's counters and sizes, and under `daemon` the daemon's."""
        return self.ask(shapes.status.Metrics, "GET", "/api/metrics")

    def metrics_history(self) -> shapes.stats.MetricsHistory:
        """The recorded days, and the last seven against those before."""
        return self.ask(shapes.stats.MetricsHistory, "GET", "/api/metrics/history")

    def live(self) -> shapes.stats.LiveMetrics:
        """The agent's last two hours by minute."""
        return self.ask(shapes.stats.LiveMetrics, "GET", "/api/metrics/live")

    def stats(self) -> shapes.stats.Stats:
        """Sizes against their limits."""
        return self.ask(shapes.stats.Stats, "GET", "/api/memory/stats")

    def backup(self) -> Iterator[bytes]:
        """All of the agent's memory as one archive (a `.tar.gz`), in pieces as they come.

        Uses a separate connection. The archive is a snapshot.

        Raises:
            AnswerLost: it broke off; the archive is incomplete.
        """
        return self.download("/api/backup")

    def export(self) -> Iterator[dict[str, Json]]:
        """All rows, an object each with its `kind`; raises `AnswerLost` if it breaks off."""
        return map(json.loads, lines_of(self.download("/api/export")))

    def events(
        self, types: Sequence[str] = (), last_id: str | None = None
    ) -> Iterator[tuple[str, str, Any]]:
        """Events from now on, as (id, type, data), over a separate connection.

        Ends when the daemon stops.

        Args:
            types: only these; default: all.
            last_id: of the last event seen, to get those missed since (of the last 1000) first.

        Raises:
            AnswerLost: the stream broke off, or was silent longer than the daemon ever is.
        """
        wanted = {"types": ",".join(types) or None}
        return self.stream("/api/events", wanted, last_id)
