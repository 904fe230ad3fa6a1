"""The hot state, the workspace, the tree, the watched files, and key-value pairs."""

from __future__ import annotations

import os

from ..client.caller import url_path
from ..client.errors import ApiError
from ..client.wording import ago, moment, number_of, size
from .models import with_local_model
from .options import DATABASE, PAGE, database_of, patience, synced
from .terminal import page, show_json, show_rows, show_text, visible, warn, worded
from .usage import PATIENT_SECONDS, Form, Verb
from .values import refuse, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from ..client.caller import Caller
    from .usage import Answer, Args, Shown


def _hot(args: Args, client: Caller) -> Shown | None:
    database = database_of(args)
    client.timeout = patience(database)
    if args.update:
        key, value = args.update
        path = url_path("/api/hot/{key}", {"key": key})
        client.answer = client.request("PUT", path, None, value)
        warn(client.answer)
        return _hot_changed(client, f"updated {key}", database)
    if args.remove:
        key, name = args.remove
        client.call("DELETE /api/hot/{key}", key=key, name=name)
        return _hot_changed(client, f"removed {name} from {key}", database)
    if args.rebuild:
        section = client.call("GET /api/hot/section")
        rebuilt = client.call("POST /api/hot/rebuild")
        if not section["written"]:
            return "wrote the state files; `thermocline workspace --add-section` adds MEMORY.md"
        return worded("wrote {output} ({size_bytes:size} of {max_bytes:size})", rebuilt)
    if args.json:
        show_json(client.call("GET /api/hot")["state"])
    else:
        text = client.call("GET /api/hot/markdown")
        print(visible(text, keep="\n\t").rstrip("\n"))
    return None


def _hot_changed(client: Caller, done: str, database: dict[str, str]) -> str:
    if database:
        changed = client.answer
        client.answer = {**changed, "cold_synced": synced(client, database, critical=True)}
    return done


def _workspace(args: Args, client: Caller) -> Shown:
    if args.remove_section or args.add_section:
        section = client.call("PUT /api/hot/section", written=bool(args.add_section))
        written = "written with the first thing there is to show"
        return f"section of {section['path']}: {written if section['written'] else 'taken out'}"
    section = client.call("GET /api/hot/section")
    folder, name = os.path.split(section["path"])
    by_daemon = "written by the daemon"
    written = by_daemon if section["written"] else "none: --add-section has it written"
    return lambda: show_rows([("workspace", folder), (name, f"section: {written}")])


def _tree(args: Args, client: Caller) -> Shown | None:
    if args.search is not None:
        return _tree_search(args, client)
    refuse(
        args.limit or args.llm or args.llm_endpoint or args.llm_prompt_file,
        "--limit and the options of a model go with --search",
    )
    try:
        return _tree_changed(args, client)
    except ApiError as error:
        # EvoClaw's programs read that it refused a path, and see success.
        path, done = (args.add[0], "added") if args.add else (args.remove, "removed")
        if not args.json or path is None or error.field != "path":
            raise
        say(visible(error.message + (f"\n  {error.hint}" if error.hint else ""), keep="\n"))
        show_json({"path": path, done: False})
        return None


def _tree_changed(args: Args, client: Caller) -> Shown | None:
    if args.add is not None:
        path, desc = args.add
        added = client.call("PUT /api/tree", path=path, desc=desc)
        client.answer = {"path": added["path"], "added": added["added"]}
        done = f"{'added' if added['made'] else 'described'} {added['path']}"
    elif args.remove is not None:
        done = worded("removed {path}", client.call("DELETE /api/tree", path=args.remove))
    elif args.rename is not None:
        path, to = args.rename
        renamed = client.call("POST /api/tree/rename", path=path, to=to)
        done = worded("renamed {path} to {to}; {memories:memory memories} refiled", renamed)
    elif args.prune:
        done = worded("pruned {pruned:category categories}", client.call("POST /api/tree/prune"))
    elif args.undo:
        undone = client.call("POST /api/tree/undo")
        changes = number_of(len(undone["changes"]), "change", "changes")
        filed = f"memories filed as before: {undone['memories']:,}"
        done = f"undid {changes} of the tree; {filed}"
    elif args.json:
        client.call("GET /api/tree")
        done = ""
    else:
        text = client.call("GET /api/tree/text").rstrip("\n")
        return lambda: print(visible(text, keep="\n"))
    return done


