"""Texts and conversations: distilling, observing, and checking notes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from ..client.errors import ApiError
from ..client.wording import number_of
from .memories import headline
from .models import local_model
from .terminal import short, show_json, show_rows, visible, worded
from .usage import PATIENT_SECONDS, Form, Verb
from .values import WrongUsage, refuse, say, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Final

    from ..client.caller import Caller
    from .usage import Answer, Args, Shown

_MOST_TEXTS: Final = 50
_MOST_BYTES: Final = 1_000_000
_LISTS: Final = ("people", "topics", "actions", "urls", "commands", "paths")
_MOST_EXIT: Final = 99
_REFERENCES: Final = ("urls", "commands", "paths")


def _distill(args: Args, client: Caller) -> None:
    refuse((args.text is None) == (not args.files), "give a text once: as a word or with --file")
    for option in ("category", "source"):
        refuse(getattr(args, option) is not None and not args.store, f"--{option} needs --store")
    if args.text and "\n" not in args.text and os.path.isfile(args.text):  # noqa: PTH113 - faster
        say(visible(f"{args.text!r} is taken as a text; --file {args.text} reads the file"))
    names = args.files or ("",)
    texts = [text_in(name) for name in args.files] if args.files else [args.text]
    for name, text in zip(names, texts, strict=True):
        refuse(not text.strip(), f"{name or 'the text'} is empty: there is nothing to distill")
    body = args.present("core_summary", "facts", "store", "category", "source")
    body |= args.present("max_bytes") | _reader(args, client)
    results: list[Any] = []
    for some in _requests(texts):
        results += client.call("POST /api/distill", texts=some, **body)["results"]
    if not args.json:
        for name, result in zip(names, results, strict=True):
            _show_distilled(name if len(names) > 1 else "", result)
    elif len(results) == 1:
        # One object for one text, as EvoClaw has it.
        show_json(results[0])
    else:
        pairs = zip(names, results, strict=True)
        show_json([{"file": name, **result} for name, result in pairs])
    _say_why(*results)


def _requests(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in requests that the daemon takes by default; a longer text is a request alone."""
    some: list[str] = []
    room = _MOST_BYTES
    for text in texts:
        size = len(json.dumps(text))
        if some and (size > room or len(some) == _MOST_TEXTS):
            yield some
            some, room = [], _MOST_BYTES
        some.append(text)
        room -= size
    yield some


def _reader(args: Args, client: Caller) -> dict[str, Any]:
    """The fields that say which model reads, if one does."""
    refuse(args.rules and (args.llm or args.llm_endpoint), "give either --rules or a model")
    client.timeout = PATIENT_SECONDS
    fields = args.present("llm_endpoint")
    if args.llm or args.rules:
        fields["llm"] = bool(args.llm)
    return fields | local_model(client) if args.llm and not args.llm_endpoint else fields


def _say_why(*answers: Answer) -> None:
    for why in dict.fromkeys(answer["why"] for answer in answers if answer.get("why")):
        say(visible(f"by rules, without a model: {why}"))


def _show_distilled(name: str, result: Answer) -> None:
    if name:
        print(visible(f"{name}:"))
    for fact in result.get("facts") or [result["distilled"]]:
        rows = [("fact", fact["fact"])]
        rows += [(name, ", ".join(fact[name])) for name in _LISTS if fact.get(name)]
        if fact["emotion"] != "neutral":
            rows.append(("emotion", fact["emotion"]))
        show_rows([*rows, ("outcome", fact["outcome"])])
    rows = [("mode", result["mode"])]
    rows.append(("size", worded("{original_size} to {distilled_size} bytes", result)))
    if result.get("core_summary"):
        rows.append(("summary", result["core_summary"]))
    show_rows(rows)
    for stored in result.get("stored") or ():
        how = "already stored as" if stored["duplicate"] else "stored"
        print(how, short(stored["id"]), "in", visible(stored["category"]))


def _observe(args: Args, client: Caller) -> Shown:
    names_model = args.llm or args.llm_endpoint or args.rules
    refuse(args.turns and (args.later or args.end or names_model), "--turns stands alone")
    refuse(args.later and names_model, "give either --later, or --llm, --llm-endpoint and --rules")
    name = args.conversation or Path(args.file).stem.strip("-")
    refuse(not name, "give standard input a --conversation: its name")
    reader = {} if args.turns else _reader(args, client)
    body = {"conversation": name} | messages_in(text_in(args.file))
    if args.turns:
        stored = client.call("POST /api/turns", **body)
        say_skipped(stored)
        known = f"; {stored['known']} known already" if stored["known"] else ""
        return f"stored {number_of(len(stored['stored']), 'turn', 'turns')}{known}"
    body |= {"end": bool(args.end), "wait": not args.later, **reader}
    answer = client.call("POST /api/observe", **body)
    say_skipped(answer)
    _say_why(answer)
    return lambda: _show_observed(answer)


