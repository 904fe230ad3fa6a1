"""Texts as vectors: real litellm, real processes, and a server that encodes by concepts."""

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from concept_vectors import vector
from daemon_process import until
from model_server import Heard, ModelServer, Saying
from static_model import write

from thermocline.daemon.config.settings import Llm, Settings, Tuning
from thermocline.daemon.errors import ModelUnavailable
from thermocline.daemon.language.secrets import clear
from thermocline.daemon.llm.budget import Budget, UsageCounts
from thermocline.daemon.llm.calls import Failover, MeteredCalls, ModelProcess
from thermocline.daemon.llm.client import ModelClient
from thermocline.daemon.llm.encoder import PROBE, Encoder, build_encoder, same_encoder
from thermocline.daemon.llm.model import read_prompts
from thermocline.daemon.llm.process import Timeouts
from thermocline.daemon.memory.vectors import cosine, quantised
from thermocline.daemon.runtime import atomic
from thermocline.daemon.runtime.problems import Problems
from thermocline.daemon.schemas.status import EncoderStatus

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLOW = Timeouts(start=60.0, load=120.0)
OPENAI, OLLAMA = "openai/embed-test", "ollama/nomic-embed-text"
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"
PATIENT = 60_000


class Rig:
    """An encoder around the module's processes, with everything else its own."""

    def __init__(self, folder: Path, process: ModelProcess, **llm: Any) -> None:
        self.frozen: float | None = None
        self.plan = Settings(llm=Llm(**llm))
        self.deadline(PATIENT)
        self.problems = Problems()
        budget = Budget(folder / "usage.json", atomic.write, time.time, lambda: self.plan.llm)
        self.usage = UsageCounts()
        self.models = ModelClient(
            lambda: self.plan.llm,
            MeteredCalls(process, budget, self.usage, self.problems),
            Failover(self.clock, asyncio.sleep, Random(1)),
            read_prompts(),
            {},
            clear,
            self.problems,
        )
        self.encoder: Encoder = build_encoder(
            lambda: self.plan, self.models, env={}, clear=clear, timeouts=SLOW
        )

    def clock(self) -> float:
        """The monotonic time, unless a test has stopped it."""
        return time.monotonic() if self.frozen is None else self.frozen

    def configure(self, **llm: Any) -> None:
        """Change the section `llm`."""
        plan = msgspec.structs.replace(self.plan.llm, **llm)
        self.plan = msgspec.structs.replace(self.plan, llm=plan)

    def use(self, folder: Path) -> None:
        """Configure the static model in a folder."""
        self.configure(models={"embed": (f"static:{folder}",)})

    def deadline(self, milliseconds: int) -> None:
        """Set how long a query may take."""
        self.plan = msgspec.structs.replace(
            self.plan, recall=Tuning(embed_deadline_ms=milliseconds)
        )

    def state(self) -> EncoderStatus:
        state = self.encoder.state()
        assert state is not None
        return state

    async def encode(self, *texts: str, **how: Any) -> Any:
        assert self.encoder.model is not None
        return await self.encoder.encode(texts, model=self.encoder.model, **how)

    async def query(self, text: str) -> Any:
        assert self.encoder.model is not None
        return await self.encoder.encode_query(text, model=self.encoder.model)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def process() -> AsyncIterator[ModelProcess]:
    running = ModelProcess({}, lambda: 600.0, timeouts=SLOW)
    yield running
    await running.close()


@pytest_asyncio.fixture(loop_scope="module")
async def build(tmp_path: Path, process: ModelProcess) -> AsyncIterator[Callable[..., Rig]]:
    """`build(**llm)` makes an encoder; all are closed after the test."""
    rigs: list[Rig] = []

    def make(name: str, **llm: Any) -> Rig:
        models: Any = {"embed": (name,)}
        rigs.append(Rig(tmp_path, process, models=models, **llm))
        return rigs[-1]

    yield make
    for rig in rigs:
        await rig.encoder.close()


@pytest_asyncio.fixture(loop_scope="module")
async def rig(build: Callable[..., Rig], model_server: ModelServer) -> Rig:
    """An encoder behind the test's server."""
    return build(OPENAI, api_bases={"openai": model_server.base})


