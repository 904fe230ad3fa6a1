"""Tells a real daemon whole talks, and judges what it keeps of them.

`python tests/benchmarks/talks.py --show umzug`

A file of `data/talks/` is one talk: `turns`; `keep`, what a person would keep, each with its
`words` and a `question` in other words whose answer has the words of `answer`; `may`, what is no
fault; `never`, what makes a memory wrong; and `secrets`, which are searched for in every byte below
the state folder. Of the talk `sealed` only the figures are ever printed.
"""

import argparse
import json
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from kept_quality import observed, says
from report import table
from running import Running, Wire, with_query

_FOLDER = Path(__file__).with_name("data") / "talks"
_SEALED = "sealed"
_DEPTH = 5


def main() -> None:
    """Tell, ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", metavar="NAME", help="what is missing, unfit and not found")
    shown = parser.parse_args().show
    if shown == _SEALED:
        parser.error("the sealed talk is never shown")
    rows: dict[str, dict[str, str]] = {}
    for path in sorted(_FOLDER.glob("*.json")):
        with tempfile.TemporaryDirectory(prefix="thermocline-talk-") as folder:
            talk = json.loads(path.read_text(encoding="utf-8"))
            with Running(Path(folder)) as daemon:
                wire = daemon.connect()
                figures = _judge(wire, talk, show=talk["name"] == shown)
                wire.close()
                leaked = _leaked(Path(folder), talk["secrets"])
        rows[talk["name"]] = figures | {"secrets": f"{leaked} of {len(talk['secrets'])}"}
    table("talk", rows)


def _judge(wire: Wire, talk: Any, *, show: bool) -> dict[str, str]:
    turns = [{"role": role, "content": text} for role, text in talk["turns"]]
    kept = observed(wire, talk["name"], turns)
    missing = [fact for fact in talk["keep"] if not any(says(text, fact["words"]) for text in kept)]
    fit = [*(fact["words"] for fact in talk["keep"]), *talk["may"]]
    unfit = [
        text
        for text in kept
        if any(phrase in text.lower() for phrase in talk["never"])
        or not any(says(text, words) for words in fit)
    ]
    lost = []
    for fact in talk["keep"]:
        body = {"query": fact["question"], "limit": _DEPTH}
        results = wire.post(with_query("/api/recall", {"agent": talk["name"]}), body)["results"]
        if not any(says(result.get("text", ""), fact["answer"]) for result in results):
            lost.append(fact)
    if show:
        print("kept:", *kept, sep="\n  ")
        print("missing:", *(" + ".join(fact["words"]) for fact in missing), sep="\n  ")
        print("unfit:", *unfit, sep="\n  ")
        print("not found:")
        for fact in lost:
            print(f"  {fact['question']} {fact['answer']}")
            body = {"query": fact["question"], "limit": _DEPTH}
            results = wire.post(with_query("/api/recall", {"agent": talk["name"]}), body)["results"]
            print(*(f"      {r.get('text')}" for r in results), sep="\n")
    wanted = len(talk["keep"])
    return {
        "kept": f"{wanted - len(missing)} of {wanted}",
        "unfit": f"{len(unfit)} of {len(kept)}",
        "found": f"{wanted - len(lost)} of {wanted}",
    }


def _leaked(folder: Path, secrets: list[str]) -> int:
    contents = []
    for path in filter(Path.is_file, folder.rglob("*")):
        # A state file is replaced by a rename.
        with suppress(FileNotFoundError):
            contents.append(path.read_bytes())
    patterns = (rb"(?<![\w.-])" + secret.encode() + rb"(?![\w.-])" for secret in secrets)
    return sum(any(re.search(one, content) for content in contents) for one in patterns)


if __name__ == "__main__":
    main()
