"""Talk to the daemon from any Python program.

with Client(agent="assistant") as memory:
    memory.store("Ana prefers tea", category="people/ana", importance=0.8)
    for result in memory.recall("what does Ana drink?").results:
        print(result.text)

`Calls` has the daemon's calls as methods, which `Client` and `AsyncClient` share.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from .. import schemas
from .caller import Caller, request_fields
from .errors import refusal
from .wire import Response, lines_of

if TYPE_CHECKING:
    from .caller import BaseCaller, Json

T = TypeVar("T")
U = TypeVar("U")


class Method(Generic[T]):
    """A method of a client: a struct of `schemas`, the call that it answers, and argument names.

    Positional arguments fill the fields that the path names, then `words`; keywords any field of
    the operation's request, which `GET /api/openapi.json` lists. What the path does not name is the
    query, of a POST or PUT the body, unless one field is the `whole` of it. The struct is loaded
    with the first call.
    """

    def __init__(
        self,
        answer: Callable[[], type[T]],
        call: str,
        *words: str,
        whole: str = "",
        **defaults: Json,
    ) -> None:
        self.answer: Callable[[], type[Any]] = answer
        self.call, self.words = call, (*re.findall(r"{(\w+)}", call), *words)
        self._whole, self._defaults = whole, defaults
        self._pick: Callable[[Any], Any] | None = None

    def part(self, pick: Callable[[T], U]) -> Method[U]:
        """The same with a part of the answer."""
        method: Method[Any] = copy.copy(self)
        method._pick = pick
        return method

    def __set_name__(self, _: type, name: str) -> None:
        self.__name__ = name

    @overload
    def __get__(self, client: None, owner: type) -> Method[T]: ...
    @overload
    def __get__(self, client: Caller, owner: type) -> Callable[..., T]: ...
    @overload
    def __get__(self, client: BaseCaller, owner: type) -> Callable[..., Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        return self if client is None else MethodType(self, client)

    def __call__(self, client: Any, *arguments: Json, **fields: Json) -> Any:
        if len(arguments) > len(self.words):
            raise TypeError(f"{self.__name__}() takes only ({', '.join(self.words)}) by position")
        named = dict(zip(self.words, arguments, strict=False))
        request = request_fields(self.call, {**self._defaults, **named, **fields}, self._whole)
        return client.make(lambda answer: self.value(client, answer), *request)

    def value(self, client: BaseCaller, answer: Response) -> T:
        """What an answer means; raises `ApiError` for a refusal."""
        value = client.decoded(answer, self.answer())
        picked: T = self._pick(value) if self._pick else value
        return picked


class TextMethod(Method[str]):
    """A method whose answer is a text."""

    def __init__(self, call: str, *words: str) -> None:
        super().__init__(lambda: str, call, *words)

    def value(self, client: BaseCaller, answer: Response) -> str:
        return str(client.parsed(answer))


class HealthMethod(Method[T]):
    """The health, which is an answer whatever its status."""

    def value(self, client: BaseCaller, answer: Response) -> T:
        content = client.content(answer)
        if not isinstance(content, dict) or "status" not in content:
            raise refusal(answer.status, content)
        return super().value(client, Response(200, answer.headers, answer.body))


class Calls:
    """The daemon's calls as methods; an `AsyncClient` returns each answer as a coroutine."""

    # Store a memory: a text and the fields of `StoreBody`. When it returns, it is on the disk. If
    # the text is known word for word, that memory is strengthened, and `stored` is false.
    store = Method(lambda: schemas.memory.StoredMemory, "POST /api/memory", "text")
    # Store up to 500 at once, all or none of them; each is a `text` and its fields.
    batch = Method(lambda: schemas.memory.Stored, "POST /api/memory/batch", "memories").part(
        lambda stored: stored.results
    )
    get = Method(lambda: schemas.memory.MemoryView, "GET /api/memory/{id}")
    # A page of the memories that pass all filters of `ListQuery`, by default newest first.
    list = Method(lambda: schemas.memory.MemoryPage, "GET /api/memory")
    search_url = Method(
        lambda: schemas.memory.MemoryPage, "GET /api/memory", "url", "limit", limit=5, order="score"
    ).part(lambda page: page.results)
    update = Method(lambda: schemas.memory.Updated, "PUT /api/memory/{id}")
    forget = Method(lambda: schemas.memory.Deleted, "DELETE /api/memory/{id}")
    # Delete all memories of a `category`, with the words of a `query`, or with `secrets`; with
    # `dry_run` only count them.
    forget_matching = Method(lambda: schemas.memory.Forgotten, "POST /api/memory/forget")
    forget_agent = Method(lambda: schemas.status.AgentForgotten, "DELETE /api/agents/{agent}")
    # Count one more use of a memory, which raises its score.
    reinforce = Method(lambda: schemas.memory.Reinforced, "POST /api/memory/{id}/reinforce")
    # Merge a memory into another, which receives its uses, tags and references; undo it.
    merge = Method(lambda: schemas.memory.Merged, "POST /api/memory/{id}/merge", "into")
    unmerge = Method(lambda: schemas.memory.Unmerged, "POST /api/memory/{id}/unmerge")
    # Merge duplicates, mark contradicted memories, archive faded ones; it takes seconds.
    tidy = Method(lambda: schemas.memory.Tidied, "POST /api/memory/tidy")
    # Search everything for what answers a query, best first; options are of `RecallBody`.
    recall = Method(lambda: schemas.recall.Recalled, "POST /api/recall", "query")
    # What the agent reads before its turn.
    context = Method(lambda: schemas.recall.ContextBlock, "POST /api/context", "query")
    metadata = Method(lambda: schemas.memory.MetadataFound, "POST /api/metadata", "text")
    # Earlier versions of a row, or the latest of all.
    history = Method(lambda: schemas.memory.VersionList, "GET /api/history", "id")
    conflicts_seen = Method(
        lambda: schemas.memory.ConflictsSeen, "POST /api/conflicts/seen", "numbers"
    )
    # Restore an earlier version, or undo a writer's changes.
    undo = Method(lambda: schemas.memory.Undone, "POST /api/undo")

    hot = Method(lambda: schemas.tiers.HotView, "GET /api/hot")
    hot_markdown = TextMethod("GET /api/hot/markdown")
    # Merge a value into a part of the hot state, or append it there: identity, owner_profile,
    # lesson, event, task or project.
    hot_update = Method(
        lambda: schemas.tiers.HotUpdated, "PUT /api/hot/{key}", "value", whole="value"
    )
    hot_remove = Method(lambda: schemas.tiers.HotRemoved, "DELETE /api/hot/{key}", "name")
    # Write the section in MEMORY.md; where that is; whether the daemon writes it.
    hot_rebuild = Method(lambda: schemas.tiers.HotRebuilt, "POST /api/hot/rebuild")
    hot_section = Method(lambda: schemas.tiers.HotSection, "GET /api/hot/section")
    put_hot_section = Method(lambda: schemas.tiers.HotSection, "PUT /api/hot/section", "written")
    tree = Method(lambda: schemas.tiers.TreeView, "GET /api/tree")
    tree_search = Method(lambda: schemas.tiers.TreeSearched, "POST /api/tree/search", "query")
    # The tree as indented text; the question that a model is asked for a search of it.
    tree_text = TextMethod("GET /api/tree/text")
    tree_search_prompt = TextMethod("GET /api/tree/search/prompt", "query")
    tree_add = Method(lambda: schemas.tiers.CategoryAdded, "PUT /api/tree", "path", "desc")
    tree_remove = Method(lambda: schemas.tiers.CategoryRemoved, "DELETE /api/tree", "path")
    tree_rename = Method(
        lambda: schemas.tiers.CategoryRenamed, "POST /api/tree/rename", "path", "to"
    )
    tree_prune = Method(lambda: schemas.tiers.TreePruned, "POST /api/tree/prune")
    tree_undo = Method(lambda: schemas.tiers.RebuildUndone, "POST /api/tree/undo")
    # A page of the archive; `query` narrows it by words.
    cold = Method(lambda: schemas.memory.MemoryPage, "GET /api/cold", "query", "limit", "offset")
    # Create the tables of a database (`url`, `token`); search a database that holds memories.
    cold_init = Method(lambda: schemas.sync.Initialized, "POST /api/cold/init")
    cold_search = Method(lambda: schemas.sync.ColdFound, "POST /api/cold/search", "query", "limit")

    kv_get = Method(lambda: schemas.tiers.Pair, "GET /api/kv/{key}")
    kv_set = Method(lambda: schemas.tiers.PairStored, "PUT /api/kv/{key}", "value")
    kv_delete = Method(lambda: schemas.tiers.PairDeleted, "DELETE /api/kv/{key}")
    kv_list = Method(lambda: schemas.tiers.PairPage, "GET /api/kv", "prefix", "limit", "offset")

    # The facts of a text, or of up to 50; options are of `DistilBody`.
    distill = Method(lambda: schemas.conversations.DistilledText, "POST /api/distill", "text")
    distill_all = Method(lambda: schemas.conversations.DistilledTexts, "POST /api/distill", "texts")
    # Report the turns of a conversation; after a pause the facts in it are stored. When it returns,
    # the turns are on the disk. Options are of `ObserveBody`.
    observe = Method(
        lambda: schemas.conversations.Observed, "POST /api/observe", "conversation", "turns"
    )
    # Store the turns of a conversation as they are; see `Talk`.
    turns = Method(
        lambda: schemas.conversations.TurnsStored, "POST /api/turns", "conversation", "turns"
    )
    # Fit a conversation into a model's window again.
    compact = Method(
        lambda: schemas.conversations.CompactedMessages, "POST /api/compact", "messages"
    )
    # An entity and what is up to `depth` relations away; without one, the best known.
    graph = Method(lambda: schemas.tiers.Graph, "GET /api/graph", "entity", "depth", "limit")
    change_entity = Method(lambda: schemas.tiers.Entity, "PUT /api/graph/{name}")
    # What a note lacks: today's, or that with a `text`.
    validate = Method(lambda: schemas.upkeep.Validated, "POST /api/validate")

    # What the agent has learned, newest first; add to it.
    reflections = Method(lambda: schemas.learning.ReflectionPage, "GET /api/reflections")
    reflect = Method(lambda: schemas.learning.ReflectionStored, "POST /api/reflections")
    # Summaries of conversations, newest first; add an episode.
    episodes = Method(lambda: schemas.learning.EpisodePage, "GET /api/episodes")
    add_episode = Method(lambda: schemas.learning.EpisodeStored, "POST /api/episodes")
    # The skills without their texts; a skill with its text; write a skill.
    skills = Method(lambda: schemas.learning.SkillPage, "GET /api/skills", "limit", "offset")
    skill = Method(lambda: schemas.learning.SkillView, "GET /api/skills/{id}")
    add_skill = Method(lambda: schemas.learning.SkillStored, "POST /api/skills")
    knowledge = Method(lambda: schemas.learning.KnowledgeView, "GET /api/knowledge")

    # The sessions, newest first; open a session.
    sessions = Method(lambda: schemas.learning.SessionPage, "GET /api/sessions")
    start_session = Method(lambda: schemas.learning.Session, "POST /api/sessions")
    session = Method(lambda: schemas.learning.Session, "GET /api/sessions/{id}")
    archive_session = Method(lambda: schemas.learning.Session, "POST /api/sessions/{id}/archive")

    # The experiences of most weight; those with a similar intent.
    experiences = Method(lambda: schemas.learning.ExperiencePage, "GET /api/experiences")
    similar_experiences = Method(
        lambda: schemas.learning.SimilarExperiences,
        *("GET /api/experiences/search", "q", "tags", "limit"),
    )
    # Store an experience (`ExperienceBody`); show, use and delete one.
    add_experience = Method(lambda: schemas.learning.ExperienceView, "POST /api/experiences")
    experience = Method(lambda: schemas.learning.ExperienceView, "GET /api/experiences/{id}")
    use_experience = Method(
        lambda: schemas.learning.ExperienceView, "POST /api/experiences/{id}/use"
    )
    delete_experience = Method(
        lambda: schemas.learning.ExperienceDeleted, "DELETE /api/experiences/{id}"
    )
    # Take faded experiences out of recall; count them by type.
    prune_experiences = Method(lambda: schemas.learning.Pruned, "POST /api/experiences/prune")
    experience_stats = Method(
        lambda: schemas.learning.ExperienceStats, "GET /api/experiences/stats"
    )
    # Store the experiences in a conversation: the fields of `Talk`.
    observe_experiences = Method(
        lambda: schemas.conversations.ExperiencesObserved,
        *("POST /api/experiences/observe", "conversation"),
    )
    # What users prefer; store a preference, which repeating makes surer.
    preferences = Method(lambda: schemas.learning.PreferencePage, "GET /api/preferences")
    prefer = Method(
        lambda: schemas.learning.PreferenceView,
        *("POST /api/preferences", "category", "value", "user"),
    )

    # The agent's replication; send and receive everything now.
    sync_status = Method(lambda: schemas.sync.SyncStatus, "GET /api/sync")
    sync = Method(lambda: schemas.sync.Synced, "POST /api/sync")
    verify = Method(lambda: schemas.sync.Verification, "POST /api/restore", verify=True)
    # The devices of the replica; stop waiting for one, by id or name; use this one again.
    devices = Method(lambda: schemas.sync.DeviceList, "GET /api/devices")
    retire_device = Method(lambda: schemas.sync.DeviceRetired, "POST /api/devices/{id}/retire")
    rejoin = Method(lambda: schemas.sync.DeviceRejoined, "POST /api/devices/rejoin")
    # Whether replicas are sealed; make the keys; invite a device, see who has typed
    # the code, and answer; take part with a code, and take the keys once they are given.
    seal_status = Method(lambda: schemas.sealing.SealStatus, "GET /api/seal")
    make_keys = Method(lambda: schemas.sealing.RecoveryKeyMade, "POST /api/seal")
    invite = Method(lambda: schemas.sealing.Invited, "POST /api/pair")
    visitor = Method(lambda: schemas.sealing.Visitor, "GET /api/pair")
    answer_visitor = Method(
        lambda: schemas.sealing.VisitorAnswered, "POST /api/pair/answer", "accept"
    )
    join = Method(lambda: schemas.sealing.Knocked, "POST /api/join", "code")
    joined = Method(lambda: schemas.sealing.KeysTaken, "GET /api/join")

    # The parts of watched files that answer, best first.
    files_search = Method(lambda: schemas.files.FilesFound, "POST /api/files/search", "query")
    # Lines of a watched file; its chunks; look at every file now.
    files_get = Method(lambda: schemas.files.FileLines, "POST /api/files/get", "path")
    files_chunks = Method(lambda: schemas.files.ChunkList, "GET /api/files/chunks", "path")
    files_sync = Method(lambda: schemas.files.FilesSynced, "POST /api/files/sync")
    # A page of the watched files; how much is indexed.
    files_list = Method(lambda: schemas.files.FilePage, "GET /api/files/list", "prefix")
    files_stats = Method(lambda: schemas.files.FilesStats, "GET /api/files/stats")
    files_add = Method(lambda: schemas.files.PathAdded, "POST /api/files/paths", "path")
    files_remove = Method(lambda: schemas.files.PathRemoved, "DELETE /api/files/paths", "path")

    # Run the upkeep now: `quick`, `daily`, `monthly` or `full`; `dry_run` changes nothing.
    consolidate = Method(lambda: schemas.upkeep.Consolidated, "POST /api/consolidate", "mode")
    # Store the facts of the daily notes; the schedule of the upkeep.
    ingest = Method(lambda: schemas.upkeep.Ingested, "POST /api/ingest")
    upkeep = Method(lambda: schemas.upkeep.UpkeepStatus, "GET /api/upkeep")
    # Import a text, a path or a database, as `ImportBody` describes it.
    import_ = Method(lambda: schemas.sync.Imported, "POST /api/import")
    try_encoder = Method(lambda: schemas.stats.EncoderTrial, "POST /api/encoder/try")
    agents = Method(lambda: schemas.status.AgentList, "GET /api/agents")
    status = Method(lambda: schemas.status.Status, "GET /api/status")
    config = Method(lambda: schemas.status.ConfigPage, "GET /api/config")
    # Set values by dotted key and take out the keys in `unset`: all of it, or nothing.
    configure = Method(lambda: schemas.status.ConfigChanged, "PUT /api/config", "set", "unset")
    metrics = Method(lambda: schemas.status.Metrics, "GET /api/metrics")
    metrics_history = Method(lambda: schemas.stats.MetricsHistory, "GET /api/metrics/history")
    live = Method(lambda: schemas.stats.LiveMetrics, "GET /api/metrics/live")
    stats = Method(lambda: schemas.stats.Stats, "GET /api/memory/stats")

    # The tools for models, in the form of MCP or a provider; use a tool with a model's
    # arguments, where `tools` says of which preset it is.
    tools = Method(lambda: schemas.tools.ToolList, "GET /api/tools").part(lambda page: page.tools)
    use_tool = Method(
        lambda: dict[str, Any],
        "POST /api/tools/{name}",
        "arguments",
        "tools",
        whole="arguments",
    )
    # `ok` or `degraded`; the latter is an answer here, not an error.
    health = HealthMethod(lambda: schemas.status.Health, "GET /api/health")


class Client(Calls, Caller):
    """The methods of `Calls`, and the streams; see `Caller` for the connection and other calls."""

    def backup(self, *, seal: bool = False) -> Iterator[bytes]:
        """All of the agent's memory as one archive (a `.tar.gz`), in pieces as they come.

        Uses a separate connection. The archive is a snapshot; with `seal` only the owner's devices
        and the recovery key open it.

        Raises:
            AnswerLost: it broke off; the archive is incomplete.
        """
        return self.download("/api/backup", {"seal": seal or None})

    def export(self) -> Iterator[dict[str, Json]]:
        """All rows, an object each with its `kind`; raises `AnswerLost` if it breaks off."""
        return map(json.loads, lines_of(self.download("/api/export")))

    def events(
        self, types: Sequence[str] = (), last_id: str | None = None
    ) -> Iterator[tuple[str, str, Json]]:
        """Events from now on, as (id, type, data), over a separate connection.

        Ends when the daemon stops.

        Args:
            types: only these; default: all.
            last_id: of the last event seen, to get those missed since (of the last 1000) first.

        Raises:
            AnswerLost: the stream broke off, or was silent longer than the daemon ever is.
        """
        return self.stream("/api/events", {"types": ",".join(types) or None}, last_id)
