"""`thermocline graph`: the people and things that memories name, and how they are related."""

from __future__ import annotations

import argparse
from typing import get_args

from .. import shapes
from ..client import Client
from ..client.wording import ago, number_of
from .arguments import say, text_of, whole
from .memories import short
from .options import refuse
from .terminal import Shown, show_rows, visible

_TYPES = get_args(shapes.graph.EntityKind)


def add_graph(parser: argparse.ArgumentParser) -> None:
    """Add the options of `graph`."""
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="a person or thing; default: the best known")
    add("--depth", type=whole, metavar="N", help="number of relations away, 0 to 5 (default 2)")
    add("--limit", type=whole, metavar="N", help="how many of the best known (default 20)")
    add("--type", choices=_TYPES, help="set what it is")
    add("--alias", action="append", metavar="OTHER", help="add another name; may be repeated")
    add("--no-alias", action="append", metavar="OTHER", help="take a name off again")
    parser.epilog = (
        "The strength of a relation is one for each memory that states it, halved every 90 days.\n"
        "What was mentioned once, and not for 90 days, is no longer shown. What a name and its\n"
        "aliases are named by counts together; `thermocline undo NAME --kind entity` takes back a\n"
        "change of type or aliases.\n\n"
        "examples:\n"
        "  thermocline graph Ada\n"
        "  thermocline graph 'Ada Lovelace' --alias Ada --type person"
    )


def run_graph(args: argparse.Namespace, client: Client) -> Shown:
    """Show an entity or the best known, or change one."""
    changing = args.type is not None or args.alias or args.no_alias
    refuse(args.name is None and bool(changing), "--type, --alias and --no-alias need a NAME")
    refuse(args.name is None and args.depth is not None, "--depth needs a NAME")
    refuse(args.name is not None and args.limit is not None, "--limit takes no NAME")
    if args.name is None:
        best = client.graph(limit=args.limit or 20).graph
        nobody = "no memory names anybody or anything yet"
        return lambda: show_rows(map(entity_row, best)) if best else say(nobody)
    name = text_of(args.name)
    if changing:
        _change(client, name, args)
        if args.json:
            return ""
    graph = client.graph(name, 2 if args.depth is None else args.depth)
    unknown = graph.message or f"no memory names '{name}'"
    return lambda: _show(graph.graph) if graph.graph else say(visible(unknown))


def _change(client: Client, name: str, args: argparse.Namespace) -> None:
    changes: dict[str, object] = {} if args.type is None else {"type": args.type}
    if args.alias or args.no_alias:
        found = client.graph(name, 0).graph or []
        without = {text_of(one).casefold() for one in args.no_alias or ()}
        kept = [one for one in (found[0].aliases if found else ()) if one.casefold() not in without]
        changes["aliases"] = [*kept, *map(text_of, args.alias or ())]
    client.change_entity(name, **changes)


def entity_row(one: shapes.graph.EntityView) -> tuple[str, ...]:
    """An entity in one row: name, type, mentions, strongest relations."""
    related = ", ".join(f"{link.relation} {link.target}" for link in one.relations[:3])
    return (one.name, one.type, number_of(one.mention_count, "memory", "memories"), related)


def _show(graph: list[shapes.graph.EntityView]) -> None:
    for one in graph:
        also = f", also {', '.join(one.aliases)}" if one.aliases else ""
        known = f"first named {ago(one.first_seen)}, last {ago(one.last_seen)}"
        mentions = number_of(one.mention_count, "memory", "memories")
        print(visible(f"{one.name} ({one.type}{also}): {mentions}, {known}"))
        if one.memories:
            print(f"  from {' '.join(short(memory) for memory in one.memories)}")
        show_rows(
            (
                "",
                link.relation,
                link.target,
                f"{link.strength:g}",
                f"first {ago(link.since)}",
                " ".join(short(memory) for memory in link.memories),
            )
            for link in one.relations
        )