def ollama(build: Callable[..., Rig], server: ModelServer, name: str = OLLAMA) -> Rig:
    return build(name, api_bases={"ollama": server.base.removesuffix("/v1")})


def mapped(pid: int) -> set[str]:
    """The files that a process has loaded."""
    lines = Path(f"/proc/{pid}/maps").read_text("utf-8").splitlines()
    return {line.split()[-1] for line in lines}


async def refused(rig: Rig, *texts: str) -> ModelUnavailable:
    """Encode in vain; why."""
    with pytest.raises(ModelUnavailable) as caught:
        await rig.encode(*texts)
    return caught.value


# Models behind a server


@pytest.mark.parametrize("name", [OPENAI, OLLAMA])
async def test_texts_of_one_concept_are_near(build, model_server, name):
    rig = ollama(build, model_server)
    if name == OPENAI:
        rig = build(OPENAI, api_bases={"openai": model_server.base})
    encoding = await rig.encode("my puppy sleeps", "a dog at home", "the train to Vienna")
    dog, other, train = encoding.vectors
    assert (encoding.model, encoding.dimensions, len(dog)) == (name, 64, 64)
    assert cosine(dog, other) > cosine(dog, train)
    again = await rig.encode("the train to Vienna")
    assert again.vectors == (train,)
    assert same_encoder(again, encoding)
    query = await rig.query("hound")
    assert cosine(query.vectors[0], dog) > cosine(query.vectors[0], train)
    assert query.probe == again.probe


async def test_every_call_of_passages_has_a_probe_and_no_query_has(rig, model_server):
    await rig.encode("a")
    await rig.encode()
    await rig.query("b")
    assert model_server.encoded == [PROBE, "a", PROBE, "b"]


async def test_a_single_key_is_that_of_the_encoder_if_nothing_else_is_configured(
    build, model_server, tmp_path
):
    (tmp_path / "key").write_text("THEKEY")
    rig = build(OPENAI, api_base=model_server.base, key_file=str(tmp_path / "key"))
    await rig.encode("a")
    assert model_server.heard[0].headers["authorization"] == "Bearer THEKEY"


async def test_no_secret_leaves_the_daemon(rig, model_server):
    await rig.encode(f"the password: hunter2-{'x' * 9}", f"key {KEY}")
    await rig.query(f"what is {KEY}?")
    assert len(model_server.encoded) == 4
    assert "hunter2" not in str(model_server.heard)
    assert KEY not in str(model_server.heard)
    assert rig.usage.cleared()["api_key"] == 2


async def test_what_encoding_takes_is_counted_under_its_purpose(rig, model_server):
    model_server.usually = Saying(tokens=(40, 0))
    await rig.encode("a", "b")
    await rig.query("c")
    counts = rig.usage.purposes()["embed"]
    assert (counts.calls, counts.errors, counts.tokens_in, counts.tokens_out) == (2, 0, 80, 0)
    assert rig.models.calls.budget.today.tokens == 80
    measured = rig.encoder.measured()
    assert measured is not None
    assert (measured.texts, measured.tokens_in) == (2, 40)


async def test_a_spent_budget_sends_nothing(rig, model_server):
    rig.configure(daily_tokens=1)
    model_server.usually = Saying(tokens=(40, 0))
    await rig.encode("a")
    assert "budget" in (await refused(rig, "b")).message
    assert await rig.query("c") is None
    assert model_server.encoded == [PROBE, "a"]
    assert rig.state().state == "spent"


# What a model may answer


async def test_a_text_whose_vector_is_not_a_number_has_none(rig, model_server):
    model_server.spoilt = lambda text, one: [math.nan, *one[1:]] if text == "b" else one
    encoding = await rig.encode("a", "b", "c")
    assert [vector is not None for vector in encoding.vectors] == [True, False, True]
    assert await rig.query("b") is None


