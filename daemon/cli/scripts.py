"""The scripts of EvoClaw's tiered memory, as their callers know them.

`thermocline connect openclaw` replaces each by a script that calls ours in the interpreter that
started it, or starts this module if that interpreter cannot load the package.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ..client.caller import Caller
from ..client.errors import ClientError
from .main import failed, main, split
from .terminal import show_json
from .usage import Args, Form, Verb, help_of, parse
from .values import OUTPUT_VARIABLE, WrongUsage, refuse, say, text_in

# EvoClaw's default of `store`.
_IMPORTANCE: Final = "0.5"
_MAX_BYTES: Final = 100
_TOP: Final = 5
_DISTILLED: Final = (
    *("distilled", "mode", "original_size", "distilled_size", "compression_ratio"),
    *("core_summary", "core_size"),
)


def _memory_cli(options: Sequence[str], words: Sequence[str]) -> int:
    """The verbs are ours; all answers are JSON, but for the text of the tree."""
    verb, rest = split(words)
    if verb is None:
        return main(words)
    if verb == "store" and not any(word.partition("=")[0] == "--importance" for word in rest):
        rest = ["--importance", _IMPORTANCE, *rest]
    as_text = verb == "tree" and not {"--add", "--remove", "--prune"} & {*rest}
    if as_text:
        os.environ.pop(OUTPUT_VARIABLE, None)
    return main([*options, *([] if as_text else ["--json"]), verb, *rest])


def _distil(args: Args, client: Caller) -> dict[str, Any]:
    refuse((args.text is None) == (args.file is None), "give either --text or --file")
    text = args.text if args.file is None else text_in(args.file)
    body: dict[str, Any] = {"llm": args.mode == "llm"}
    if args.mode == "llm" and args.llm_endpoint:
        body = {"llm_endpoint": args.llm_endpoint}
    limit = _MAX_BYTES if args.max_bytes is None else args.max_bytes
    core = bool(args.core_summary)
    answer = client.call("POST /api/distill", text=text, max_bytes=limit, core_summary=core, **body)
    fields = {name: answer[name] for name in _DISTILLED if name in answer}
    return {**fields, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S")}


def _search(args: Args, client: Caller) -> dict[str, Any] | None:
    if args.llm_prompt_file:
        prompt = client.call("GET /api/tree/search/prompt", query=args.query)
        with open(args.llm_prompt_file, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(prompt + "\n")
        return None
    mode = args.mode or "keyword"
    body = args.present("llm_endpoint") if mode == "llm" and args.llm_endpoint else {}
    limit = _TOP if args.top_k is None else args.top_k
    answer: dict[str, Any] = client.call(
        "POST /api/tree/search", query=args.query, mode=mode, limit=limit, **body
    )
    return answer


def _tree_rebuild(_: Sequence[str], words: Sequence[str]) -> int:
    more = " --dry-run" if "--dry-run" in words else ""
    say(
        "tree_rebuild.py changes files that this memory only writes; call"
        f" `thermocline consolidate --mode monthly{more} --llm-endpoint URL`"
    )
    return 2


_OUTPUT: Final = "--output FILE  write the answer to this file"
_DISTILLER: Final = Verb(
    Form("", lambda args, client: _write(args, _distil(args, client))),
    options=f"""
    --text TEXT         the text
    --file FILE         or the file that holds it
    --mode rule|llm     by rules (default), or with a model
    --llm-endpoint URL  the model's address
    --max-bytes N       maximum size (default {_MAX_BYTES})
    --core-summary      add a summary
    {_OUTPUT}""",
)
_SEARCH: Final = Verb(
    Form(
        "",
        lambda args, client: _write(args, _search(args, client)),
        options="query! tree_file mode llm_endpoint llm_prompt_file top_k output",
    ),
    options=f"""
    --query TEXT            what to look for
    --tree-file FILE        not read: the tree is that of the agent
    --mode keyword|llm      by keywords (default), or with a model
    --llm-endpoint URL      the model's address
    --llm-prompt-file FILE  write the question for a model there
    --top-k N               maximum number of categories (default {_TOP})
    {_OUTPUT}""",
)


def _script(name: str, declared: Verb, options: Sequence[str], words: Sequence[str]) -> int:
    """Run a script whose answer is one JSON object, on standard output or in `--output`."""
    if {"--help", "-h"} & {*words}:
        print(help_of(name, declared, "answered by Thermocline"))
        return 0
    try:
        form, args = parse(name, declared, [*options, *words])
        with Caller(args.socket, args.agent) as client:
            assert callable(form.call)
            form.call(args, client)
    except (ClientError, WrongUsage, OSError) as error:
        return failed(error, words, as_json=False)
    return 0


def _write(args: Args, answer: Mapping[str, Any] | None) -> None:
    if answer is not None and args.output:
        with open(args.output, "w", encoding="utf-8") as file:  # noqa: PTH123 - as elsewhere
            json.dump(answer, file, ensure_ascii=False, indent=2)
    elif answer is not None:
        show_json(answer)


SCRIPTS: Final[Mapping[str, Callable[[Sequence[str], Sequence[str]], int]]] = {
    "memory_cli": _memory_cli,
    "distiller": partial(_script, "distiller.py", _DISTILLER),
    "tree_search": partial(_script, "tree_search.py", _SEARCH),
    "tree_rebuild": _tree_rebuild,
}


if __name__ == "__main__":
    # The number of options stands before them.
    _name, _number, *_words = sys.argv[1:]
    sys.exit(SCRIPTS[_name](_words[: int(_number)], _words[int(_number) :]))
