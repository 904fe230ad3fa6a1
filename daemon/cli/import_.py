"""`thermocline import`: import what other tools, or other people, have written.

The command reads the files with the rights of its user, and sends the daemon their entries:
the daemon opens no file on behalf of a caller.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from ..client.caller import Caller
from ..client.errors import ApiError
from ..client.wording import names_of, number_of
from ..errors import InvalidInput
from .options import token_of
from .terminal import show_json, visible
from .usage import PATIENT_SECONDS, Args, Form, Verb
from .values import PROGRAM, WrongUsage, decoded, read_stdin, refuse, say

if TYPE_CHECKING:  # importing it loads what no other verb needs
    from ..importers.entries import Document, ReadFault, SourceEntry
    from ..importers.source import SourcePath

SYSTEMS: Final = (
    *("aider", "basic-memory", "chatgpt", "claude", "claude-code", "claude-mem", "codex"),
    *("evoclaw", "jsonl", "mcp-memory", "mem0", "openclaw", "profclaw", "scalyclaw", "texts"),
    "tinyclaw",
)
_FILES: Final = ("hot", "warm", "tree", "metrics", "memory-md", "rows")
# The size of a part. Half of a request's default limit: JSON may escape what it holds.
_MOST_BYTES: Final = 400_000
_MOST_ENTRIES: Final = 500
_NAMED: Final = 10
_LINES: Final = 1_000
# The reason of the daemon for what it has.
_THERE: Final = "already there"
_NUMBER: Final = re.compile(r"memories: \[(\d+)\]")


def _import(args: Args, client: Caller) -> None:
    refuse(bool(args.path) == bool(args.db_url), "give a PATH or --url")
    token = token_of(args)
    refuse(token and not args.db_url, "a token needs --url")
    client.timeout = PATIENT_SECONDS
    if args.db_url or args.path == "-":
        _run_whole(args, client, token)
        return
    sending = _send_path(args, client)
    if len(sending.others) == 1 and not sending.reports[""].read:
        # The agent's name elsewhere need not be its name here.
        sending = _send_path(args, client, *sending.others)
    _show_all(args, sending.reports, sorted(sending.others))


def _send_path(args: Args, client: Caller, renamed: str | None = None) -> _Sending:
    """Send what the path has; that of the agent `renamed` too goes to the agent of the command."""
    from ..importers.source import SourcePath  # noqa: PLC0415 - no other verb needs the readers

    path = Path(args.path).expanduser().resolve()
    with SourcePath(path) as source, _Sending(args, client, renamed) as sending:
        if not source.is_folder and not source.stat.st_size:
            raise WrongUsage(f"{args.path} is empty")
        sending.format, reading = _reading(args, source)
        for entry in reading:
            sending.take(entry)
        sending.send()
        is_read = sending.others or any(report.read.total() for report in sending.reports.values())
        if args.format in (*SYSTEMS, "rows") and not is_read:
            from ..importers import formats  # noqa: PLC0415 - as above

            if not formats.detected(source):
                _refuse_unknown(args, source)
    return sending


def _reading(
    args: Args, source: SourcePath
) -> tuple[str, Iterator[SourceEntry | Document | ReadFault]]:
    """The named or detected format, and its content."""
    from ..importers import formats  # noqa: PLC0415 - as above
    from ..importers.entries import ReadFault  # noqa: PLC0415 - as above
    from ..importers.systems import evoclaw, exports, json_files  # noqa: PLC0415 - as above

    detected = [format_.name for format_ in formats.detected(source)]
    if not detected and (args.format in (None, evoclaw.EVOCLAW.name) or b"\0" in source.head):
        if source.head.startswith(exports.ZIP) and (fault := source.obstacle) is not None:
            raise InvalidInput(f"cannot import {fault.place}: it {fault.why}")
        _refuse_unknown(args, source)
    if args.format in _FILES:
        refuse(source.is_folder, f"--format {args.format} needs a file")
        expected = json_files.JSONL if args.format == "rows" else evoclaw.EVOCLAW
        _agree(args, expected.name, detected)
        return args.format, evoclaw.state_file(source, args.format)
    if args.format:
        _agree(args, args.format, detected)
    format_ = formats.named(args.format or detected[0])
    reading = chain(format_.read(source), source.faults())
    unread = [
        ReadFault(str(source.path), f"it also has data of {name}: import it with --format {name}")
        for name in (detected[1:] if args.format is None else ())
    ]
    # The first lines of a report are shown.
    return format_.name, chain(unread, reading)


def _refuse_unknown(args: Args, source: SourcePath) -> None:
    """Raise what the path is, and what the named format or else a format is needed for."""
    from ..importers import formats  # noqa: PLC0415 - as above

    kind = visible(formats.kind_of(source))
    if args.format:
        raise InvalidInput(
            f"{args.path} is not {args.format}: it is {kind}",
            field="format",
            hint=f"{args.format} needs {formats.NEEDS[args.format]}",
        )
    names = [*formats.NAMES, *(() if source.is_folder else _FILES)]
    raise InvalidInput(
        f"cannot import {source.path}: it is {kind}",
        field="format",
        hint=f"if it is of a known system, say so: --format {', '.join(names)}",
    )


def _agree(args: Args, format_: str, detected: list[str]) -> None:
    if detected and format_ not in detected:
        kind = " and ".join(detected)
        if str(args.path).lower().endswith(".md") and detected == ["evoclaw"]:
            kind = "a Markdown page, whose points and paragraphs evoclaw reads"
        raise InvalidInput(
            f"{args.path} is not {args.format}: it is {kind}",
            field="format",
            hint=f"leave --format out, or say --format {detected[0]}",
        )


class _Report:
    """What was imported for one agent, over all parts."""

    def __init__(self) -> None:
        # Entries by file or table, and format.
        self.read: Counter[tuple[str, str]] = Counter()
        self.left_out: list[str] = []
        self.counts: dict[str, Counter[str]] = {"stored": Counter(), "skipped": Counter()}

    def add(self, answer: dict[str, Any], places: list[str]) -> None:
        """Add an answer; `places` are those of the entries that were sent."""
        for part in answer["read"]:
            self.read[part.get("file", ""), part.get("format", "")] += part["entries"]
        for name, counts in self.counts.items():
            counts.update(answer[name])
        for line in answer["left_out"]:
            self.note(_NUMBER.sub(lambda match: places[int(match[1])], line, count=1))

    def note(self, line: str) -> None:
        if line not in self.left_out and len(self.left_out) < _LINES:
            self.left_out.append(line)

    def shown(self, *, dry_run: bool) -> dict[str, Any]:
        read = [
            {"file": place, **({"format": format_} if format_ else {}), "entries": number}
            for (place, format_), number in self.read.items()
        ]
        return {"read": read, **self.counts, "left_out": self.left_out, "dry_run": dry_run}


class _Sending:
    """Sends the entries in parts that the daemon accepts, and adds up the answers."""

    def __init__(self, args: Args, client: Caller, renamed: str | None = None) -> None:
        self._args = args
        self._renamed = renamed
        self._clients = {"": client}
        self._waiting: list[SourceEntry] = []
        self._size = 0
        self._agent = ""
        self._sent = 0
        self.format = ""
        self.others: set[str] = set()
        self.reports: dict[str, _Report] = {"": _Report()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._sent and sys.stderr.isatty():
            print(f"\r{'':30}\r", end="", file=sys.stderr, flush=True)
        for agent, client in self._clients.items():
            if agent:
                client.close()

    def take(self, entry: SourceEntry | Document | ReadFault) -> None:
        """Note a fault, send a document, and send entries once there are enough."""
        from ..importers.entries import Document, ReadFault  # noqa: PLC0415 - as above

        agent = self._whose(entry.agent)
        if agent is None:
            return
        report = self.reports.setdefault(agent, _Report())
        if isinstance(entry, ReadFault):
            report.note(f"{entry.place}: {entry.why}")
        elif isinstance(entry, Document):
            self.send()
            self._document(entry, agent)
        else:
            size = len(json.dumps(entry.fields))
            talk = entry.fields.get("group") if entry.fields.get("event") == "turn" else None
            # The rules read a conversation as a whole: what is kept must not depend on the parts.
            other = (
                self._args.distil
                and self._waiting
                and self._waiting[-1].fields.get("group") != talk
            )
            full = len(self._waiting) >= _MOST_ENTRIES or self._size + size > _MOST_BYTES
            if other or full or agent != self._agent:
                self.send()
            self._agent = agent
            self._waiting.append(entry)
            self._size += size
            report.read[entry.place, self.format] += 1

    def send(self) -> None:
        some, self._waiting, self._size = self._waiting, [], 0
        if not some:
            return
        memories = [entry for entry in some if not entry.is_experience]
        request: dict[str, Any] = {"distil": True} if self._args.distil else {}
        request["memories"] = [entry.fields for entry in memories]
        request["experiences"] = [entry.fields for entry in some if entry.is_experience]
        places = []
        for entry in memories:
            imported = (entry.fields.get("data") or {}).get("imported")
            places.append(f"{entry.place}: {str((imported or entry.fields).get('id', ''))[:80]}")
        try:
            self._ask(request, self._agent, places)
        except ApiError as error:
            # The name of another system's agent may be no agent id.
            is_large = error.status == 413 and len(some) == 1
            if not is_large and (not self._agent or error.status != 400):
                raise
            self.reports[self._agent].note(f"{some[0].place}: {error}")
        self._sent += len(some)
        if sys.stderr.isatty():
            print(f"\r{self._sent:,} entries", end="", file=sys.stderr, flush=True)

    def _whose(self, agent: str) -> str | None:
        """Under which agent something is reported: "" is the one of the command line."""
        named = self._args.agent
        if agent in ("", named, self._renamed) or (agent == "default" and named is None):
            return ""
        if named is None:
            return agent
        self.others.add(agent)
        return None

    def _document(self, document: Document, agent: str) -> None:
        request: dict[str, Any] = {
            "name": document.path.name,
            "written_at": max(0.0, document.written_at),
        }
        if document.format:
            request["format"] = document.format
        try:
            for part in _parts(document):
                self._ask({**request, "text": part}, agent, [], str(document.path))
        except ApiError as error:
            # A writer may import entries, but no rows that come with them.
            is_addition = error.status == 403 and self.reports[agent].read
            is_of_call = not document.agent and error.field in ("agent", "format")
            if not is_addition and (error.status not in (400, 413) or is_of_call):
                raise
            self.reports[agent].note(f"{document.path}: {error}")

    def _ask(self, request: dict[str, Any], agent: str, places: list[str], path: str = "") -> None:
        if agent not in self._clients:
            self._clients[agent] = Caller(self._args.socket, agent, PATIENT_SECONDS, PROGRAM)
        client = self._clients[agent]
        request["dry_run"] = bool(self._args.dry_run)
        answer = client.call("POST /api/import", **request)
        for part in answer["read"]:
            part["file"] = path
        if path:
            name = f"{request['name']}: "
            lines = [line.removeprefix(name) for line in answer["left_out"]]
            answer["left_out"] = [f"{path}: {line}" for line in lines]
        self.reports[agent].add(answer, places)


def _parts(document: Document) -> Iterator[str]:
    """The text of a document; that of a long list of memories in several."""
    text = decoded(document.content, str(document.path))
    listed: Any = None
    if len(document.content) > _MOST_BYTES and document.format in (None, "warm"):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            listed = None
    if not isinstance(listed, list):
        yield text
        return
    part: list[str] = []
    size = 0
    for record in map(json.dumps, listed):
        if part and size + len(record) > _MOST_BYTES:
            yield f"[{','.join(part)}]"
            part, size = [], 0
        part.append(record)
        size += len(record)
    yield f"[{','.join(part)}]"


def _run_whole(args: Args, client: Caller, token: str | None) -> None:
    request: dict[str, Any]
    if args.path:
        text = decoded(read_stdin(), "standard input")
        refuse(not text, "standard input is empty")
        request = {"text": text, "name": ""}
    else:
        request = {"url": args.db_url, **({"token": token} if token else {})}
    request["dry_run"] = bool(args.dry_run)
    if args.format:
        refuse(args.format not in _FILES, f"--format {args.format} needs a file or folder as PATH")
        request["format"] = args.format
    raw = {args.agent or "": client.call("POST /api/import", **request)}
    if args.agent is None:
        for agent in [other["agent"] for other in raw[""].get("others", ())]:
            with Caller(args.socket, agent, PATIENT_SECONDS, PROGRAM) as another:
                raw[agent] = another.call("POST /api/import", **request)
    _show_json_or_text(args, raw)


def _show_all(args: Args, reports: dict[str, _Report], others: list[str]) -> None:
    """Print the reports; `others` are agents that were not asked for."""
    if others and not reports[""].read:
        names = ", ".join(others)
        hint = f"leave out --agent-id, give one of {names}, or the folder of one as PATH"
        raise InvalidInput(f"nothing in {args.path} belongs to '{args.agent}'", hint=hint)
    used = {
        agent: report
        for agent, report in reports.items()
        if report.read or report.left_out or not agent
    }
    if len(used) == 1 and not used[""].read.total() and used[""].left_out:
        raise InvalidInput(f"cannot import {'; '.join(used[''].left_out[:_NAMED])}", field="path")
    if args.format and not any(report.read or report.left_out for report in used.values()):
        raise InvalidInput(f"{args.path} has nothing that {args.format} stores", field="format")
    raw = {agent: report.shown(dry_run=bool(args.dry_run)) for agent, report in used.items()}
    raw[""]["others"] = [{"agent": name, "path": args.path} for name in others]
    _show_json_or_text(args, raw)


def _show_json_or_text(args: Args, raw: dict[str, dict[str, Any]]) -> None:
    if args.json:
        show_json(next(iter(raw.values())) if len(raw) == 1 else {"agents": raw})
        return
    for agent, answer in raw.items():
        _show(agent if len(raw) > 1 else "", answer)


def _show(agent: str, answer: dict[str, Any]) -> None:
    of = f"{agent}: " if agent else ""
    for part in answer["read"][:_NAMED]:
        what = part.get("file") or part.get("table") or "text"
        print(f"{of}read {visible(what)}: {_entries(part['entries'])}")
    if more := answer["read"][_NAMED:]:
        entries = _entries(sum(part["entries"] for part in more))
        print(f"{of}read {len(more):,} more files: {entries}; --json shows them")
    would = "would store" if answer["dry_run"] else "stored"
    if not any(part["entries"] for part in answer["read"]):
        print(f"{of}nothing to import")
    elif not answer["stored"] and answer["skipped"].keys() <= {_THERE}:
        print(f"{of}nothing changed: all of it is stored already")
        answer["skipped"] = {}
    else:
        counts = (number_of(number, *names_of(kind)) for kind, number in answer["stored"].items())
        print(f"{of}{would} {', '.join(counts) or 'nothing new'}")
    if answer["skipped"]:
        counts = (f"{number:,} {why}" for why, number in answer["skipped"].items())
        print(f"{of}skipped: {', '.join(counts)}")
    for line in answer["left_out"][:_NAMED]:
        say(f"left out: {visible(line)}")
    if len(answer["left_out"]) > _NAMED:
        say(f"left out: {len(answer['left_out']) - _NAMED:,} more; --json shows them")
    for other in answer.get("others", ()) if not agent else ():
        say(f"agent {other['agent']} is there too: give --agent-id {other['agent']}")


def _entries(number: int) -> str:
    return number_of(number, "entry", "entries")


VERBS: Final = {
    "import": Verb(
        Form("[PATH]", _import),
        options=f"""
        PATH                  a file, a folder, or - for standard input
        --format {"|".join((*SYSTEMS, *_FILES))}  what PATH is; default: detect it
        --distil              of conversations, keep what rules find worth it
        --dry-run             store nothing, and show what would be stored
        --url, --db-url URL = db_url  a database of EvoClaw's: libsql:// or https://
        --token-file FILE     file that holds only its token; - reads stdin
        --auth-token TOKEN    the token itself, visible to other users""",
        note=(
            "PATH is the memory of another system, a state file, MEMORY.md, or a backup. It is\n"
            "only read, and by this command: the daemon opens no file. Repeating an import adds\n"
            "nothing; what has changed in the source is changed here, unless it was changed here\n"
            "later, and forgotten memories stay forgotten. Secrets are replaced by a mark. Every\n"
            "turn of a conversation is kept as it was said, without tools and their output;\n"
            "--distil keeps only statements. All agents of a workspace are imported unless\n"
            "--agent-id names one; the only agent of a workspace is imported into the named one.\n"
            f"formats of systems:\n  {', '.join(SYSTEMS[:8])},\n  {', '.join(SYSTEMS[8:])}\n"
            f"formats of single files:\n  {', '.join(_FILES)}\n"
            "examples:\n"
            "  thermocline import ~/.claude --dry-run\n"
            "  thermocline import chatgpt-export.zip --distil\n"
            "  thermocline import warm-memory.json.changed-20260301T120000"
        ),
    )
}
