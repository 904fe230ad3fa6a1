"""Storing, showing, listing and changing memories; and how people and EvoClaw's tools read them."""

from __future__ import annotations

import json

from ..client.wording import heading_of, moment, number_of, one_line
from .options import DATABASE, FIELDS, FILTERS, PAGE, database_of, fields_of, patience, synced
from .terminal import cut, page, short, show_json, show_rows, visible
from .usage import PATIENT_SECONDS, Form, Verb
from .values import WrongUsage, refuse, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Final, TypeAlias

    from ..client.caller import Caller
    from .usage import Answer, Args, Shown

    Memory: TypeAlias = Mapping[str, Any]

# The columns of a replaced text that are shown.
_REPLACED_COLUMNS: Final = 80
_RECORD: Final = (
    "id", "text", "category", "importance", "created_at", "access_count", "score", "metadata",
    "tier",
)  # fmt: skip


def record(memory: Memory, *more: str) -> dict[str, Any]:
    """A memory in the shape of EvoClaw's warm-memory.json, with the further keys that it has."""
    return {key: memory[key] for key in (*_RECORD, *more) if key in memory}


def headline(memory: Memory) -> str:
    """A memory on one line; replaced ones and those from outside are marked."""
    text = str(memory["text"]).strip()
    subject = heading_of(memory.get("subject") or "", text)
    line = f"{subject}: {text}" if subject else text
    # An agent that runs the command reads this line too.
    line = f"[from {memory['quoted_from']}] {line}" if memory.get("quoted_from") else line
    line = f"{line} → {memory['outcome']}" if memory.get("outcome") else line
    if memory.get("merged_into"):
        return f"[merged into {short(memory['merged_into'])}] {line}"
    if memory.get("superseded_by"):
        return f"[superseded by {short(memory['superseded_by'])}] {line}"
    return line


LINE: Final = (
    "{id:short}",
    "{created_at:moment}",
    "{tier}",
    "{importance:share}",
    "{category}",
    headline,
)


def show_list(answer: Answer, fields: Answer) -> None:
    """Show a page of memories, which some of the fields of its request may have narrowed."""
    is_narrowed = fields.keys() - {"limit", "offset", "order", "reverse"}
    empty = "no memory matches" if is_narrowed else "no memories"
    page("results", *LINE, empty=empty)(answer, fields)


def _store(args: Args, client: Caller) -> None:
    refuse(args.text is None, "a text is missing: give it as a word, or with --text")
    fields, database = fields_of(args), database_of(args)
    client.timeout = patience(database)
    if args.force:
        fields["force"] = True
    stored = client.call("POST /api/memory", text=args.text, **fields)
    is_synced = synced(client, database, memories=[stored["id"]])
    new, supersedes = stored.get("stored", True), stored.get("supersedes", ())
    if not args.json:
        where = f"{short(stored['id'])} in {visible(stored['category'])}"
        if new:
            always = "; standing: in every context" if stored["standing"] else ""
            print(f"stored {where}{always}")
        else:
            # The category of a known memory may be another than the given one.
            uses = number_of(stored["access_count"], "time", "times")
            print(f"already known: {where} (used {uses})")
        for key in supersedes:
            text = one_line(client.call("GET /api/memory/{id}", id=key)["text"])
            print(f"replaces {short(key)}: {cut(visible(text), _REPLACED_COLUMNS)}")
        if warning := stored.get("warning"):
            say(warning)
        return
    answer = {name: stored[name] for name in ("id", "category")}
    # The initial temperature, which EvoClaw derives from the importance alone.
    tiers = ("hot", 0.7), ("warm", 0.3), ("cold", 0.05), ("frozen", 0.0)
    tier = next(tier for tier, least in tiers if stored["importance"] >= least)
    answer |= {"tier": tier, "metadata": stored["metadata"]}
    answer["cold_synced"] = is_synced
    if supersedes:
        answer["supersedes"] = supersedes
    if not new:
        answer |= {"stored": False, "known": stored["known"]}
    if "warning" in stored:
        answer["warning"] = stored["warning"]
    show_json(answer, one_line=True)


def _update(args: Args, client: Caller) -> Shown:
    changes = fields_of(args) | args.present("text")
    if args.no_tags:
        changes["tags"] = []
    if not changes:
        raise WrongUsage("nothing to change: give at least one field, such as --text")
    updated = client.call("PUT /api/memory/{id}", id=args.id, **changes)
    if "warning" in updated and not args.json:
        say(updated["warning"])
    return f"updated {short(updated['id'])}"


def _show_one(memory: Memory, _: Mapping[str, Any]) -> None:
    print(visible(memory["text"], keep="\n\t"))
    print()
    show_rows(_details(memory))