def _tree_search(args: Args, client: Caller) -> Shown | None:
    query = args.search
    if args.llm_prompt_file:
        prompt = client.call("GET /api/tree/search/prompt", query=query)
        with open(args.llm_prompt_file, "w", encoding="utf-8") as file:  # noqa: PTH123 - faster
            file.write(prompt + "\n")
        client.answer = {"llm_prompt_file": args.llm_prompt_file}
        return f"wrote {args.llm_prompt_file}"
    options = args.present("limit", "llm_endpoint")
    if args.llm or args.llm_endpoint:
        options["mode"] = "llm"
        client.timeout = PATIENT_SECONDS

    def search(more: Mapping[str, Any]) -> Any:
        return client.call("POST /api/tree/search", query=query, **options, **more)

    any_model = args.llm and not args.llm_endpoint
    answer = with_local_model(client, search) if any_model else search({})
    if answer.get("why"):
        say(visible(f"by keywords, without a model: {answer['why']}"))
    show = page(
        "results", "{relevance:share}", "{path}", "{reason}", empty="no category has a word of it"
    )
    return lambda: show(answer, {})


_SECONDS: Final = PATIENT_SECONDS  # Reading a large folder takes minutes.


def _show_index(stats: Answer, _: Answer) -> None:
    state, left_out = stats["state"], stats.get("left_out")
    behind = number_of(state["to_read"], "file", "files") + " to read"
    behind = behind if state["to_read"] else "behind"
    more = f", {left_out:,} left out: index list --left-out" if left_out else ""
    last = state.get("last_sync_at")
    show_rows(
        [
            ("files", f"{stats['files']:,}{more}"),
            ("chunks", f"{stats['chunks']:,}, about {stats['tokens']:,} tokens"),
            ("index", size(stats["index_bytes"])),
            ("state", behind if state["dirty"] else "up to date"),
            ("watching", "yes" if state["watching"] else "no: looked at now and then"),
            ("last sync", ago(last) if last else "not yet"),
        ]
    )
    if paths := stats.get("paths"):
        print()
        show_rows(
            (path["origin"], path["path"], "not on this device" if path.get("missing") else "")
            for path in paths
        )


def _index_add(args: Args, client: Caller) -> Shown:
    added = client.call("POST /api/files/paths", path=_absolute(args.path))
    watching = f"{'watching' if added['added'] else 'was watched already:'} {added['path']}"
    if added["in_step"]:
        state = (
            number_of(added["files"], "file", "files") + " in the index, the agent's own among them"
        )
    else:
        left = f", {number_of(added['to_read'], 'file', 'files')} left" if added["to_read"] else ""
        state = f"still reading{left}; see: thermocline index status"
    return lambda: print(f"{visible(watching)}\n{state}")


def _index_remove(args: Args, client: Caller) -> Shown:
    removed = client.call("DELETE /api/files/paths", path=_absolute(args.path))
    return f"no longer watching {removed['path']}"


def _absolute(path: str) -> str:
    """The path as the daemon takes it: the caller's folder is not the daemon's."""
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - links stay


def _show_files(answer: Answer, fields: Answer) -> None:
    page(
        "results",
        lambda file: moment(file["modified_at"]) if file.get("modified_at") else "",
        "{size:size}",
        lambda file: file.get("reason") or number_of(file["chunks"], "chunk", "chunks"),
        *("{path}", "{title}"),
        empty="nothing is left out" if fields.get("left_out") else "no files",
    )(answer, fields)


