"""Taking memories back: forgetting, merging, tidying, earlier versions and undoing."""

from __future__ import annotations

import json

from ..client.errors import ApiError
from ..client.wording import moment, number_of, one_line
from .memories import headline
from .terminal import agreed, cut, page, short, show_json, show_rows, visible, worded
from .usage import PATIENT_SECONDS, Form, Verb
from .values import refuse, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from ..client.caller import Caller
    from .usage import Args, Shown

_LONGEST_VALUE: Final = 60
_SHOWN: Final = 10
_ASK: Final = "look with --dry-run, then give --yes"
_KIND: Final = (
    "--kind KIND     what ID is: memory (default), pair, hot, category, note, entity, experience"
    " or session"
)


def _forget(args: Args, client: Caller) -> Shown | int:
    filters = args.present("category", "query", "secrets")
    refuse(args.ids and filters, "give either IDs, or --category, --query and --secrets")
    refuse(args.all and (args.ids or filters), "--all forgets the whole agent: give nothing else")
    if args.ids:
        return _forget_each(args, client)
    client.timeout = PATIENT_SECONDS
    if filters:
        answer = client.call("POST /api/memory/forget", **filters, dry_run=not args.yes)
        return lambda: _show_forgotten(answer)
    # "forget $ID" without a value names no memory, and must not mean all of them.
    missing = "say what to forget: IDs, --category, --query or --secrets, or --all with --agent"
    refuse(args.agent is None or not args.all, missing)
    agent = client.call("DELETE /api/agents/{agent}", agent=args.agent, dry_run=not args.yes)
    return lambda: _show_forgotten_agent(agent)


def _forget_each(args: Args, client: Caller) -> int:
    """Delete memories by their ids; 1 if one is unknown, after the others are deleted."""
    code = 0
    for memory_id in args.ids:
        try:
            deleted = client.call("DELETE /api/memory/{id}", id=memory_id)
        except ApiError as error:
            if error.status >= 500:
                raise
            code = 1
            if args.json:
                show_json({"error": error.as_dict()}, one_line=True)
            else:
                say(visible(str(error)))
            continue
        if args.json:
            show_json(deleted, one_line=True)
            continue
        print("forgot", short(visible(deleted["id"])))
        for restored in deleted.get("unmerged") or ():
            print(short(visible(restored)), "was merged into it, and is restored")
    return code


def _show_forgotten(answer: Mapping[str, Any]) -> None:
    count = number_of(answer["total"], "memory", "memories")
    places = answer.get("elsewhere") or ()
    if answer["forgotten"]:
        print(f"forgot {count}")
        for place in places:
            print("removed a secret from", visible(place))
        return
    print(f"would forget {count}")
    results = answer.get("results", ())
    show_rows((short(memory["id"]), memory["category"], headline(memory)) for memory in results)
    if (more := answer["total"] - len(results)) > 0:
        print(f"and {more} more")
    for place in places:
        print("holds a secret:", visible(place))
    if answer["total"] or places:
        say("nothing is deleted yet: add --yes")


def _show_forgotten_agent(answer: Mapping[str, Any]) -> None:
    does = "forgot" if answer["forgotten"] else "would forget"
    memories = number_of(answer["memories"], "memory", "memories")
    pairs = number_of(answer["key_values"], "key-value pair", "key-value pairs")
    is_behind = answer.get("replica") == "behind"
    folder = "" if is_behind else ", its folder"
    print(f"{does} the agent '{visible(answer['id'])}': {memories}, {pairs}{folder}")
    if answer.get("workspace") is not None:
        print(f"its workspace stays: {visible(answer['workspace'])}")
    if not answer["forgotten"]:
        say("nothing is deleted yet: add --yes")
    elif is_behind:
        say(visible(f"the replica is told later, since it was not reached: {answer['why']}"))
        say("its folder stays until then: repeat the command to remove it")


_EFFECTS: Final = {"duplicate": "merged into", "contradiction": "superseded by"}