@pytest.mark.parametrize("number", [math.nan, 0.0, None, "0.5"])
async def test_a_model_that_sends_no_vectors_encodes_nothing(rig, model_server, number):
    model_server.spoilt = lambda _text, one: [number for _ in one]
    assert "without a direction" in (await refused(rig, "a")).message
    assert rig.state().state == "failing"


async def test_another_model_under_the_same_name_is_noticed(rig, model_server):
    before = await rig.encode("a")
    query = await rig.query("a")
    model_server.weights = "others"
    assert await rig.query("a") == query
    after = await rig.encode("a")
    assert (after.model, after.dimensions) == (before.model, before.dimensions)
    assert not same_encoder(before, after)
    # What the earlier one had encoded is not compared with vectors of this one.
    assert (await rig.query("a")).vectors != query.vectors
    model_server.dimensions = 32
    assert not same_encoder(after, await rig.encode("a"))


async def test_a_text_that_is_refused_does_not_keep_others_from_being_encoded(rig, model_server):
    def answer(heard: Heard) -> Saying:
        refuses = any("poison" in text or len(text) > 5_000 for text in heard.body["input"])
        return Saying("input is too long", status=400) if refuses else Saying()

    model_server.usually = answer
    texts = ("a", "poison", "b", "word " * 1_200, "c")
    encoding = await rig.encode(*texts)
    present = [vector is not None for vector in encoding.vectors]
    assert present == [True, False, True, True, True]
    assert encoding.probe


async def test_a_very_long_text_is_cut(rig, model_server):
    await rig.encode("word " * 10_000)
    assert len(model_server.encoded[1]) == 8_000


# A model that is away


async def test_a_model_that_keeps_failing_is_left_alone_for_a_while(rig, model_server):
    model_server.usually = Saying("not for you", status=401)
    rig.frozen = time.monotonic()
    why = "answers with status 401"
    assert why in (await refused(rig, "a")).message
    message = (await refused(rig, "a")).message
    assert "is not asked for 5 s" in message
    assert why in message
    assert await rig.query("b") is None
    assert len(model_server.heard) == 1
    assert rig.state().state == "failing"
    assert why in rig.state().why
    rig.frozen += 6
    model_server.usually = Saying()
    assert (await rig.encode("a")).vectors[0] is not None
    assert rig.state().state == "ready"


async def test_a_refusal_of_everything_is_no_text_s_fault(rig, model_server):
    model_server.usually = Saying("no such thing", status=400)
    assert "status 400" in (await refused(rig, *map(str, range(30)))).message
    assert len(model_server.heard) == 2


async def test_a_late_query_is_answered_from_the_cache_the_next_time(rig, model_server):
    await rig.encode()
    model_server.says(Saying(late=True))
    rig.deadline(1)
    assert await rig.query("a") is None
    await until(lambda: len(model_server.heard) == 2, "the query has come")
    assert await rig.query("a") is None
    model_server.release()
    await until(lambda: rig.state().queries.entries == 1, "the query is encoded")
    assert await rig.query("a") is not None
    assert model_server.encoded == [PROBE, "a"]


async def test_few_queries_wait_for_a_server_that_hangs(rig, model_server):
    await rig.encode()
    model_server.usually = Saying(late=True)
    rig.deadline(1)
    for number in range(9):
        assert await rig.query(str(number)) is None
    await until(lambda: len(model_server.heard) == 5, "four queries have come")
    model_server.release()
    await until(lambda: rig.state().queries.entries == 4, "they are encoded")
    assert len(model_server.heard) == 5


# Static models


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("static"))


async def test_a_static_model_encodes_in_a_small_process_of_its_own(build, model_folder, process):
    starts = process.starts
    rig = build(f"static:{model_folder}")
    encoding = await rig.encode("my puppy", "a dog", "the kettle", "zzqx", "")
    dog, other, kettle, *nothing = encoding.vectors
    assert nothing == [None, None]
    assert cosine(dog, other) > 0.8 > cosine(dog, kettle)
    assert cosine((await rig.query("hound")).vectors[0], dog) > 0.5
    state = rig.state()
    assert (state.state, state.dimensions, state.goes_to) == ("ready", 64, "")
    assert 0 < state.memory_bytes < 80 << 20
    assert state.pid is not None
    assert not [name for name in mapped(state.pid) if "litellm" in name or "pydantic" in name]
    assert process.starts == starts
    assert rig.usage.purposes()["embed"].tokens_in == 0


