"""Talk to the daemon from any Python program.

with Client(agent="assistant") as memory:
    memory.store("Ana prefers tea", category="people/ana", importance=0.8)
    for found in memory.recall("what does Ana drink?").results:
        print(found.text)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import shapes
from .caller import place
from .conversations import ConversationCalls
from .errors import refusal
from .memories import MemoryCalls
from .wire import lines_of

if TYPE_CHECKING:
    from .caller import Json


class Client(MemoryCalls, ConversationCalls):
    """The daemon's calls as methods; see `Caller` for the connection, and for any other call.

    Options that a method passes on are the fields of the request in `thermocline.daemon.shapes`.
    """

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

    def devices(self) -> shapes.sync.DeviceList:
        """The devices that share the agent's replica."""
        return self.ask(shapes.sync.DeviceList, "GET", "/api/devices")

    def retire_device(self, device_id: str) -> shapes.sync.DeviceRetired:
        """Stop waiting for a device, by its id, the beginning of it, or its name."""
        path = place("/api/devices", device_id) + "/retire"
        return self.ask(shapes.sync.DeviceRetired, "POST", path)

    def rejoin(self) -> shapes.sync.DeviceRejoined:
        """Use the daemon's own device again after it was retired."""
        return self.ask(shapes.sync.DeviceRejoined, "POST", "/api/devices/rejoin")

    def verify(self) -> shapes.sync.Verification:
        """Check that a restore from the replica would bring everything back."""
        return self.ask(shapes.sync.Verification, "POST", "/api/restore", body={"verify": True})

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
        return self.ask(shapes.files.PathRemoved, "DELETE", "/api/files/paths", {"path": path})

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
