"""Tells a real daemon conversations, and compares what it keeps with what a person would keep.

`python tests/benchmarks/kept_quality.py --data locomo.json --show`

The conversations of `data/kept.json` are split in halves by their place: the rules are fitted on
the first half, `fit`, and judged on the other. Of the conversations that are asked about
afterwards, `held out` was never fitted on; the others were written before the rules were tried on
them, and fitted on then. LoCoMo's file is no part of the project; of its
`observation` lists only the turns that they name are read.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from running import Running, Wire, request, with_query

from thermocline.daemon.language.extraction.extraction import extract_turns
from thermocline.daemon.language.speech import Turn

_DATA = Path(__file__).with_name("data") / "kept.json"
_HALVES = ("fit", "held out")
_DEPTH = 5


@dataclass
class RoundResult:
    """Counts over some conversations; bytes are of UTF-8."""

    wanted: int = 0
    found: int = 0
    kept: int = 0
    right: int = 0
    barred: int = 0
    dropped: int = 0
    said_bytes: int = 0
    kept_bytes: int = 0
    missing: list[str] = field(default_factory=list)
    surplus: list[str] = field(default_factory=list)

    def add(self, other: RoundResult) -> None:
        """Count what `other` counted."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def figures(self) -> dict[str, float]:
        """The shares, of 1."""
        return {
            "wanted": self.wanted,
            "kept of the wanted": _share(self.found, self.wanted),
            "wanted of the kept": _share(self.right, self.kept),
            "kept of the barred": _share(self.dropped, self.barred),
            "bytes kept": _share(self.kept_bytes, self.said_bytes),
        }


def main() -> None:
    """Tell, read back, and print."""
    options = _options()
    told = json.loads(_DATA.read_text(encoding="utf-8"))
    groups: dict[tuple[str, str], RoundResult] = {}
    with (
        tempfile.TemporaryDirectory(prefix="thermocline-kept-") as folder,
        Running(Path(folder)) as daemon,
    ):
        wire = daemon.connect()
        for place, one in enumerate([] if options.talk else told["conversations"]):
            half = _HALVES[place % 2]
            tally = compared(one, observed(wire, one["name"], one["turns"]))
            for name in (one["language"], "all"):
                groups.setdefault((half, name), RoundResult()).add(tally)
            if options.show and half == _HALVES[0]:
                _show(one["name"], tally)
        for (half, name), tally in sorted(groups.items()):
            _line(f"{half}, {name}", tally.figures())
        for one in told["asked"]:
            if options.talk in {None, one["name"]}:
                fitted = options.show and one["name"] != _HALVES[1]
                _ask(wire, one, show=fitted or options.talk is not None)
        wire.close()
    if options.data is not None:
        _locomo(json.loads(options.data.read_text(encoding="utf-8")))


def observed(wire: Wire, agent: str, turns: Sequence[Any]) -> list[str]:
    """The texts that are kept of a conversation, but for those that were overtaken."""
    body = {"conversation": "one", "messages": turns, "wait": True}
    wire.post(with_query("/api/observe", {"agent": agent}), body)
    listed = wire.get("/api/memory", agent=agent, limit=100)["results"]
    return [one["text"] for one in listed if not one.get("superseded_by")]


def compared(told: Any, kept: Sequence[str]) -> RoundResult:
    """What was kept of a conversation beside what a person would keep."""
    words = [one["words"] for one in told["keep"]]
    missing = [one for one in words if not any(says(text, one) for text in kept)]
    wanted = [*words, *told["may"]]
    surplus = [text for text in kept if not any(says(text, one) for one in wanted)]
    dropped = [one for one in told["drop"] if any(one.lower() in text.lower() for text in kept)]
    return RoundResult(
        wanted=len(words),
        found=len(words) - len(missing),
        kept=len(kept),
        right=len(kept) - len(surplus),
        barred=len(told["drop"]),
        dropped=len(dropped),
        said_bytes=_bytes(turn["content"] for turn in told["turns"]),
        kept_bytes=_bytes(kept),
        missing=[" + ".join(one) for one in missing],
        surplus=surplus + [f"BARRED {one}" for one in dropped],
    )


