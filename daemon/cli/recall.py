"""`thermocline retrieve` and `context`: questions, and why a result has its rank."""

from __future__ import annotations

from ..client.wording import moment, one_line
from .memories import headline, record
from .models import with_local_model
from .options import DATABASE, FILTERS, database_of, patience, synced
from .terminal import cut, short, show_json, show_rows, show_text, visible, width
from .usage import PATIENT_SECONDS, Form, Verb
from .values import WrongUsage, refuse, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Final

    from ..client.caller import Caller
    from .usage import Answer, Args

# Above results that are not sure.
NOT_SURE: Final = "nothing certain; perhaps related"
_INDENT: Final = " " * 6
# Fields of the question whose options are named like those of `list`.
_PLURAL: Final = {"type": "types", "event": "events", "tag": "tags"}
_OPTIONS: Final = (
    *("limit", "max_tokens", "min_relevance", "category", "tier", "source", "actor", "group"),
    *("since", "until", "min_importance", "include", "standing", "session"),
    *("mode", "preset", "weights", "now"),
)


def _retrieve(args: Args, client: Caller) -> None:
    refuse(args.query is None, "a query is missing: give it as a word, or with --query")
    refuse(not args.query.strip(), "the query is empty: give it words")
    database = database_of(args)
    options = args.present(*_OPTIONS) | _model_of(args)
    options |= {_PLURAL[name]: value for name, value in args.present(*_PLURAL).items()}
    options |= {"fields": "full", "explain": bool(args.explain)}
    options |= {"reinforce": not args.no_reinforce}
    # The model's process may have to start first.
    client.timeout = PATIENT_SECONDS if "mode" in options else patience(database)

    def search(more: Mapping[str, Any]) -> Any:
        return client.call("POST /api/recall", query=args.query, **options, **more)

    any_model = args.llm and not args.llm_endpoint
    recall = with_local_model(client, search) if any_model else search({})
    synced(client, database)
    if why := recall.get("llm", {}).get("why"):
        say(visible(f"by keywords, without a model: {why}"))
    if note := recall.get("note"):
        say(visible(note))
    results = recall.get("results", [])
    if recall["confidence"] == "unsure":
        (say if args.json else print)(f"{NOT_SURE}:")
    if args.json:
        show_json([_record(result) for result in results])
    elif args.explain:
        _explain(recall, results)
    else:
        show_rows(map(_cells, results))
        for path in recall.get("tree", ()):
            print(visible(f"by category: {' > '.join(path['trace'])}"))
    if not results:
        say(visible(recall.get("why") or "nothing found"))


def _model_of(args: Args) -> dict[str, str]:
    if not args.llm and not args.llm_endpoint:
        return {}
    if args.mode in {"keyword", "tree"}:
        raise WrongUsage(f"--mode {args.mode} uses no model; leave out --llm and --llm-endpoint")
    return {"mode": args.mode or "llm", **args.present("llm_endpoint")}


def _cells(result: Answer) -> tuple[str, ...]:
    memory = result.get("memory")
    # The id of a part of a file already names it.
    path = "" if "lines" in result else result.get("path")
    return (
        f"{result['relevance']:.2f}",
        short(result["id"]) if memory else result["id"],
        moment(result["created_at"]),
        result.get("category") or path or result["source"],
        headline(memory) if memory else one_line(result["text"]),
    )


def _record(result: Answer) -> dict[str, Any]:
    """A result for programs, with a category; a memory also has the rest of EvoClaw's record."""
    # The whole record is the one object beside the reasons.
    fields = {
        name: value
        for name, value in result.items()
        if name == "parts" or not isinstance(value, dict)
    }
    fields["search_method"] = result.get("search_method", "keyword")
    fields["category"] = result.get("category") or result["source"]
    return record(result["memory"]) | fields if "memory" in result else fields


def _explain(recall: Answer, results: Sequence[Answer]) -> None:
    for result in results:
        show_rows([_cells(result)])
        if parts := result.get("parts"):
            shares = (f"{name} {parts[name]:.3f}" for name in ("match", "recency", "importance"))
            order = f"relevance {result['relevance']:.3f}; order by {', '.join(shares)}"
            print(cut(_INDENT + order, width()))
            _print_rows(_reasons(result, parts), _INDENT)
    if understood := recall.get("understood"):
        print("understood")
        _print_rows(_understood(understood), "  ")
    if paths := recall.get("llm", {}).get("tree"):
        print("reasoned")
        _print_rows(
            (
                ("tree", f"{' > '.join(path['trace'])}  {path['relevance']:.2f} ({path['reason']})")
                for path in paths
            ),
            "  ",
        )