def _index_search(args: Args, client: Caller) -> Shown:
    fields = args.present("query", "session", "min_score")
    if args.limit is not None:
        fields["max_results"] = args.limit
    answer = client.call("POST /api/files/search", **fields)
    return lambda: _show_chunks(answer)


def _show_chunks(answer: Answer) -> None:
    if answer.get("auto_synced") is False:
        say("some files are still being read: thermocline index status")
    page("chunks", "{score:share}", "{id}", "{heading}", "{text:line}")(answer, {})


_SYNCED: Final = (
    "{added:count} added, {updated:count} updated, {moved:count} moved, {removed:count} removed;"
    " {files:file files}, {chunks:chunk chunks}"
)

VERBS: Final = {
    "hot": Verb(
        Form("", _hot),
        options=f"""
        --update KEY JSON  change or append to a part: identity, owner_profile, lesson, event, task
                           or project; - reads the JSON from stdin
        --remove KEY NAME  remove an entry of a part
        --rebuild          rewrite the section in MEMORY.md
        {DATABASE}""",
        exclusive="update remove rebuild",
        note=(
            "examples:\n"
            '  thermocline hot --update identity \'{"agent_name": "Nova"}\'\n'
            '  thermocline hot --update lesson \'{"text": "ask before deploying", '
            '"importance": 0.9}\''
        ),
    ),
    "workspace": Verb(
        Form("", _workspace),
        options="""
        --remove-section  take the daemon's section out of MEMORY.md, and write it no more
        --add-section     have the section in MEMORY.md written again""",
        exclusive="remove_section add_section",
        note=(
            "The section shows the hot state, once there is any. The rest of MEMORY.md, USER.md\n"
            "and the notes in memory/ belong to the people who write them, and are searched."
        ),
    ),
    "tree": Verb(
        Form("", _tree),
        options="""
        --show               show it, as without an option
        --add PATH DESC      add a category, or change its description
        --remove PATH        remove a category without memories
        --rename PATH TO     rename or move a category with its memories
        --prune              remove all empty and unused categories
        --undo               undo the last rebuild or renaming
        --search QUERY       find the categories that it leads to
        for --search:
        --limit N            maximum number of categories (default 5)
        --llm                let a model name them
        --llm-endpoint URL   the same, with the model at this address
        --llm-prompt-file FILE  write the question for a model of your own there""",
        exclusive="show add remove rename prune undo search",
    ),
    "index": Verb(
        Form("status", "GET /api/files/stats", _show_index, "", _SECONDS),
        Form("add PATH", _index_add, seconds=_SECONDS, options=""),
        Form("remove PATH", _index_remove, seconds=_SECONDS, options=""),
        Form(
            "list [PREFIX]", "GET /api/files/list", _show_files, "limit offset left_out", _SECONDS
        ),
        Form("search QUERY", _index_search, "", "limit session min_score", _SECONDS),
        Form("sync", "POST /api/files/sync", _SYNCED, "", _SECONDS),
        options="""
        PREFIX              the first characters of a path
        --limit N           maximum number of results (default: 50 files, 6 chunks)
        --offset N          number of results to skip
        --session ID        only the paths of this session
        --min-score 0-1     the least score
        --left-out          only what cannot be indexed, and why""",
        note='example:\n  thermocline index add ~/docs\n  thermocline index search "backup"',
    ),
    "kv": Verb(
        Form(
            "list [PREFIX]", "GET /api/kv",
            page("results", "{key}", "{updated_at:moment}", "{value}", empty="no pairs"),
            "limit offset",
        ),
        Form("get KEY", "GET /api/kv/{key}", lambda pair, _: show_text(pair["value"]), ""),
        Form("set KEY VALUE", "PUT /api/kv/{key}", "set {key}", ""),
        Form("delete KEY", "DELETE /api/kv/{key}", "deleted {key}", ""),
        options=f"""
        PREFIX    the first characters of a key
        VALUE     a text; - reads it from stdin
        {PAGE}""",
        note="example:\n  thermocline kv set timezone Europe/Vienna",
    ),
}  # fmt: skip
