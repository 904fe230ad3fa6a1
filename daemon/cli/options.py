"""The options that describe a memory, narrow a search or name a database: one table of each.

A row of a table is named like the field of the request that it fills, so that a new field or
filter is one row here, and every verb whose request has the field offers it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any, Final

from .arguments import WrongUsage, json_of, number, text_of, whole

TYPES: Final = ("semantic", "episodic", "procedural")
ORDERS: Final = (
    *("newest", "oldest", "score", "importance", "uses", "type", "category", "subject"),
)
TIERS: Final = ("hot", "warm", "cold", "frozen")
WEIGHTS: Final = ("match", "recency", "importance", "semantic")
# Several values, each given by the option once more.
_REPEATED: Final = {"action": "append"}


def _weights(text: str) -> dict[str, float]:
    """`match=2,recency=0.5`, or the same as a JSON object, for argparse."""
    weights: dict[str, float] = {}
    parts = text.split(",")
    if text.lstrip().startswith("{"):
        try:
            parts = [f"{name}={value}" for name, value in json_of(text, "the weights").items()]
        except WrongUsage as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    for part in parts:
        name, equals, value = part.strip().partition("=")
        if name not in WEIGHTS or not equals or name in weights:
            raise argparse.ArgumentTypeError(
                f"expected NAME=N with each of {', '.join(WEIGHTS)} at most once, got {part[:40]!r}"
            )
        weights[name] = number(value)
    return weights


Table = Mapping[str, tuple[tuple[str, ...], dict[str, Any]]]


def _row(*flags: str, **settings: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return flags, settings


# What is known about a memory beside its text; `urls`, `commands` and `paths` are its metadata.
FIELDS: Final[Table] = {
    "category": _row("--category", metavar="PATH", help="category, such as projects/x"),
    "importance": _row("--importance", type=number, metavar="0-1", help="how much it matters"),
    "pinned": _row(
        "--pin",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="keep it hot whatever its score",
    ),
    "standing": _row(
        "--standing",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show it before every turn; by default as its text reads",
    ),
    "type": _row("--type", choices=TYPES, help="kind of memory"),
    "event": _row("--event", metavar="NAME", help="what caused it, such as correction"),
    "subject": _row("--subject", metavar="TEXT", help="what it is about"),
    "outcome": _row("--outcome", metavar="TEXT", help="how it ended"),
    "tags": _row("--tag", metavar="TAG", help="a tag; may be repeated", **_REPEATED),
    "source": _row("--source", metavar="TEXT", help="where it comes from"),
    "actor": _row("--actor", metavar="TEXT", help="who said it"),
    "group": _row("--group", metavar="TEXT", help="its conversation"),
    "position": _row("--position", type=whole, metavar="N", help="its place there, as a turn"),
    "urls": _row("--url", metavar="URL", help="may be repeated", **_REPEATED),
    "commands": _row("--cmd", "--command", metavar="COMMAND", help="may be repeated", **_REPEATED),
    "paths": _row("--path", metavar="PATH", help="may be repeated", **_REPEATED),
    "expires": _row("--expires", metavar="WHEN", help="7d, an ISO 8601 time, or never"),
    "data": _row("--data", metavar="JSON", help="any other data; - reads standard input"),
}

# What a search can ask for, in the order in which help shows it.
FILTERS: Final[Table] = {
    "limit": _row("--limit", type=whole, metavar="N", help="maximum number of results"),
    "offset": _row("--offset", type=whole, metavar="N", help="number of results to skip"),
    "min_relevance": _row(
        "--min-relevance", type=number, metavar="0-1", help="only results at least so likely right"
    ),
    "max_tokens": _row(
        "--max-tokens",
        type=whole,
        metavar="N",
        help="maximum length of all texts (4 characters each)",
    ),
    "order": _row("--order", choices=ORDERS, help="default newest"),
    "reverse": _row("--reverse", action="store_true", default=None, help="turn the order round"),
    **dict.fromkeys(
        ("types", "type"),
        _row("--type", choices=TYPES, help="one of these types; may be repeated", **_REPEATED),
    ),
    **dict.fromkeys(
        ("events", "event"),
        _row("--event", metavar="NAME", help="one of these events; may be repeated", **_REPEATED),
    ),
    **dict.fromkeys(
        ("tags", "tag"),
        _row("--tag", metavar="TAG", help="all of these tags; may be repeated", **_REPEATED),
    ),
    "category": _row("--category", metavar="PATH", help="this category and those below it"),
    "url": _row("--url", metavar="PART", help="part of a URL that it mentions"),
    "tier": _row("--tier", choices=TIERS, help="its temperature, which its score decides"),
    "archived": _row("--archived", choices=("true", "false"), help="in the archive, or not"),
    "standing": _row(
        "--standing", action="store_true", default=None, help="what is shown before every turn"
    ),
    "merged_into": _row("--merged-into", metavar="ID", help="what was merged into this memory"),
    "source": _row("--source", metavar="TEXT", help="where it comes from"),
    "actor": _row("--actor", metavar="TEXT", help="who said it"),
    "session": _row(
        "--session", metavar="ID", help="only what this session sees, which records the answer"
    ),
    "group": _row("--group", metavar="TEXT", help="its conversation"),
    "since": _row("--since", metavar="TIME", help="stored at or after this ISO 8601 or epoch time"),
    "until": _row("--until", metavar="TIME", help="stored at or before this time"),
    "min_importance": _row(
        "--min-importance", type=number, metavar="0-1", help="at least this important"
    ),
    "include": _row(
        "--include",
        choices=("merged", "expired"),
        help="include memories that are otherwise left out; may be repeated",
        **_REPEATED,
    ),
    "weights": _row(
        "--weights",
        type=_weights,
        metavar="NAME=N,…",
        help=f"weights of {', '.join(WEIGHTS)}; default: as configured",
    ),
    "preset": _row(
        "--preset", choices=("tinyclaw", "scalyclaw"), help="rank by that system's formula"
    ),
    "mode": _row(
        "--mode",
        choices=("keyword", "tree", "llm", "hybrid"),
        help="keyword: full text (default); tree: categories only; llm: a model chooses the"
        " categories; hybrid: keyword, and llm if the model answers in time",
    ),
    "now": _row("--now", metavar="TIME", help="the time to which words like yesterday refer"),
}

# What a daemon is started with; other verbs look at the same.
DAEMON: Final[Table] = {
    "state_dir": _row("--state-dir", metavar="DIR", help="where the memories are kept"),
    "config": _row(
        "--config", metavar="FILE", help="a configuration file that overrides the others"
    ),
    "sets": _row(
        "--set",
        metavar="KEY=VALUE",
        default=[],
        help="set one key of the configuration, such as warm.max_kb=100; may be repeated",
        **_REPEATED,
    ),
}

DATABASE: Final[Table] = {
    "db_url": _row("--db-url", metavar="URL", help="libsql:// or https://; default: as configured"),
    "token_file": _row(
        "--token-file", metavar="FILE", help="file that holds only its token; - reads stdin"
    ),
    "auth_token": _row(
        "--auth-token", metavar="TOKEN", help="the token itself, visible to other users"
    ),
}


def add_options(
    parser: Any, table: Table, names: Iterable[str], **changed: Mapping[str, Any]
) -> None:
    """Add the options of a table that are among `names`, in the order of the table.

    Args:
        parser: a parser, or a group of its options.
        table: `FIELDS`, `FILTERS`, `DAEMON` or `DATABASE`.
        names: the fields of the request.
        **changed: settings of single options that differ from the table.
    """
    wanted = {*names}
    for name, (flags, settings) in table.items():
        if name in wanted:
            own = dict(changed.get(name, {}))
            parser.add_argument(*own.pop("flags", flags), dest=name, **{**settings, **own})


def add_page(parser: Any, most: int) -> None:
    """Add `--limit` and `--offset` of a list that shows `most` at once."""
    limit = {"default": most, "help": f"maximum number of results (default {most})"}
    add_options(parser, FILTERS, ("limit", "offset"), limit=limit, offset={"default": 0})


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The values of the options that were given."""
    found = ((name, getattr(args, name, None)) for name in names)
    return {name: value for name, value in found if value is not None}


def fields_of(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of a memory that were given, as the API takes them.

    Raises:
        WrongUsage: `--data` is not JSON.
    """
    fields = given(args, FIELDS)
    metadata = {name: fields.pop(name) for name in ("urls", "commands", "paths") if name in fields}
    if metadata:
        fields["metadata"] = metadata
    if fields.get("expires") == "never":
        fields["expires"] = None
    if "data" in fields:
        fields["data"] = json_of(text_of(fields["data"]), "--data")
    return fields


def refuse(condition: object, message: str) -> None:
    """Refuse options that contradict each other.

    Raises:
        WrongUsage: the condition holds.
    """
    if condition:
        raise WrongUsage(message)