def messages_in(text: str) -> dict[str, Any]:
    """The messages of a JSON list, or any other text; `WrongUsage` for other JSON."""
    refuse(not text.strip(), "cannot read the messages: the text is empty")
    begins = "".join(text[:1_000].split())[:2]
    refuse(begins == '{"', "cannot read the messages: a JSON object is no list of them")
    # "[10:02] Ada: yes" is a line of a chat.
    if begins not in {"[", "[{", "[]"}:
        return {"text": text}
    try:
        return {"messages": json.loads(text)}
    except ValueError as error:
        raise WrongUsage(f"cannot read the messages: {error}") from None


def _show_observed(answer: Answer) -> None:
    turns = number_of(answer["turns"], "turn", "turns")
    if "stored" not in answer:
        print("heard", turns)
        return
    stored = answer["stored"]
    show_rows((short(memory["id"]), memory["category"], headline(memory)) for memory in stored)
    known = len(answer.get("known") or ())
    more = f"; {known} known already" if known else ""
    print(f"stored {number_of(len(stored), 'fact', 'facts')} of {turns}{more}")


def say_skipped(answer: Answer) -> None:
    """Say which messages could not be read."""
    for message in answer.get("skipped") or ():
        say(visible(f"left out message {message['at']}: {message['why']}"))


def _validate(args: Args, client: Caller) -> int:
    try:
        body = {} if args.file is None else {"text": text_in(args.file), "file": args.file}
        answer = client.call("POST /api/validate", **body)
    except (FileNotFoundError, ApiError) as error:
        if not args.json or getattr(error, "field", "file") != "file":
            raise
        # EvoClaw's answer if the note does not exist.
        note = args.file or time.strftime("memory/%Y-%m-%d.md")
        missing = f"Daily notes file not found: {note}"
        advice = "name a file with --file, or write memory/YYYY-MM-DD.md"
        answer = {"status": "warning", "warnings_count": 1, "warnings": [missing]}
        show_json({**answer, "file": args.file, "suggestions": [advice]})
        return 1
    if args.json:
        show_json({name: value for name, value in answer.items() if name != "omissions"})
    else:
        name = visible(answer.get("file") or "the text")
        for omission in answer.get("omissions") or ():
            print(f"{name}:{omission['line']}: {visible(omission['message'])}")
            print(f"  {visible(omission['suggestion'])}")
        if answer.get("message"):
            print(f"{name}: {visible(answer['message'])}")
    return min(answer.get("warnings_count") or 0, _MOST_EXIT)


def _extract_metadata(args: Args, client: Caller) -> None:
    answer = client.call("POST /api/metadata", text=text_in(args.file))
    if args.json:
        show_json({"file": args.file, **answer})
    else:
        metadata = answer["metadata"]
        rows = [(kind[:-1], text) for kind in _REFERENCES for text in metadata.get(kind, ())]
        show_rows(rows) if rows else say(f"no URL, command or path in {visible(args.file)}")


VERBS: Final = {
    "distill": Verb(
        Form("[TEXT]", _distill),
        options="""
        TEXT                    the text; - reads it from stdin
        --text TEXT             the text, in place of the first word
        --file FILE... = files  a text; may be repeated
        --core-summary          add a summary of at most 30 bytes
        --facts                 all facts; default: the best one
        --max-bytes N           maximum size of a fact
        model or rules:
        --llm                   with the configured model, or a model server on this device; else
                                by rules
        --llm-endpoint URL      with the model at this address
        --rules                 by rules, even if a model is configured
        storing:
        --store                 store the facts as memories
        --category PATH         used if no existing category fits better
        --source SOURCE         where the text is from; web:…, tool:…, file:… or mail:… is quoted
                                wherever an agent reads it""",
        note=(
            "examples:\n"
            '  thermocline distill "User: Ship it on Friday? Agent: Yes, decided."'
            " --core-summary\n"
            "  thermocline distill --file meeting.md --facts --store --category projects/x"
        ),
    ),
    "observe": Verb(
        Form("FILE", _observe, options="conversation turns later end llm llm_endpoint rules"),
        options="""
        FILE                 the conversation; - reads it from stdin
        --conversation NAME  its name, for all its turns; default: the file's
        --turns              store the turns themselves, in place of the facts
        --later              let the daemon read it after a pause
        --end                the conversation is over: sum it up
        model or rules:
        --llm                with a model; default: if one is configured
        --llm-endpoint URL   with the model at this address
        --rules              by rules, even if a model is configured""",
        note=(
            'The file has lines such as "Ada: I like tea", or is a JSON list of messages as\n'
            "models' providers take them (role, content, name).\n\n"
            "examples:\n"
            "  thermocline observe standup.txt\n"
            "  thermocline observe messages.json --conversation 4711 --turns"
        ),
    ),
    "extract-metadata": Verb(
        Form("", _extract_metadata, options="file!"),
        options="--file FILE  a text; - reads standard input",
    ),
    "validate": Verb(
        Form("", _validate),
        options="--file FILE  the note; default: today's",
        note=(
            "It warns of tools without a URL, of actions without a command, and of decisions\n"
            f"without a next step. The exit code is the number of warnings, at most {_MOST_EXIT}."
        ),
    ),
}