async def test_every_form_of_table_is_read(build, model_folder, tmp_path):
    rig = build(f"static:{model_folder}")
    forms: list[dict[str, Any]] = [
        {"kind": "float16"}, {"kind": "int8"}, {"rows": 300}, {"dimensions": 512},
    ]  # fmt: skip
    for number, form in enumerate(forms):
        rig.use(write(tmp_path / str(number), **form))
        (encoded,) = (await rig.encode("My dogs?")).vectors
        size = form.get("dimensions", 64)
        shares = {"my": 0.1, "dog": 1.0, "##s": 0.1}
        tokens = [[share * number for number in vector(t, size)] for t, share in shares.items()]
        mean = quantised([sum(numbers) for numbers in zip(*tokens, strict=True)])
        assert cosine(encoded, mean) > 0.999


async def test_what_a_tokenizer_does_not_know_counts_nothing(build, model_folder, tmp_path):
    rig = build(f"static:{model_folder}")
    for splits in ("unigram", "wordpiece"):
        rig.use(write(tmp_path / splits, splits=splits))
        known, more, none = (await rig.encode("a dog", "a qqq dog", "qqq 漢")).vectors
        assert known == more
        assert none is None


async def test_a_static_model_that_was_replaced_is_another_one(build, tmp_path):
    folder = write(tmp_path / "static")
    rig = build(f"static:{folder}")
    before, query = await rig.encode("a dog"), await rig.query("a dog")
    other = write(tmp_path / "other", weights="others")
    for file in other.iterdir():
        file.replace(folder / file.name)
    after = await rig.encode("a dog")
    assert before.revision != after.revision
    assert not same_encoder(before, after)
    assert (await rig.query("a dog")).vectors != query.vectors


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cannot read": lambda folder: (folder / "model.safetensors").unlink(),
    "not in the format": lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99),
    "is incomplete": lambda folder: os.truncate(folder / "model.safetensors", 9_999),
    "no static model": lambda folder: (folder / "model.safetensors").write_bytes(b""),
    "is not a tokenizer": lambda folder: (folder / "tokenizer.json").write_text(
        '{"model": {"type": "None"}}'
    ),
}


async def test_a_folder_without_a_usable_model_is_said(build, model_folder, tmp_path):
    rig = build(f"static:{model_folder}")
    for why, damage in DAMAGES.items():
        folder = write(tmp_path / why)
        damage(folder)
        rig.use(folder)
        error = await refused(rig, "a")
        assert f"no static model in {folder}" in error.message
        assert why in error.message
        assert await rig.query("a") is None


async def test_the_process_stays_as_long_as_a_static_model_is_configured(build, model_folder):
    rig = build(f"static:{model_folder}", idle_seconds=1.0)
    await rig.encode("a dog")
    pid = rig.state().pid
    assert pid is not None
    static = rig.encoder._static
    stays, seen = static._stays, []

    def counted() -> bool:
        seen.append(static.pid)
        return stays()

    static._stays = counted
    await until(lambda: len(seen) >= 2, "it was idle twice")
    assert seen == [pid] * len(seen)
    rig.configure(models={})
    await until(lambda: static.pid is None, "it has ended")


async def test_the_time_for_all_texts_is_not_that_of_one_text_in_a_call_of_its_own(
    rig, model_server
):
    rig.frozen = time.monotonic()

    def in_300_ms_and_one_for_each_text(heard: Heard) -> Saying:
        rig.frozen += 0.3 + 0.001 * len(heard.body["input"][1:])
        return Saying()

    model_server.usually = in_300_ms_and_one_for_each_text
    await rig.encode()
    await rig.encode("the kettle is broken")
    measured = rig.encoder.measured()
    assert measured is not None
    assert measured.seconds_of(10_000) == pytest.approx(157 * 0.3 + 10_000 * 0.001)
