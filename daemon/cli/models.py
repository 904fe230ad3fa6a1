"""A model server on this device, used if none is configured, and `thermocline encoder`.

The command tries the model that encodes texts as vectors on the newest memories.
"""

from __future__ import annotations

import json
import os
import re
import time

from ..client.errors import ApiError
from ..client.wording import dollars, number_of, size, span
from .terminal import show_rows, visible
from .usage import PATIENT_SECONDS, Form, Verb
from .values import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Final

    from ..client.caller import Caller
    from .usage import Args, Shown

PORTS_VARIABLE: Final = "THERMOCLINE_MODEL_PORTS"
# Where llama.cpp, Ollama and LM Studio listen; EvoClaw's tools look there as well.
_OLLAMA_PORT: Final = 11434
_USUAL_PORTS: Final = (8080, _OLLAMA_PORT, 1234)
_ENCODES: Final = re.compile(r"embed|minilm|(?:^|[/-])(?:bge|gte|e5)-", re.IGNORECASE)
# A name that a person may paste into a shell.
_PLAIN: Final = re.compile(r"[A-Za-z0-9._:/@+-]{1,150}")
_HOST: Final = "127.0.0.1"
# A closed port refuses at once; a server may be busy with another question.
_SECONDS: Final = 3.0
_LONGEST_LIST: Final = 1 << 20
_SOCKETS: Final = ("/proc/net/tcp", "/proc/net/tcp6")


def with_local_model(
    client: Caller, ask: Callable[[dict[str, Any]], Any], env: Mapping[str, str] = os.environ
) -> Any:
    """What `ask` answers with the options of `local_model`.

    A caller who may not let the daemon call other servers is answered without them, with a note.
    """
    options = local_model(client, env)
    try:
        return ask(options)
    except ApiError as error:
        if not options or error.code != "forbidden":
            raise
        say(visible(f"that model was not asked: {error}"))
    return ask({})


def local_model(client: Caller, env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The `llm_endpoint` of a server on this device, if no model is configured; and say so.

    Only for an explicit request for a model: the question goes to whatever program listens there.
    """
    if client.call("GET /api/status")["llm"]["state"] != "off":
        return {}
    ports = ports_of(env)
    for port in ports:
        if models_at(port):
            endpoint = f"http://{_HOST}:{port}/v1"
            say(f"no model is configured; asking the one at {endpoint}")
            return {"llm_endpoint": endpoint}
    if ports:
        numbers = " or ".join(filter(None, [", ".join(map(str, ports[:-1])), str(ports[-1])]))
        say(f"no model server answers at port {numbers} of this device")
    return {}


def ports_of(env: Mapping[str, str]) -> tuple[int, ...]:
    """The ports to try: those in `$THERMOCLINE_MODEL_PORTS`, which may be empty."""
    named = env.get(PORTS_VARIABLE)
    if named is None:
        return _USUAL_PORTS
    words = named.replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() and 0 < int(word) < 65_536 for word in words):
        say(visible(f"{PORTS_VARIABLE}: expected numbers of ports, got {named[:60]!r}"))
        return ()
    return tuple(map(int, words))


def encoder_here(env: Mapping[str, str]) -> tuple[str, str] | None:
    """A model on this device whose name says that it encodes texts.

    That is its name for litellm, and the URL that its provider needs, or "".
    """
    for port in ports_of(env):
        for model in models_at(port):
            name = str(model["id"])
            if not _ENCODES.search(name) or not _PLAIN.fullmatch(name):
                continue
            base = f"http://{_HOST}:{port}"
            if model.get("owned_by") == "library":
                return f"ollama/{name}", "" if port == _OLLAMA_PORT else base
            return f"lm_studio/{name}", f"{base}/v1"
    return None


def models_at(port: int, tables: Sequence[str] = _SOCKETS) -> Sequence[Mapping[str, Any]]:
    """The models that a server at this port of the loopback lists, in OpenAI's protocol.

    None of a server of another user of the device, who would see the memories.
    """
    if _is_anothers(port, tables):
        return ()
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - few commands ask

    until = time.monotonic() + _SECONDS
    connection = HTTPConnection(_HOST, port, timeout=_SECONDS)
    try:
        connection.request("GET", "/v1/models")
        response = connection.getresponse()
        body = b""
        while (piece := response.read1(65_536)) and len(body) < _LONGEST_LIST:
            body += piece
            if time.monotonic() > until:
                return ()
        models: Any = json.loads(body)["data"]
        return models if response.status == 200 and all(model["id"] for model in models) else ()
    except (OSError, HTTPException, ValueError, LookupError, TypeError, RecursionError):
        return ()
    finally:
        connection.close()


def _is_anothers(port: int, tables: Sequence[str]) -> bool:
    """Whether another person's program listens at a port, as far as the kernel tells."""
    rows: list[list[str]] = []
    for table in tables:
        try:
            with open(table, encoding="ascii") as file:  # noqa: PTH123 - as in the other verbs
                rows += [line.split() for line in file.readlines()[1:]]
        except (OSError, ValueError):
            continue
    owners = {
        int(row[7]) for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port
    }
    # The accounts of services have low numbers.
    return any(uid >= 1_000 and not 60_000 < uid <= 65_535 for uid in owners - {os.getuid()})


# `thermocline encoder`.
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
    if client.call("GET /api/status").get("encoder") is None:
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
    encoder, estimate = trial["encoder"], trial.get("estimate")
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
