"""`thermocline distill`: condense a text to what is worth remembering."""

from __future__ import annotations

from ..client import Client
from .arguments import WrongUsage, decoded, read_stdin, say, text_of, whole
from .local_models import stand_in
from .memories import short
from .terminal import show_json, show_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

# A model may take its time, and a batch asks several times.
_PATIENCE_SECONDS: Final = 600.0
_OFTEN: Final = 50
_LISTS: Final = ("people", "topics", "actions", "urls", "commands", "paths")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = parser.add_argument
    add("words", nargs="?", metavar="TEXT", help="the text; - reads it from stdin")
    add("--text", metavar="TEXT", help="the text, in place of the first word")
    add("--file", dest="files", action="append", metavar="FILE", help="a text; may be repeated")
    add("--core-summary", action="store_true", help="add a summary of 30 bytes at most")
    add("--facts", action="store_true", help="every statement worth keeping, not the best alone")
    add("--max-bytes", type=whole, metavar="N", help="of one fact and what belongs to it")
    model = parser.add_argument_group("which way").add_argument
    model(
        "--llm",
        action="store_true",
        help="by the configured model, or one that runs on this device; by rules if it cannot",
    )
    model("--llm-endpoint", metavar="URL", help="by the model at this address")
    model("--rules", action="store_true", help="by rules, whatever is configured")
    keeping = parser.add_argument_group("keeping it").add_argument
    keeping("--store", action="store_true", help="remember what was distilled")
    keeping("--category", metavar="PATH", help="where, if no category of the tree fits better")
    parser.epilog = (
        "examples:\n"
        '  thermocline distill "User: Ship it on Friday? Agent: Yes, decided." --core-summary\n'
        "  thermocline distill --file meeting.md --facts --store --category projects/x"
    )


def run(args: argparse.Namespace) -> int:
    """Distil one text or several."""
    texts = _texts(args)
    body = _wish(args)
    results: list[dict[str, Any]] = []
    with Client(args.socket, args.agent, _PATIENCE_SECONDS) as client:
        if args.llm and not args.llm_endpoint:
            body |= stand_in(client)
        for start in range(0, len(texts), _OFTEN):
            some = [text for _, text in texts[start : start + _OFTEN]]
            answer = client.request("POST", "/api/distill", body={**body, "texts": some})
            results += answer["results"]
    if args.json:
        _show_json(texts, results)
    else:
        for (name, _), result in zip(texts, results, strict=True):
            _show(name if len(texts) > 1 else "", result)
    for why in dict.fromkeys(result["why"] for result in results if "why" in result):
        say(visible(f"by rules, without a model: {why}"))
    return 0


def _texts(args: argparse.Namespace) -> list[tuple[str, str]]:
    """The texts, each with the file it came from, or ""."""
    given = [value for value in (args.words, args.text) if value is not None]
    if bool(given) == bool(args.files) or len(given) > 1:
        raise WrongUsage("give a text once: as a word, with --text or with --file")
    if given:
        return [("", text_of(given[0]))]
    if args.files.count("-") > 1:
        raise WrongUsage("only one --file can be read from standard input")
    return [(name, decoded(_bytes_of(name), name)) for name in args.files]


def _bytes_of(name: str) -> bytes:
    if name == "-":
        return read_stdin()
    with open(name, "rb") as file:  # noqa: PTH123 - pathlib is a tenth of a command's time
        return file.read()


def _wish(args: argparse.Namespace) -> dict[str, Any]:
    if args.rules and (args.llm or args.llm_endpoint):
        raise WrongUsage("give either --rules or a model")
    if args.category is not None and not args.store:
        raise WrongUsage("--category is for what --store keeps")
    wish: dict[str, Any] = {
        "core_summary": args.core_summary,
        "facts": args.facts,
        "store": args.store,
        "category": args.category,
        "llm": False if args.rules else args.llm or None,
        "llm_endpoint": args.llm_endpoint,
        "max_bytes": args.max_bytes,
    }
    return {name: value for name, value in wish.items() if value is not None}


def _show_json(texts: Sequence[tuple[str, str]], results: Sequence[Mapping[str, Any]]) -> None:
    """One object for one text, as EvoClaw has it; a list for several files."""
    named = [
        {"file": name, **result} if name and len(texts) > 1 else {**result}
        for (name, _), result in zip(texts, results, strict=True)
    ]
    show_json(named[0] if len(named) == 1 else named)


def _show(name: str, result: Mapping[str, Any]) -> None:
    if name:
        print(visible(f"{name}:"))
    for fact in result.get("facts", [result["distilled"]]):
        show_rows(_rows(fact))
    sizes = f"{result['original_size']} to {result['distilled_size']} bytes"
    told = [("mode", result["mode"]), ("size", sizes)]
    if "core_summary" in result:
        told.append(("summary", result["core_summary"]))
    show_rows(told)
    for stored in result.get("stored", ()):
        how = "known as" if stored["duplicate"] else "stored"
        print(how, short(stored["id"]), "in", visible(stored["category"]))


def _rows(fact: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [("fact", str(fact["fact"]))]
    rows += [(name, ", ".join(fact[name])) for name in _LISTS if fact[name]]
    if fact["emotion"] != "neutral":
        rows.append(("emotion", fact["emotion"]))
    return [*rows, ("outcome", fact["outcome"])]