def _show_tidied(answer: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    show_rows(
        (
            *(short(pair["older"]), _EFFECTS[pair["relation"]], short(pair["newer"])),
            f"{pair['older_text']} | {pair['newer_text']} ({'; '.join(pair['reasons'])})",
        )
        for pair in answer["pairs"]
    )
    listed, counted = len(answer["pairs"]), answer["merged"] + answer["superseded"]
    if listed < counted:
        print(f"and {counted - listed} more")
    merged, past = ("would merge", "") if fields.get("dry_run") else ("merged", "d")
    text = f"{merged} {{merged}}, supersede{past} {{superseded}}, archive{past} {{archived}}"
    print(worded(text + " of {examined} memories", answer))


def _unmerged(answer: Mapping[str, Any], _: Mapping[str, Any]) -> None:
    origin = f" from {short(answer['kept']['id'])}" if answer.get("kept") else ""
    print(f"unmerged {short(answer['restored']['id'])}{origin}")


def _history(args: Args, client: Caller) -> Shown:
    """List versions; conflicts that a person reads here are no longer counted."""
    answer = client.call("GET /api/history", **args.present("id", "kind", "conflicts", "limit"))
    empty = "no earlier version"
    if args.conflicts:
        empty = "there are no conflicts: no two devices have changed the same field"

    def show() -> None:
        page(
            "results",
            *("{number}", "{at:ago}"),
            lambda row: "new conflict" if _is_new(row) else row["why"] or "edited",
            lambda version: version["writer"] or f"on {version['device'][:8]}",
            _named,
            _replaced,
            empty=empty,
        )(answer, {})
        new = [version["number"] for version in answer["results"] if _is_new(version)]
        if args.conflicts and new:
            # Somebody who may only read leaves them as they are.
            try:
                client.call("POST /api/conflicts/seen", numbers=new)
            except ApiError:
                return

    return show


def _is_new(version: Mapping[str, Any]) -> bool:
    return version["why"] == "conflict" and version.get("seen_at") is None


def _named(row: Mapping[str, Any]) -> str:
    """What a version is of; only the id of a memory may be shortened."""
    return f"{row['kind']} {short(row['id']) if row['kind'] == 'memory' else row['id']}"


def _replaced(version: Mapping[str, Any]) -> str:
    """The fields that were replaced after a version, with the values that they had."""
    data, after = version["data"], version["after"]
    if version["why"] == "conflict":
        return "; ".join(
            f"{name}: old {_value(data.get(name), name)}, new {_value(after.get(name), name)}"
            for name in version["replaced"]
        )
    changes = "; ".join(
        f"{name}: {_value(data.get(name), name)} → {_value(after.get(name), name)}"
        for name in version["replaced"]
    )
    text = "" if "text" in version["replaced"] else data.get("text") or ""
    return f"{_value(text)}: {changes}" if text and isinstance(text, str) else changes


def _value(value: Any, name: str = "") -> str:
    if name.endswith("_at") and isinstance(value, int | float):
        return moment(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(visible(one_line(text)), _LONGEST_VALUE) if value is not None else "none"


def _undo(args: Args, client: Caller) -> Shown | int:
    refuse((args.id is None) == (args.by is None), "name a memory, or an author with --by")
    refuse(args.by is not None and args.since is None, "--by needs --since, such as --since 2h")
    request = args.present("id", "kind", "number", "by", "since", "dry_run")
    if args.by is not None and not (args.yes or args.dry_run):
        refuse(args.json, f"cannot ask with --json: {_ASK}")
        would = client.call("POST /api/undo", **request | {"dry_run": True})
        if rows := would["results"]:
            say(f"{number_of(len(rows), 'change', 'changes')} by {visible(args.by)}:")
            _show_undone(would, _SHOWN)
            if not agreed("undo this?", _ASK):
                return 1
    undone = client.call("POST /api/undo", **request)
    return lambda: _show_undone(undone, None)


def _show_undone(undone: Mapping[str, Any], limit: int | None) -> None:
    rows, is_plan = undone["results"], not undone["done"]
    for row in rows[:limit]:
        text = f"  {_value(row['text'])}" if row.get("text") else ""
        would = "would be " if is_plan and not row["result"].startswith("cannot") else ""
        print(f"{visible(_named(row))}: {would}{row['result']}{text}")
    if limit is not None and len(rows) > limit:
        print(f"and {len(rows) - limit:,} more")
    if not rows:
        print("nothing to undo")
    if is_plan and any(row["result"].startswith("deleted") for row in rows):
        say("what is deleted is forgotten, and cannot come back")


VERBS: Final = {
    "forget": Verb(
        Form("[ID...]", _forget),
        options="""
        ID... = ids       an id, or at least its first 4 characters
        --category PATH   all memories of this category and those below it
        --query TEXT      all memories that contain these words; - reads stdin
        --secrets         everything that holds a key, token or password
        --all             the whole agent that --agent names
        --yes             do it; default: show what would be deleted""",
        note=(
            "Memories named by ID are deleted at once.\n"
            "With --agent NAME --all the agent is deleted: its memories, key-value pairs and hot\n"
            "state, and its folder with the notes in it. A workspace elsewhere is kept.\n"
            "If the replica cannot be reached, other devices keep the agent and send it back.\n"
            "Notes that were replicated stay on the replica.\n\n"
            "examples:\n"
            "  thermocline forget 8019fd10\n"
            "  thermocline forget --category projects/old --yes\n"
            "  thermocline forget --agent assistant --all --yes"
        ),
    ),
    "merge": Verb(
        Form(
            "ID INTO",
            "POST /api/memory/{id}/merge",
            "merged {retired.id:short} into {kept.id:short}",
        ),
        options="""
        ID      the memory that is merged, and no longer found
        INTO    the memory that stays""",
        note=(
            "The memory that stays keeps its text and receives the uses, tags and references of\n"
            "the other. thermocline unmerge ID undoes it.\n\n"
            "example:\n  thermocline merge 3f2a9c1b 8019fd10"
        ),
    ),
    "unmerge": Verb(
        Form("ID", "POST /api/memory/{id}/unmerge", _unmerged),
        options="ID  the memory that was merged into another",
    ),
    "tidy": Verb(
        # A hundred thousand memories take half a minute on a small machine.
        Form("", "POST /api/memory/tidy", _show_tidied, seconds=PATIENT_SECONDS),
        options="--dry-run  change nothing, and show what would be done",
        note=(
            "Nothing is deleted: thermocline unmerge ID undoes a merge, a contradicted memory\n"
            "stays and names the newer one, and faded memories stay in the archive."
        ),
    ),
    "history": Verb(
        Form("[ID]", _history),
        options=f"""
        ID              of a memory; default: the latest changes of all, or of KIND
        {_KIND}
        --conflicts     only values that lost to another device's change
        --limit N       maximum number (default 20)""",
        note=(
            "Each line shows the fields that a change replaced, with their values before and\n"
            "after; of a conflict the value that was lost (old) beside the value in force\n"
            "(new). All devices count a conflict until --conflicts has shown it on one of them;\n"
            "thermocline undo ID --to N puts the lost value into force."
        ),
    ),
    "undo": Verb(
        Form("[ID]", _undo),
        options=f"""
        ID              undo the last change of this memory
        {_KIND}
        --to N = number  a version, numbered by thermocline history
        --by AUTHOR     undo what a program (claude-code, cli) or user wrote
        --since TIME    with --by: 2h, 7d, or a date and time
        --yes           with --by: do not ask
        --dry-run       change nothing, and show what would be undone""",
        note=(
            "Undoing a change twice redoes it. What --by deletes is forgotten and cannot come\n"
            "back: it shows what would be undone, and asks."
        ),
    ),
}