def says(text: str, words: Iterable[str]) -> bool:
    """Whether each of the words begins a word of `text`; "a|b" is either."""
    return all(any(_stands(one, text) for one in word.split("|")) for word in words)


def _stands(word: str, text: str) -> bool:
    begin = r"(?<![a-z0-9])" if word[0].isascii() else ""
    end = r"(?!\d)" if word[-1].isdigit() else ""
    return re.search(begin + re.escape(word.lower()) + end, text.lower()) is not None


def _ask(wire: Wire, told: Any, *, show: bool) -> None:
    agent = told["name"].replace(" ", "-")
    kept = observed(wire, agent, told["turns"])
    memory_md = wire.send(
        request("GET", with_query("/api/hot/markdown", {"agent": agent}))
    ).decode()
    answered = first = 0
    for one in told["questions"]:
        path = with_query("/api/recall", {"agent": agent})
        hits = wire.post(path, {"query": one["question"], "limit": _DEPTH})["results"]
        texts = [hit["text"] for hit in hits if "text" in hit]
        places = [at for at, text in enumerate(texts, 1) if says(text, [one["answer"]])]
        answered += bool(places)
        first += places[:1] == [1]
        if show:
            print(f"  {places[0] if places else '-'} {one['question']}  {texts[:1]}")
    if show:
        print("  kept:", *kept, sep="\n    ")
        print("  MEMORY.md:", *memory_md.splitlines(), sep="\n    ")
    barred = sum(any(one in text for text in [*kept, memory_md]) for one in told["drop"])
    of = len(told["questions"])
    print(
        f"{told['name']}: answered {answered} of {of}, {first} of them first;"
        f" {len(kept)} kept, {barred} barred"
    )


def _locomo(conversations: Sequence[Any]) -> None:
    halves = {half: RoundResult() for half in _HALVES}
    for place, one in enumerate(conversations):
        halves[_HALVES[place % 2]].add(_selected(one))
    for half, tally in halves.items():
        _line(f"LoCoMo's turns, {half}", tally.figures())


def _selected(told: Any) -> RoundResult:
    tally = RoundResult()
    talk = told["conversation"]
    for name, lists in told["observation"].items():
        turns = talk[name.removesuffix("_observation")]
        wanted = set(re.findall(r"D\d+:\d+", json.dumps(lists)))
        read = [
            Turn("user", turn["text"], turn["speaker"], place) for place, turn in enumerate(turns)
        ]
        found = extract_turns(read)
        kept = {turns[one.position]["dia_id"] for one in found if one.position is not None}
        wanted &= {turn["dia_id"] for turn in turns}
        tally.add(
            RoundResult(
                wanted=len(wanted),
                found=len(wanted & kept),
                kept=len(kept),
                right=len(wanted & kept),
                said_bytes=_bytes(turn["text"] for turn in turns),
                kept_bytes=_bytes(one.text for one in found),
            )
        )
    return tally


def _bytes(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _line(name: str, figures: dict[str, float]) -> None:
    shares = (f"{what} {value:.2f}" for what, value in figures.items() if what != "wanted")
    print(f"{name:26} {figures['wanted']:4.0f} wanted, " + ", ".join(shares))


def _show(name: str, tally: RoundResult) -> None:
    print(name, *(f"  missing: {one}" for one in tally.missing), sep="\n")
    for one in tally.surplus:
        print(f"  surplus: {one}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FILE", help="LoCoMo's conversations")
    parser.add_argument(
        "--show", action="store_true", help="print what is missing of the first half, and answers"
    )
    parser.add_argument("--talk", metavar="NAME", help="only this one of those asked about, shown")
    return parser.parse_args()


if __name__ == "__main__":
    main()
