"""`thermocline observe`: keep the facts of a conversation, or its turns."""

from __future__ import annotations

import argparse
import json
from typing import Any

from msgspec import UNSET, UnsetType

from .. import shapes
from ..client import Client
from ..client.wording import number_of
from .arguments import WrongUsage, say, text_in
from .database import PATIENCE_SECONDS
from .local_models import local_model
from .memories import headline, short
from .options import refuse
from .terminal import Shown, show_rows, visible


def add_observe(parser: argparse.ArgumentParser) -> None:
    """Add the options of `observe`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="the conversation; - reads it from stdin")
    add("--conversation", metavar="NAME", required=True, help="its name, for all its turns")
    add("--turns", action="store_true", help="store the turns themselves, in place of the facts")
    add("--later", action="store_true", help="let the daemon read it after a pause")
    add("--end", action="store_true", help="the conversation is over: sum it up")
    model = parser.add_argument_group("model or rules").add_argument
    model("--llm", action="store_true", help="with a model; default: if one is configured")
    model("--llm-endpoint", metavar="URL", help="with the model at this address")
    model("--rules", action="store_true", help="by rules, even if a model is configured")
    parser.epilog = (
        'The file has lines such as "Ada: I like tea", or is a JSON list of messages as models\'\n'
        "providers take them (role, content, name).\n\n"
        "examples:\n"
        "  thermocline observe talk.txt --conversation standup\n"
        "  thermocline observe messages.json --conversation 4711 --turns"
    )


def run_observe(args: argparse.Namespace, client: Client) -> Shown:
    """Report the conversation, and show what is kept of it."""
    asks = args.llm or args.llm_endpoint or args.rules
    refuse(args.turns and (args.later or args.end or asks), "--turns stands alone")
    refuse(args.later and asks, "give either --later, or --llm, --llm-endpoint and --rules")
    refuse(args.rules and (args.llm or args.llm_endpoint), "give either --rules or a model")
    talk = said_in(text_in(args.file))
    if args.turns:
        stored = client.turns(args.conversation, **talk)
        say_skipped(stored.skipped)
        known = f"; {stored.known} known already" if stored.known else ""
        return f"stored {number_of(len(stored.stored), 'turn', 'turns')}{known}"
    client.timeout = PATIENCE_SECONDS
    options: dict[str, Any] = {"end": args.end, "wait": not args.later}
    if args.rules:
        options["llm"] = False
    elif args.llm_endpoint:
        options["llm_endpoint"] = args.llm_endpoint
    elif args.llm:
        options |= {"llm": True} | local_model(client)
    observed = client.observe(args.conversation, None, **talk, **options)
    say_skipped(observed.skipped)
    if observed.why:
        say(visible(f"by rules, without a model: {observed.why}"))
    return lambda: _show(observed)


def said_in(text: str) -> dict[str, Any]:
    """The messages of a JSON file, or the text of any other."""
    if not text.lstrip().startswith("["):
        return {"text": text}
    try:
        return {"messages": json.loads(text)}
    except ValueError as error:
        raise WrongUsage(f"cannot read the messages: {error}") from None


def _show(observed: shapes.observe.Observed) -> None:
    if observed.stored is UNSET:
        print("heard", number_of(observed.turns, "turn", "turns"))
        return
    show_rows((short(one.id), one.category, headline(one)) for one in observed.stored)
    known = len(observed.known or ())
    print(
        "stored", number_of(len(observed.stored), "fact", "facts"), "of",
        number_of(observed.turns, "turn", "turns") + (f"; {known} known already" if known else ""),
    )  # fmt: skip


def say_skipped(skipped: list[shapes.observe.SkippedMessage] | UnsetType) -> None:
    """Tell which messages could not be read."""
    for one in skipped or ():
        say(visible(f"left out message {one.at}: {one.why}"))
