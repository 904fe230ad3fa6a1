"""Upkeep now and on schedule; replication and the devices that share it."""

from __future__ import annotations

import time

from ..client.errors import ApiError
from ..client.wording import ago, moment, names_of, number_of, phase_of, proof_of, usage_of
from .options import DATABASE, database_of, synced
from .terminal import AnswerFields, short, show_json, show_rows, visible, worded
from .usage import PATIENT_SECONDS, Form, Verb
from .values import WrongUsage, refuse, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from ..client.caller import Caller
    from .usage import Answer, Args, Shown

# A hundred thousand memories take a minute, and a model takes its time.
_RUN_SECONDS: Final = 1800.0
_RETIRED_SEALED: Final = (
    "What is written from now on it cannot read; older rows are sealed with a new key.",
    "It may still have what it had received. If it is lost, do this now:",
    "1. make a new token at the provider, and end the old token (turso db tokens invalidate NAME)",
    "2. put the new token into sync.token_file on each other device",
)
_LINES: Final = (
    ("ingested_facts", "facts stored from notes"),
    ("ingest_skipped", "facts already known"),
    ("evicted_warm", "faded memories archived"),
    ("expired", "expired memories deleted"),
    ("pruned_nodes", "empty categories removed"),
    ("merged", "memories merged into others"),
    ("superseded", "memories marked as contradicted"),
    ("forgotten", "memories deleted after long disuse"),
)


def _consolidate(args: Args, client: Caller) -> Shown:
    database = database_of(args)
    done = client.call(
        "POST /api/consolidate",
        **{"mode": "quick", **args.present("mode", "dry_run", "llm_endpoint")},
    )
    if not args.dry_run:
        synced(client, database)
    for name in ("ingest_error", "model_error"):
        if trouble := done.get(name):
            say(visible(str(trouble)))
    return lambda: _show_done(done)


def _show_done(done: Answer) -> None:
    rows = [(f"{done[name]:,}", words) for name, words in _LINES if done.get(name)]
    if rows:
        show_rows(rows)
    elif not done.get("tree_changes"):
        print("nothing to change")
    for change in done.get("tree_changes") or ():
        print("tree:", visible(change))
    for finding in done.get("report") or ():
        print("report:", visible(finding))
    if done.get("report_file"):
        print("wrote", visible(done["report_file"]))
    how = "dry run, nothing changed," if done["dry_run"] else "done"
    hot = (
        worded("; {promoted:memory memories} in the hot state", done) if "promoted" in done else ""
    )
    print(f"{done['mode']}: {how} in {done['took_ms'] / 1000:.1f} s{hot}")


def _ingest_daily(args: Args, client: Caller) -> Shown:
    refuse(args.days is not None and args.days < 1, "--days: expected 1 or more")
    database = database_of(args)
    request = args.present("days", "llm_endpoint")
    done = client.call("POST /api/ingest", **request, dry_run=bool(args.dry_run))
    if not args.dry_run:
        synced(client, database, memories=[fact["id"] for fact in done["facts"] if fact.get("id")])
    for note in done["files"]:
        if note.get("why"):
            say(visible(f"did not read {note['file']}: {note['why']}"))
    if done.get("model_error"):
        say(visible(f"by rules, without a model: {done['model_error']}"))
    return lambda: _show_ingested(done)


def _show_ingested(done: Answer) -> None:
    show_rows(
        (
            short(fact.get("id") or ""),
            *(worded("{importance:share}", fact), fact["category"], fact["text"]),
        )
        for fact in done["facts"]
    )
    stored = "would store" if done["dry_run"] else "stored"
    files = sum(note["status"] != "refused" for note in done["files"])
    facts = worded("{facts_stored} of {facts_found} facts", done)
    print(f"{stored} {facts} in {number_of(files, 'note', 'notes')}")


def _show_schedule(status: Answer, _: Answer) -> None:
    if status["schedules"]:
        head = ("run", f"times ({status['zone']})", "last", "next", "")
        show_rows([head, *map(_schedule, status["schedules"])])
    else:
        print("nothing is scheduled: see upkeep.* in the configuration")
    if running := status.get("running"):
        done = f", {running['step']} done" if running.get("step") else ""
        print(f"running: {running['mode']}, started {ago(running['since'])}{visible(done)}")


