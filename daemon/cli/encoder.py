"""`thermocline encoder`: the model that encodes texts as vectors, tried on the newest memories."""

from __future__ import annotations

import os

from ..client.wording import dollars, number_of, size
from .local_models import encoder_here
from .terminal import cut, one_line, show_rows, span
from .usage import PATIENT_SECONDS, Form, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Final

    from ..client.caller import Caller
    from .usage import Args, Shown

_QUOTED_CELLS: Final = 40
_HOW: Final = """\
no encoder is configured: memories are found by their words and concepts
with one they are found by their meaning, too; it is a model on this device or elsewhere:"""
_SET: Final = "thermocline config --set 'llm.models.embed=[\"{}\"]'"
_EXAMPLES: Final = (
    ("ollama/nomic-embed-text", "a server on this device, such as Ollama"),
    ("static:/a/folder", "files in model2vec's format; make encoder"),
    ("openai/text-embedding-3-small", "a provider, who is sent all texts"),
)


def _encoder(_: Args, client: Caller) -> Shown:
    if client.call("GET /api/encoder")["encoder"] is None:
        return _show_how
    trial = client.call("POST /api/encoder/try")
    return lambda: show_rows(_rows(trial))


def _show_how() -> None:
    print(_HOW)
    if (here := encoder_here(os.environ)) is not None:
        model, base = here
        provider = model.partition("/")[0]
        more = f" --set llm.api_bases.{provider}={base}" if base else ""
        print(f"  this device has {model}:\n  {_SET.format(model)}{more}")
        return
    for model, what in _EXAMPLES:
        print(f"  {what}:\n  {_SET.format(model)}")


def _rows(trial: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    encoder, estimate, near = trial["encoder"], trial.get("estimate"), trial.get("nearest")
    yield "encoder", f"{encoder['model']}, {encoder['state']}"
    yield "vectors", f"{encoder['dimensions']} dimensions"
    goes_to = encoder["goes_to"]
    yield "texts", f"go to {goes_to}, without their secrets" if goes_to else "stay on this device"
    if encoder["pid"] is not None:
        yield "process", f"{encoder['pid']}, {size(encoder['memory_bytes'])}"
    tried = number_of(trial["tried"], "memory", "memories")
    yield (
        "time",
        f"{tried} in {_time(trial['seconds'])}, a query in {_time(trial['query_seconds'])}",
    )
    if near is not None:
        texts = (cut(one_line(text), _QUOTED_CELLS) for text in near["texts"])
        yield "nearest", f"{' / '.join(texts)} (cosine {near['cosine']:.2f})"
    if estimate is not None:
        cost = "free"
        if estimate["tokens"]:
            amount = estimate["cost"]
            price = "price unknown" if amount is None else f"{dollars(amount)} dollars"
            cost = f"{estimate['tokens']:,} tokens, {price}"
        yield "10,000 texts", f"{_time(estimate['seconds'])}, {cost}"
        count, seconds = number_of(trial["memories"], "memory", "memories"), estimate["all_seconds"]
        yield "all", f"{count}: {_time(seconds)} in the background"


def _time(seconds: float) -> str:
    return span(seconds) if seconds >= 60 else f"{seconds:.2f} s"


VERBS: Final = {
    "encoder": Verb(
        Form("", _encoder, seconds=PATIENT_SECONDS),
        note="Texts are sent to the encoder that is configured in llm.models.embed.",
    )
}