def _reasons(result: Answer, parts: Answer) -> Iterator[tuple[str, str]]:
    yield "words", ", ".join(word for word in parts["words"] if word not in parts["by"])
    yield "by", ", ".join(f"{word}: {own}" for word, own in parts["by"].items())
    by_size = sorted(parts["signals"].items(), key=lambda signal: -abs(signal[1]))
    yield "signals", "  ".join(f"{name} {added:+.2f}" for name, added in by_size)
    yield "neighbours", ", ".join(map(short, parts["neighbours"]))
    yield "path", parts["path"]
    yield "reason", parts["reason"]
    yield "superseded by", short(result.get("memory", {}).get("superseded_by") or "")


def _understood(understood: Answer) -> Iterator[tuple[str, str]]:
    yield "words", ", ".join(understood["words"])
    yield "common words", ", ".join(understood["common_words"])
    yield "phrases", _phrases(understood["phrases"])
    yield "excluded", _phrases(understood["excluded"])
    yield "people", ", ".join(understood["people"])
    yield "dates", ", ".join(understood["dates"])
    for path in understood["tree"]:
        matched = ", ".join(path["words"])
        yield "tree", f"{' > '.join(path['trace'])}  {path['relevance']:.3f} ({matched})"


def _phrases(phrases: Iterable[Sequence[str]]) -> str:
    return ", ".join(
        f'"{" ".join(phrase)}"' if len(phrase) > 1 else phrase[0] for phrase in phrases
    )


def _print_rows(rows: Iterable[tuple[str, str]], indent: str) -> None:
    present = [(name, text) for name, text in rows if text]
    size = max((len(name) for name, _ in present), default=0)
    for name, text in present:
        print(cut(f"{indent}{name:<{size}}  {visible(text)}", width()))


def _context(args: Args, client: Caller) -> None:
    fields = args.present("query", "max_tokens", "format", "session")
    block = client.call("POST /api/context", **{"format": "thermocline", **fields})
    for warning in block.get("warnings") or ():
        say(visible(warning))
    if args.json:
        show_json(block)
    elif args.format == "json":
        show_json(block["sections"])
    elif block.get("text"):
        show_text(block["text"])


VERBS: Final = {
    "retrieve": Verb(
        Form("[QUERY]", _retrieve),
        options=f"""
        QUERY                       what to look for; - reads it from stdin
        --query TEXT                the query, in place of the first word
        --limit N                   maximum number of results (default: recall.limit, which is 5)
        --min-relevance 0-1         only results at least so likely right
        --max-tokens N              maximum length of all texts (4 characters each)
        --explain                   show how each relevance came about
        --no-reinforce              do not count this as a use
        --llm                       as --mode llm; if no model is configured, with a model server
                                    on this device
        --llm-endpoint URL          the same, with the model at this address
        filters:
        {FILTERS}
        --session ID                only what this session sees
        ranking:
        --weights NAME=N,…          weights of match, recency, importance, semantic; default: as
                                    configured
        --preset tinyclaw|scalyclaw  rank by that system's formula
        --mode keyword|tree|llm     keyword: full text (default); tree: categories only; llm: a
                                    model chooses categories, too
        --now TIME                  the time to which words like yesterday refer
        {DATABASE}""",
        note='example:\n  thermocline retrieve "what does Ana drink?" --limit 3 --explain',
    ),
    "context": Verb(
        Form("[QUERY]", _context),
        options="""
        QUERY               the turn it is for; - reads it from stdin
        --query TEXT        the query, in place of the first word
        --max-tokens N      size of the block, 200 to 8000 (default 2000)
        --format thermocline|json|tinyclaw|tiny-claw|scalyclaw|evoclaw  how it is written
        --session ID        only what this session sees""",
        note="example:\n  thermocline context 'why does the deploy hang?' --max-tokens 1000",
    ),
}
