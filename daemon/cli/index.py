"""`thermocline index`: the watched Markdown and text files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Final

from .. import shapes
from ..client import Client
from ..client.wording import ago, moment, number_of, size
from .arguments import say, text_of
from .database import PATIENCE_SECONDS
from .list import tell_rest
from .options import FILTERS, add_options, given, refuse
from .terminal import Shown, show_rows, visible

_NEEDS: Final = {"add": "PATH", "remove": "PATH", "search": "QUERY"}


def add_index(parser: argparse.ArgumentParser) -> None:
    """Add the options of `index`."""
    # Words, not subparsers: those would not accept the common options.
    parser.usage = (
        "thermocline index [status | add PATH | remove PATH | list [PREFIX] [--left-out] |"
        " search QUERY [--limit N] | sync]"
    )
    add = parser.add_argument
    add("action", nargs="?", default="status", choices=[*_DO], help="default: status")
    add("what", nargs="?", metavar="PATH|QUERY", help="a path; for list, its first characters")
    limit = {"help": "maximum number of results (default: 50 files, 6 chunks)"}
    add_options(parser, FILTERS, ("limit", "offset"), limit=limit)
    add("--session", metavar="ID", help="for search: only the paths of this session")
    add("--min-score", type=float, metavar="SHARE", help="for search: the least score, 0 to 1")
    add("--left-out", action="store_true", help="for list: only what cannot be indexed, and why")
    parser.epilog = 'example:\n  thermocline index add ~/docs\n  thermocline index search "backup"'


def run_index(args: argparse.Namespace, client: Client) -> Shown:
    """Do what the first word says."""
    action, what = args.action, args.what
    needed = _NEEDS.get(action)
    refuse(needed is not None and not what, f"{action} needs a {needed}")
    refuse(action in {"status", "sync"} and what is not None, f"{action} takes no PATH or QUERY")
    refuse(args.left_out and action != "list", "--left-out goes with list")
    refuse(args.min_score is not None and action != "search", "--min-score goes with search")
    refuse(args.session is not None and action != "search", "--session goes with search")
    refuse(args.offset is not None and action != "list", "--offset goes with list")
    refuse(args.limit is not None and action not in {"list", "search"}, "--limit: list or search")
    # Reading a large folder takes minutes.
    client.timeout = PATIENCE_SECONDS
    return _DO[action](args, client)


def _status(_: argparse.Namespace, client: Client) -> Shown:
    stats = client.files_stats()
    return lambda: _show_status(stats)


def _show_status(stats: shapes.files.FilesStats) -> None:
    state = stats.state
    behind = f"{number_of(state.to_read, 'file', 'files')} to read" if state.to_read else "behind"
    left_out = f", {stats.left_out:,} left out: index list --left-out" if stats.left_out else ""
    show_rows(
        [
            ("files", f"{stats.files:,}{left_out}"),
            ("chunks", f"{stats.chunks:,}, about {stats.tokens:,} tokens"),
            ("index", size(stats.index_bytes)),
            ("state", behind if state.dirty else "in step with the files"),
            ("watching", "yes" if state.watching else "no: looked at now and then"),
            ("last sync", ago(state.last_sync_at) if state.last_sync_at else "not yet"),
        ]
    )
    if stats.paths:
        print()
        show_rows(
            (path.origin, path.path, "not on this device" if path.missing else "")
            for path in stats.paths
        )


def _add(args: argparse.Namespace, client: Client) -> Shown:
    added = client.files_add(_path(args.what))
    watching = f"{'watching' if added.added else 'was watched already:'} {visible(added.path)}"
    if added.in_step:
        state = f"{number_of(added.files, 'file', 'files')} in the index"
    else:
        left = f", {number_of(added.to_read, 'file', 'files')} left" if added.to_read else ""
        state = f"still reading{left}; see: thermocline index status"
    return lambda: print(f"{watching}\n{state}")


def _remove(args: argparse.Namespace, client: Client) -> Shown:
    return f"no longer watching {client.files_remove(_path(args.what)).path}"


def _list(args: argparse.Namespace, client: Client) -> Shown:
    options = {"limit": args.limit or 50, "offset": args.offset or 0}
    page = client.files_list(args.what or "", left_out=args.left_out, **options)

    def show() -> None:
        show_rows(
            (
                moment(file.modified_at) if file.modified_at else "",
                size(file.size),
                file.reason or number_of(file.chunks, "chunk", "chunks"),
                file.path,
                file.title,
            )
            for file in page.results
        )
        if page.total:
            tell_rest(len(page.results), page.total, args.offset or 0)
        else:
            say("no files" if not args.left_out else "nothing is left out")

    return show


def _search(args: argparse.Namespace, client: Client) -> Shown:
    options = given(args, ("min_score", "session"))
    if args.limit is not None:
        options["max_results"] = args.limit
    found = client.files_search(text_of(args.what), **options)
    if found.auto_synced is False:
        say("some files are still being read: thermocline index status")
    if not found.chunks:
        say(found.why or "nothing found")
    return lambda: show_chunks(found.chunks)


def _sync(_: argparse.Namespace, client: Client) -> Shown:
    done = client.files_sync()
    return (
        f"{done.added:,} added, {done.updated:,} updated, {done.moved:,} moved,"
        f" {done.removed:,} removed; {number_of(done.files, 'file', 'files')},"
        f" {number_of(done.chunks, 'chunk', 'chunks')}"
    )


_DO: Final[Mapping[str, Callable[[argparse.Namespace, Client], Shown]]] = {
    "status": _status,
    "add": _add,
    "remove": _remove,
    "list": _list,
    "search": _search,
    "sync": _sync,
}


def show_chunks(chunks: list[shapes.files.FoundChunk]) -> None:
    """Print chunks, a line each: score, path and lines, headings, how the text begins."""
    show_rows(
        (
            f"{chunk.score:.2f}",
            chunk.id,
            chunk.heading,
            " ".join(chunk.text.split()),
        )
        for chunk in chunks
    )


def _path(given: str) -> str:
    """The path as the daemon takes it: the caller's folder is not the daemon's."""
    return os.path.abspath(os.path.expanduser(given))  # noqa: PTH100, PTH111 - links stay