def _details(memory: Memory) -> Iterator[tuple[str, str]]:
    yield "id", memory["id"]
    original = memory.get("original_category")
    yield "category", memory["category"] + (f" (filed under {original})" if original else "")
    yield "kind", f"{memory['type']}, {memory['event']}"
    yield from _named(memory, ("subject", "outcome"))
    yield "tier", f"{memory['tier']} (score {memory['score']:.2f})"
    marks = [f"{memory['importance']:.2f}"]
    marks += [mark for mark in ("pinned", "standing") if memory.get(mark)]
    yield "importance", ", ".join(marks)
    yield from _named(memory, ("tags", "actor", "source", "group", "position"))
    for kind in ("urls", "commands", "paths"):
        for reference in memory["metadata"].get(kind, ()):
            yield kind[:-1], reference
    if memory.get("data") is not None:
        yield "data", json.dumps(memory["data"], ensure_ascii=False)
    yield "created", moment(memory["created_at"])
    if memory.get("updated_at", memory["created_at"]) != memory["created_at"]:
        yield "updated", moment(memory["updated_at"])
    if uses := memory.get("access_count"):
        times = number_of(uses, "time", "times")
        # Imports may not say when.
        last = memory.get("last_accessed_at")
        yield "used", times if last is None else f"{times}, last {moment(last)}"
    if memory.get("expires_at") is not None:
        yield "expires", moment(memory["expires_at"])
    yield from _named(memory, ("merged_into", "superseded_by", "writer"))


def _named(memory: Memory, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    for key in keys:
        value = memory.get(key)
        if value not in ("", None, []):
            text = ", ".join(value) if isinstance(value, list) else str(value)
            yield key.replace("_", " "), text


def _search_url(args: Args, client: Caller) -> None:
    refuse(args.url is None, "a URL is missing: give a part of it")
    limit = 5 if args.limit is None else args.limit
    memories = client.call("GET /api/memory", url=args.url, limit=limit, order="score")["results"]
    if args.json:
        results = [record(memory) for memory in memories]
        show_json({"query": args.url, "results_count": len(results), "results": results})
    else:
        show_list({"results": memories}, {"url": args.url})


def _cold(args: Args, client: Caller) -> Shown | None:
    database, query = database_of(args), args.query or ""
    client.timeout = PATIENT_SECONDS if args.init else patience(database)
    if database and args.offset:
        raise WrongUsage("--offset: not available with --db-url, which returns the best matches")
    if args.init:
        client.call("POST /api/cold/init", **database)
        return "the archive is ready"
    limit, offset = 10 if args.limit is None else args.limit, args.offset or 0
    if database:
        answer = client.call("POST /api/cold/search", query=query, limit=limit, **database)
    else:
        answer = client.call("GET /api/cold", query=query, limit=limit, offset=offset)
    if args.json:
        more = ("search_method", "relevance") if database else ()
        show_json([record(memory, *more) for memory in answer["results"]])
        return None
    return lambda: show_list(answer, {"offset": offset, **args.present("query")})


_IMPORTANCE_NOTE: Final = """importance:
  0.9-1.0  critical decisions, credentials, who somebody is
  0.7-0.8  decisions of a project, preferences
  0.5-0.6  general; 0.6 is the default
  0.3-0.4  casual

examples:
  thermocline store "Ana prefers tea" --category people/ana --importance 0.8
  git log -1 --format=%B | thermocline store - --category projects/x"""

VERBS: Final = {
    "store": Verb(
        Form("[TEXT]", _store),
        options=f"""
        TEXT                        the text; - reads it from stdin
        --text TEXT                 the text, in place of the first word
        {FIELDS}
        --force                     store it even if the text is known
        {DATABASE}""",
        note=_IMPORTANCE_NOTE,
    ),
    "get": Verb(
        Form("ID", "GET /api/memory/{id}", _show_one),
        options="ID  its id, or at least its first 4 characters",
    ),
    "list": Verb(
        Form("", "GET /api/memory", show_list),
        options=f"""
        --limit N                   maximum number of results (default 50)
        --offset N                  number of results to skip
        --order newest|oldest|score|importance|uses|type|category|subject  default newest
        --reverse                   turn the order round
        {FILTERS}
        --url PART                  part of a URL that it mentions
        --archived true|false       in the archive, or not
        --outside true|false        from outside, for which nobody's word stands yet, or not
        --merged-into ID            what was merged into this memory""",
        note="example:\n  thermocline list --category projects --tag urgent --order score",
    ),
    "update": Verb(
        Form("ID", _update),
        options=f"""
        ID                          its id, or at least its first 4 characters
        --text TEXT                 the new text; - reads it from stdin
        {FIELDS}
        --no-tags                   remove its tags""",
        note=(
            "Fields that are not given keep their value; --tag, --url, --cmd and --path replace\n"
            "the previous ones.\n\n"
            "example:\n  thermocline update 3f2a9c1b --importance 0.9 --tag urgent"
        ),
    ),
    "search-url": Verb(
        Form("[URL]", _search_url),
        options="""
        URL          part of it, in any case
        --url URL    the same, in place of the first word
        --limit N    maximum number of results (default 5)""",
    ),
    "cold": Verb(
        Form("", _cold),
        options=f"""
        --query TEXT    words to look for; default: all memories
        --init          create the replica's tables where they are missing
        {PAGE}
        {DATABASE}""",
        exclusive="query init",
        note="With --db-url it searches that database instead of this device.",
    ),
}