def _schedule(schedule: Answer) -> tuple[str, ...]:
    seconds, every, error = (schedule.get(name) for name in ("seconds", "every", "error"))
    duration = "" if seconds is None else f"took {seconds:.1f} s"
    following = schedule.get("next")
    return (
        schedule["name"],
        schedule.get("cron") or ("" if every is None else f"every {every / 86_400:g} days"),
        moment(schedule.get("last")),
        "by hand" if following is None else _when(following),
        f"FAILED: {error}" if error else duration,
    )


def _when(seconds: float) -> str:
    """A future time with its hour, and with its year if that is not the current year."""
    local = time.localtime(seconds)
    this_year = local.tm_year == time.localtime().tm_year
    return time.strftime("%b %d %H:%M" if this_year else "%b %d %H:%M %Y", local)


def _sync(args: Args, client: Caller) -> Shown:
    if args.now:
        done = client.call("POST /api/sync")
        ms = done["took_ms"]
        text = f"{_counts(done)} in " + (f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms")
        nothing = not (done["sent"] or done["received"] or done["refused"])
        return f"{text}: nothing to do" if nothing else text
    status = client.call("GET /api/sync")
    return lambda: show_rows(_sync_rows(status), is_whole=True)


def _counts(answer: Answer) -> str:
    text = worded("sent {sent:count}, received {received:count}", answer)
    if answer.get("refused"):
        text += f", left out {answer['refused']:,} that cannot be read"
    return text


def _sync_rows(status: Answer) -> Iterator[tuple[str, str]]:
    yield "replica", _replica(status)
    if epoch := status.get("seal_epoch"):
        before = "NOT YET: rows from before are there until the first device has sealed all"
        who = before if status.get("unsealed") else "only your devices can read it"
        yield "sealed", f"{who} (key {epoch}); EvoClaw's views are empty"
    yield "state", phase_of(AnswerFields.of(status))
    if status.get("message"):
        yield "", status["message"]
    if status.get("hint"):
        yield "remedy", status["hint"]
    waiting = (number_of(count, *names_of(kind)) for kind, count in status["outbox"].items())
    yield "to send", ", ".join(waiting) or "nothing"
    if status.get("lost_values"):
        lost = worded("{lost_values:value values} lost to a later change elsewhere", status)
        yield "conflicts", f"{lost}: thermocline history --conflicts"
    for note in status.get("notes") or ():
        yield "left out", note
    if away := status.get("away"):
        yield "away", f"not seen for 90 days: {', '.join(away)}"
    if status["replica"] != "none":
        last = status.get("last_success")
        yield "last success", "none since the daemon started" if last is None else ago(last)
        if (following := status.get("next_poll")) and status["phase"] == "idle":
            yield "next poll", ago(max(following, time.time()))
        yield "since start", _counts(status)
        if usage := status.get("usage"):
            yield "used today", usage_of(AnswerFields.of(usage["today"]), usage.get("budget", 0))
            yield "this month", usage_of(AnswerFields.of(usage["month"]))
        yield "restore", proof_of(AnswerFields.of(status.get("verification")))
    yield "device", worded("{name} ({id})", status["device"])


def _replica(status: Answer) -> str:
    if status["replica"] == "none":
        return worded("none: set {configured_by} to replicate", status)
    if status["replica"] == "unknown":
        unusable = "the configured database cannot be used"
        return unusable if status.get("message") else "not checked yet"
    return worded("{url} ({configured_by})", status)


def _sync_critical(args: Args, client: Caller) -> int:
    """Send the hot state and the tree; answer as EvoClaw does: JSON on a line, errors as a text."""
    try:
        answer = client.call("POST /api/sync", critical=True, **database_of(args))
    except (WrongUsage, ApiError) as error:
        if hint := getattr(error, "hint", None):
            say(visible(hint))
        show_json({"error": str(error)}, one_line=True)
        return 1
    now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    # As Python's isoformat has it, with a colon in the offset.
    show_json({"synced": answer["synced"], "timestamp": f"{now[:-2]}:{now[-2:]}"}, one_line=True)
    return 0


def _devices(args: Args, client: Caller) -> Shown:
    if args.retire is not None:
        retired = client.call("POST /api/devices/{id}/retire", id=args.retire)
        lines = [worded("retired {name} ({id})", retired)]
        lines += _RETIRED_SEALED if retired.get("sealed") else ()
        return lambda: print("\n".join(map(visible, lines)))
    if args.rejoin:
        done = client.call("POST /api/devices/rejoin")
        counts = worded("rejoined: sent {sent:count}, received {received:count}", done)
        return counts if done["rejoined"] else "this device was not retired"
    devices = client.call("GET /api/devices")["results"]
    if not devices:
        return lambda: say("no device has replicated yet")
    head = ("device", "name", "first contact", "last contact", "rows behind", "release", "")
    return lambda: show_rows([head, *map(_device, devices)], is_whole=True)


def _device(device: Answer) -> tuple[str, ...]:
    behind = device.get("behind")
    notes = ["this device"] if device.get("this") else []
    if device.get("retired_at") is not None:
        notes.append(f"retired {ago(device['retired_at'])}")
    if (epoch := device.get("epoch")) is not None:
        has = f"has key {epoch}" if epoch else "has no key"
        notes.append(has if device["can_read"] else f"{has}: cannot read what is written now")
    times = (moment(device["first_at"]), ago(device["last_at"]))
    return (
        *(device["id"], device["name"], *times),
        "-" if behind is None else f"{behind:,}",
        device.get("release") or "-",
        ", ".join(notes),
    )


VERBS: Final = {
    "consolidate": Verb(
        Form("", _consolidate, seconds=_RUN_SECONDS),
        options=f"""
        --mode quick|daily|monthly|full  what to run (default quick)
        --dry-run           change nothing, and show what would be done
        --llm-endpoint URL  use the model at this address
        {DATABASE}""",
        note=(
            "quick    update scores, archive faded memories, write the hot state and MEMORY.md\n"
            "daily    store facts from the daily notes, then quick; prune the tree, merge\n"
            "         duplicates\n"
            "monthly  daily; rebuild the tree, clean the archive\n"
            "full     monthly; analyse the tree, and write tree-report.md\n\n"
            "The daemon runs all of it on a schedule: see thermocline upkeep. An interrupted run\n"
            "starts again the next time. thermocline tree --undo undoes a rebuild of the tree."
        ),
    ),
    "ingest-daily": Verb(
        Form("", _ingest_daily, seconds=_RUN_SECONDS),
        options=f"""
        --days N            number of days, including today (default 2)
        --dry-run           store nothing, and show what would be stored
        --llm-endpoint URL  have the model at this address read the notes
        {DATABASE}""",
        note=(
            "The notes are the files YYYY-MM-DD*.md in the agent's memory/, and in that of its\n"
            "workspace. Facts that are already known, or were forgotten, are not stored again.\n"
            "Facts are ticked boxes, lines that begin in bold, items that say what is on a day,\n"
            "and items and sentences that state a decision; ingest.categories in the\n"
            "configuration maps headings to categories."
        ),
    ),
    "upkeep": Verb(
        Form("", "GET /api/upkeep", _show_schedule),
        note=(
            "upkeep.* in the configuration sets the times; thermocline consolidate runs it at once."
        ),
    ),
    "sync": Verb(
        Form("", _sync, seconds=PATIENT_SECONDS),
        options="--now  send and receive now, and wait for it",
    ),
    "sync-critical": Verb(
        Form("", _sync_critical, seconds=PATIENT_SECONDS),
        options=DATABASE,
        note='It answers in JSON: {"synced", "timestamp"}, or {"error"} and exit code 1.',
    ),
    "devices": Verb(
        Form("", _devices, seconds=PATIENT_SECONDS),
        options="""
        --retire ID|NAME  do not wait any longer for a device that is gone
        --rejoin          use this device again after --retire""",
        exclusive="retire rejoin",
        note=(
            "A deletion is kept until every device that is not retired has received it.\n"
            "Everything that a retired device has sent is kept."
        ),
    ),
}
