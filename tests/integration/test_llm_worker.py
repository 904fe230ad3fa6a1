"""The models' process: real litellm, a real server, real pipes, and kills."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from daemon_process import until
from machine import is_gone
from model_server import Heard, ModelServer, Saying

from thermocline.daemon.config.settings import Llm, ModelTimeouts
from thermocline.daemon.errors import ModelUnavailable
from thermocline.daemon.language.secrets import clear
from thermocline.daemon.llm import client
from thermocline.daemon.llm.budget import Budget, UsageCounts
from thermocline.daemon.llm.calls import Failover, MeteredCalls, ModelProcess
from thermocline.daemon.llm.client import ModelClient, build_model
from thermocline.daemon.llm.model import ModelQuestion, Part, read_prompts
from thermocline.daemon.llm.process import Timeouts, environment
from thermocline.daemon.runtime import atomic
from thermocline.daemon.runtime.problems import Problems

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "sk-THEKEYOFTHETEST"
KILLS = int(os.environ.get("THERMOCLINE_LLM_KILLS", "100"))
SLOW = Timeouts(start=60.0, load=120.0)
FACT = '{"fact": "the gate code is 4711"}'
CHILD = """
import asyncio, os, sys
from pathlib import Path
from thermocline.daemon.config.settings import Llm, ModelTimeouts
from thermocline.daemon.llm.client import build_model
from thermocline.daemon.llm.model import Part, ModelQuestion
from thermocline.daemon.language.secrets import clear
from thermocline.daemon.runtime.problems import Problems
from thermocline.daemon.runtime import atomic

async def main(url, folder):
    model = build_model(
        Llm,
        env=os.environ,
        state_dir=Path(folder),
        write=atomic.write,
        clear=clear,
        problems=Problems(),
    )
    asked = ModelQuestion("distil", "do", (Part("note", "x"),), 100, 0.0)
    asking = asyncio.create_task(model.ask(asked, dict, endpoint=url))
    while not model.status().worker.busy:
        await asyncio.sleep(0.01)
    print(model.status().worker.pid, flush=True)
    await asking

asyncio.run(main(*sys.argv[1:]))
"""

WATCHED = """
import os, sys
out = open(sys.argv[1], "w", buffering=1)
def hook(name, args):
    if name in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        print(name, args[-1] if name == "socket.connect" else args, file=out)
sys.addaudithook(hook)
from thermocline.daemon.llm.worker import main
main()
"""


class Fact(msgspec.Struct):
    fact: str
    people: list[str] = []


class Rig:
    """A model around the module's process, with everything else its own."""

    def __init__(self, folder: Path, process: ModelProcess, **plan: Any) -> None:
        self.plan = Llm(**plan)
        self.now = time.time()  # of day
        self.folder = folder
        self.problems = Problems()
        self.process = process
        self.model = self.made()

    def made(self) -> ModelClient:
        """The model, as after a restart."""
        file = self.folder / "usage.json"
        budget = Budget(file, atomic.write, lambda: self.now, lambda: self.plan)
        budget.load()
        return ModelClient(
            lambda: self.plan,
            MeteredCalls(self.process, budget, UsageCounts(), self.problems),
            Failover(time.monotonic, asyncio.sleep, Random(1)),
            read_prompts(),
            {},
            clear,
            self.problems,
        )

    def configure(self, **changed: Any) -> None:
        self.plan = msgspec.structs.replace(self.plan, **changed)

    async def ask(self, text: str = "x", kind: Any = Fact, **how: Any) -> Any:
        return await self.model.ask(asked(text), kind, **how)

    async def refused(self, text: str = "x", **how: Any) -> ModelUnavailable:
        """Ask in vain; why."""
        with pytest.raises(ModelUnavailable) as caught:
            await self.ask(text, **how)
        return caught.value


def asked(*texts: str, purpose: str = "distil", max_tokens: int = 100) -> ModelQuestion:
    parts = tuple(Part("note", text) for text in texts)
    return ModelQuestion(purpose, "Distil it.", parts, max_tokens, 0.0)


async def arrived(server: ModelServer, number: int) -> None:
    await until(lambda: len(server.heard) >= number, f"{number} requests have come")


def told(pid: int | None, file: str) -> str:
    """What the kernel says of a process."""
    return Path(f"/proc/{pid}/{file}").read_bytes().decode()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every address that the shared process has reached for, a line each."""
    return tmp_path_factory.mktemp("reached") / "lines"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(reached: Path) -> AsyncIterator[ModelProcess]:
    """The process that the tests of this module share, for litellm takes seconds to import."""
    command = (sys.executable, "-P", "-c", WATCHED, str(reached))
    made = ModelProcess(os.environ, lambda: 600.0, timeouts=SLOW, command=command)
    yield made
    await made.close()


@pytest.fixture
def rig(tmp_path: Path, process: ModelProcess, model_server: ModelServer) -> Rig:
    """A model on the test's server, with a key."""
    (tmp_path / "key").write_text(KEY)
    return Rig(
        tmp_path,
        process,
        model="openai/some-model",
        api_base=model_server.base,
        key_file=str(tmp_path / "key"),
        timeouts=ModelTimeouts(distil=20.0),
    )


@pytest_asyncio.fixture(loop_scope="module")
async def build(tmp_path: Path) -> AsyncIterator[Callable[..., ModelClient]]:
    """`build(plan)` makes a model with a process of its own; all are closed after the test."""
    made: list[ModelClient] = []

    def one(plan: Llm, **around: Any) -> ModelClient:
        given = {"env": os.environ, "timeouts": SLOW, "problems": Problems()} | around
        made.append(
            build_model(lambda: plan, state_dir=tmp_path, write=atomic.write, clear=clear, **given)
        )
        return made[-1]

    yield one
    for model in made:
        await model.close()


async def test_a_missing_library_is_seen_before_anything_is_asked(build, monkeypatch):
    monkeypatch.setattr(client, "find_spec", lambda _name: None)
    model = build(Llm(model="openai/gpt-4o-mini"))
    assert model.status().state == "missing"
    assert not model.available("distil")
    assert build(Llm()).status().state == "off"


# What is asked, and what comes back


async def test_a_question_reaches_a_server_through_litellm_and_comes_back_typed(rig, model_server):
    model_server.says(Saying(FACT, tokens=(120, 9)))
    reply = await rig.ask("the code is 4711")
    assert reply.value == Fact("the gate code is 4711")
    assert (reply.model, reply.tokens_in, reply.tokens_out) == ("openai/some-model", 120, 9)
    assert not reply.cached
    assert not reply.repaired
    (heard,) = model_server.heard
    assert heard.headers["authorization"] == f"Bearer {KEY}"
    assert heard.body["model"] == "some-model"
    assert (heard.body["max_tokens"], heard.body["temperature"]) == (100, 0.0)
    assert "Distil it." in heard.prompt
    assert "\nthe code is 4711\n[end of note " in heard.prompt
    form = heard.body["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"]["required"] == ["fact", "people"]
    assert "JSON Schema" not in heard.prompt


async def test_a_server_that_refuses_schemas_is_told_in_words_and_not_bothered_again(
    rig, model_server
):
    rig.configure(model="openai/an-old-model")
    model_server.refuses_formats = True
    model_server.says(FACT, FACT)
    await rig.ask("first")
    await rig.ask("second")
    formats = ["response_format" in heard.body for heard in model_server.heard]
    assert formats == [True, False, False]
    assert '"required":["fact","people"]' in model_server.heard[1].prompt


async def test_the_same_question_is_answered_from_memory(rig, model_server):
    model_server.says(FACT)
    first, again = await rig.ask("a"), await rig.ask("a")
    assert again.value == first.value
    assert again.cached
    assert (again.tokens_in, again.cost) == (0, 0.0)
    assert len(model_server.heard) == 1
    again.value.people.append("changed by whoever asked")
    assert (await rig.ask("a")).value == first.value


async def test_what_a_known_model_costs_is_counted_in_money(rig, model_server):
    rig.configure(model="openai/gpt-4o-mini")
    model_server.says(Saying(FACT, tokens=(1000, 100)))
    reply = await rig.ask()
    assert reply.cost is not None
    assert 0.00001 < reply.cost < 0.01
    assert rig.model.status().today.cost == pytest.approx(reply.cost)


# Replies that are none


async def test_a_reply_of_no_use_is_repaired_once(rig, model_server):
    model_server.says('{"people": []}', FACT)
    reply = await rig.ask()
    assert reply.repaired
    assert (reply.tokens_in, reply.tokens_out) == (22, 14)
    *_, shown, told = model_server.heard[1].body["messages"]
    assert (shown["role"], shown["content"]) == ("assistant", '{"people": []}')
    assert "missing required field `fact`" in told["content"]


async def test_a_reply_that_was_cut_off_gets_more_room(rig, model_server):
    model_server.says(Saying('{"fact": "the ga', finish="length"), FACT)
    assert (await rig.ask()).repaired
    assert model_server.heard[1].body["max_tokens"] == 400
    assert "too long" in model_server.heard[1].prompt


NO_ANSWER = "does not answer in the expected format"


async def test_an_answer_that_is_none_is_an_error_and_the_process_lives(rig, model_server):
    model_server.says(FACT)
    await rig.ask("first")
    starts = rig.process.state.starts
    for number, (said, word) in enumerate([
        (Saying(raw=("text/html", b"<html>log in</html>")), NO_ANSWER),
        (Saying(raw=("application/json", b'{"a": 1}')), NO_ANSWER),
        (Saying(raw=("application/json", b"[")), NO_ANSWER),
        (Saying(FACT * 20, cut_after=40), "cannot reach"),
        (Saying("x" * 3_000_000), "sends an answer that is too long"),
        (Saying("there is no such model", status=404), "status 404: there is no such model"),
    ]):  # fmt: skip
        rig.configure(model=f"openai/{number}")
        model_server.says(said)
        assert word in (await rig.refused()).message
    model_server.says(FACT)
    rig.configure(model="openai/another")
    assert (await rig.ask()).value.fact
    assert rig.process.state.starts == starts


async def test_a_key_is_in_no_error_no_problem_and_no_log(rig, model_server, caplog):
    model_server.says(Saying(f"wrong key {KEY}", status=401))
    error = await rig.refused()
    assert "status 401: wrong key [key]" in error.message
    assert error.hint is not None
    (problem,) = rig.problems.current()
    assert problem.code == "model_failing"
    assert not problem.lasting
    told = f"{error!r} {problem} {rig.model.status()} {caplog.text} {error.__cause__!r}"
    assert KEY not in told


async def test_a_new_key_is_used_at_once(rig, model_server):
    model_server.says(Saying("wrong", status=401), FACT)
    await rig.refused()
    again = await rig.refused()
    assert "is not asked for" in again.message
    assert again.hint == "put a valid key into the file of llm.key_file"
    (rig.folder / "key").write_text("sk-another")
    assert (await rig.ask()).value.fact
    assert model_server.heard[-1].headers["authorization"] == "Bearer sk-another"
    assert rig.problems.current() == []


async def test_a_provider_that_wants_a_key_and_has_none_is_not_asked(rig):
    rig.plan = Llm(model="openai/gpt-4o-mini")
    error = await rig.refused()
    assert error.in_full == ("no key for openai; put a valid key into the file of llm.key_file")
    assert [problem.code for problem in rig.problems.current()] == ["model_failing"]
    # What was wrong with a configuration is over with it, though nobody asks again.
    rig.plan = Llm()
    assert rig.model.status().state == "off"
    assert rig.problems.current() == []


async def test_a_key_file_that_everybody_can_read_is_told(rig, model_server):
    model_server.usually = Saying(FACT)
    await rig.ask("a")
    assert rig.problems.current() == []
    # The device's own, which holds no key, and which all users can read.
    rig.configure(key_file="/proc/sys/kernel/ostype")
    await rig.ask("b")
    (problem,) = rig.problems.current()
    assert problem.code == "model_keys_open"
    assert problem.hint == "chmod o= /proc/sys/kernel/ostype"
    rig.configure(key_file=str(rig.folder / "key"))
    await rig.ask("c")
    assert rig.problems.current() == []


async def test_a_key_goes_to_its_provider_alone(rig, model_server):
    bases = {"deepseek": model_server.base}
    models = {"distil": ("deepseek/d",)}
    rig.configure(api_bases=bases, models=models)
    model_server.says(FACT)
    await rig.ask()
    assert KEY not in str(model_server.heard[0].headers)


async def test_a_key_is_not_sent_where_others_can_listen(rig):
    rig.configure(api_base="http://192.0.2.1/v1")
    error = await rig.refused()
    assert "cannot send a key over http://" in error.message


# Again, elsewhere, later


async def test_a_slow_model_is_left_at_the_deadline(rig, model_server):
    model_server.says(Saying(late=True))
    rig.configure(timeouts=ModelTimeouts(distil=0.3))
    async with asyncio.timeout(60):
        await rig.refused()
    model_server.release()


async def test_several_questions_are_under_way_at_once(rig, model_server):
    def echo(heard: Heard) -> Saying:
        return Saying(f'{{"fact": "{heard.prompt.split("number ")[1][0]}"}}', late=True)

    model_server.usually = echo
    asking = [asyncio.create_task(rig.ask(f"number {number}")) for number in range(6)]
    await arrived(model_server, 6)
    assert rig.process.state.busy
    model_server.release()
    replies = await asyncio.gather(*asking)
    assert [reply.value.fact for reply in replies] == list("012345")


async def test_a_question_that_is_given_up_ends_over_there_and_harms_no_other(rig, model_server):
    model_server.says(Saying(FACT, late=True), Saying(FACT, late=True))
    given_up = asyncio.create_task(rig.ask("a"))
    other = asyncio.create_task(rig.ask("b"))
    await arrived(model_server, 2)
    starts = rig.process.state.starts
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    model_server.release()
    assert (await other).value.fact
    await until(lambda: not rig.process.state.busy, "nothing is under way")
    assert rig.process.state.starts == starts


# What it may cost


async def test_when_the_day_is_spent_it_goes_by_rules_until_tomorrow(rig, model_server):
    rig.configure(daily_tokens=150)
    model_server.usually = Saying(FACT, tokens=(140, 20))
    assert rig.model.available("distil")
    await rig.ask("a")
    assert not rig.model.available("distil")
    assert rig.model.status().state == "spent"
    error = await rig.refused("b")
    assert "is spent: 160 of 150 tokens" in error.message
    assert (await rig.ask("a")).cached
    assert [problem.code for problem in rig.problems.current()] == ["model_budget_spent"]
    assert rig.made().status().state == "spent"
    rig.now += 86_400
    assert rig.model.status().state == "ready"
    assert rig.problems.current() == []
    assert rig.model.available("distil")
    await rig.ask("c")
    assert len(model_server.heard) == 2


async def test_a_disk_that_refuses_costs_the_count_but_not_the_answer(rig, model_server):
    (rig.folder / "usage.json").mkdir()
    model_server.usually = Saying(FACT)
    assert (await rig.ask()).value.fact
    assert [problem.code for problem in rig.problems.current()] == ["model_budget_unsaved"]
    (rig.folder / "usage.json").rmdir()
    assert (await rig.ask("b")).value.fact
    assert rig.problems.current() == []
    assert rig.made().status().today.tokens == 36


# A caller's own endpoint


@pytest.mark.parametrize("field", ["text", "response", "content"])
async def test_evoclaws_plain_endpoint_is_asked_in_its_own_way(rig, model_server, field):
    model_server.says(Saying(FACT, field=field))
    reply = await rig.ask(field, endpoint=model_server.plain)
    assert reply.value.fact == "the gate code is 4711"
    assert reply.model == model_server.plain
    (heard,) = model_server.heard
    assert set(heard.body) == {"prompt", "max_tokens", "temperature"}
    assert "JSON Schema" in heard.prompt
    assert "Distil it." in heard.prompt


async def test_a_server_that_wants_a_models_name_is_told_one_of_its_own(rig, model_server):
    model_server.models = ("nomic-embed-text", "llama3.2")
    model_server.says(Saying("model 'default' not found", status=404), FACT)
    assert (await rig.ask("named", endpoint=model_server.base)).value.fact
    assert [heard.body["model"] for heard in model_server.heard] == ["default", "llama3.2"]
    model_server.models = ()
    model_server.says(Saying("model 'default' not found", status=404))
    error = await rig.refused("unnamed", endpoint=model_server.base)
    assert "status 404: " in error.message


async def test_an_endpoint_gets_no_key_and_counts_in_the_budget(rig, model_server):
    rig.configure(daily_tokens=20_000)
    model_server.usually = Saying(FACT)
    await rig.ask("a", endpoint=model_server.base)
    today = rig.model.status().today
    assert (today.tokens, today.cost, today.unpriced) == (18, 0.0, 0)
    rig.configure(daily_tokens=18)
    assert "is spent" in (await rig.refused("b", endpoint=model_server.base)).message
    assert len(model_server.heard) == 1
    assert KEY not in str([heard.headers for heard in model_server.heard])


async def test_an_endpoint_that_gives_no_answer_is_an_error(rig, model_server):
    for number, (said, word) in enumerate([
        (Saying("", status=302, headers={"Location": "/elsewhere"}), "status 302"),
        (Saying("x" * 5_000_000), "sends an answer that is too long"),
        (Saying(FACT * 9, cut_after=30), "broke off its answer"),
        (Saying(raw=("text/html", b"<html>")), NO_ANSWER),
        (Saying(raw=("application/json", b'{"other": 1}')), NO_ANSWER),
        (Saying(raw=("application/json", b'{"text": "K\xe4se"}')), NO_ANSWER),
        (Saying("who are you?", status=401), "status 401"),
        (Saying("down", status=503, headers={"Retry-After": "99"}), "status 503"),
    ], start=1):  # fmt: skip
        model_server.says(said)
        rig.model.failover.forget()
        error = await rig.refused(word, endpoint=model_server.plain)
        assert word in error.message
        # It gets no key.
        assert "llm.key_file" not in (error.hint or "")
        assert len(model_server.heard) == number


async def test_an_endpoint_beyond_this_device_is_not_asked(rig):
    for named in ((), ("169.254.169.254", "[fe80::1]", "0.0.0.0")):
        rig.configure(endpoint_hosts=named)
        for url in (
            "http://169.254.169.254/latest/meta-data",
            "http://[fe80::1]/v1",
            "http://10.0.0.1/v1",
            "http://0.0.0.0:8080/",
        ):
            assert "may not ask" in (await rig.refused(url, endpoint=url)).message


# The process


async def test_neither_keys_nor_the_daemons_environment_reach_the_process(build, model_server):
    env = dict(os.environ) | {"OPENAI_API_KEY": KEY, "AWS_SECRET_ACCESS_KEY": "x", "TZ": "UTC"}
    model = build(Llm(), env=env)
    model_server.says(FACT)
    await model.ask(asked("x"), Fact, endpoint=model_server.plain)
    pid = model.status().worker.pid
    seen = told(pid, "environ")
    given = {line.partition("=")[0] for line in seen.split("\0") if line}
    assert "TZ" in given
    assert not given & {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"}
    assert "LITELLM_LOCAL_MODEL_COST_MAP=True" in seen
    assert given <= set(environment(env))
    assert KEY not in told(pid, "cmdline")


async def test_what_libraries_print_does_not_disturb_the_pipe():
    code = """
import os
from thermocline.daemon.llm import wire
given, out = wire.own_pipes()
print("noise", flush=True)
os.system("echo noise; cat")
os.write(out, os.read(given, 9))
"""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=pipe, stdout=pipe, stderr=pipe
    )
    said, noise = await asyncio.wait_for(process.communicate(b"asked"), 120)
    assert said == b"asked"
    assert noise.count(b"noise") == 2


async def test_nothing_but_the_models_server_was_ever_reached_for(rig, model_server, reached):
    model_server.says(FACT)
    await rig.ask()
    assert rig.process.state.litellm not in {None, "1.82.7", "1.82.8"}
    assert set(reached.read_text().splitlines()) == {
        f"socket.connect ('127.0.0.1', {model_server.port})"
    }


async def test_it_leaves_when_it_is_not_needed_and_comes_back_when_it_is(build, model_server):
    model = build(Llm(idle_seconds=0.5))
    model_server.usually = Saying(FACT)
    await model.ask(asked("a"), Fact, endpoint=model_server.plain)
    pid = model.status().worker.pid
    assert pid is not None
    await until(lambda: model.status().worker.pid is None and is_gone(pid), "it has left")
    await model.ask(asked("b"), Fact, endpoint=model_server.plain)
    worker = model.status().worker
    assert (worker.starts, worker.deaths) == (2, 0)


async def test_a_process_that_cannot_start_is_an_error_and_then_left_alone(tmp_path):
    command = (sys.executable, "-c", "raise SystemExit(3)")
    process = ModelProcess(os.environ, lambda: 60.0, command=command)
    rig = Rig(tmp_path, process)
    url = "http://127.0.0.1:9/x"
    assert "has ended (exit code 3)" in (await rig.refused(endpoint=url)).message
    assert "has ended (exit code 3)" in (await rig.refused(endpoint=url)).message
    assert "keeps ending; again in 1 s" in (await rig.refused(endpoint=url)).message
    assert rig.model.status().worker.deaths == 2
    await process.close()


async def test_a_process_that_hangs_is_ended_and_the_deadline_holds(build, model_server):
    model = build(Llm(timeouts=ModelTimeouts(distil=3.0)), timeouts=Timeouts(start=30.0, grace=0.1))
    model_server.usually = Saying(FACT)
    await model.ask(asked("a"), Fact, endpoint=model_server.plain)
    pid = model.status().worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ModelUnavailable):
        await model.ask(asked("b"), Fact, endpoint=model_server.plain)
    await until(lambda: is_gone(pid), "it was ended")
    await until(lambda: model.status().worker.pid is None, "its end was noticed")
    assert (await model.ask(asked("c"), Fact, endpoint=model_server.plain)).value.fact


@pytest.mark.parametrize(
    ("kills", "through"),
    [(5, "endpoint"), pytest.param(KILLS, "litellm", marks=pytest.mark.crash)],
)
async def test_a_kill_in_the_middle_of_a_question_harms_nobody_else(
    kills, through, build, model_server
):
    plan = Llm(
        model="openai/some-model", api_base=model_server.base, timeouts=ModelTimeouts(distil=60.0)
    )
    model = build(plan)
    how = {"endpoint": model_server.plain} if through == "endpoint" else {}
    files = slowest = 0.0
    for number in range(kills):
        model_server.forget()
        model_server.says(FACT, Saying(late=True), Saying(late=True))
        assert (await model.ask(asked(f"good {number}"), Fact, **how)).value.fact
        files = files or open_files()
        lost = [
            asyncio.create_task(model.ask(asked(f"lost {number} {one}"), Fact, **how))
            for one in range(2)
        ]
        await arrived(model_server, 3)
        pid = model.status().worker.pid
        assert pid is not None
        os.kill(pid, signal.SIGSEGV if number % 5 == 4 else signal.SIGKILL)
        began = time.monotonic()
        for ended in await asyncio.gather(*lost, return_exceptions=True):
            assert isinstance(ended, ModelUnavailable), ended
            assert "the models' process has ended" in ended.message
        slowest = max(slowest, time.monotonic() - began)
    model_server.forget()
    model_server.says(FACT)
    assert (await model.ask(asked("at last"), Fact, **how)).value.fact
    worker = model.status().worker
    assert (worker.starts, worker.deaths) == (kills + 1, kills)
    await until(lambda: open_files() <= files, "nothing is left open")
    print(f"\n{kills} kills; those who waited knew it after at most {slowest * 1000:.0f} ms")


async def test_the_process_does_not_outlive_a_daemon_that_was_killed(model_server, tmp_path):
    model_server.says(Saying(late=True))
    daemon = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD, model_server.plain, str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert daemon.stdout is not None
    pid = int(await asyncio.wait_for(daemon.stdout.readline(), 120))
    await arrived(model_server, 1)
    assert not is_gone(pid)
    daemon.kill()
    await daemon.wait()
    await until(lambda: is_gone(pid), "the process has ended with the daemon")


async def test_closing_ends_the_process_and_whoever_waits(build, model_server):
    model = build(Llm())
    model_server.says(Saying(late=True))
    waiting = asyncio.create_task(model.ask(asked("a"), Fact, endpoint=model_server.plain))
    await arrived(model_server, 1)
    pid = model.status().worker.pid
    assert pid is not None
    await model.close()
    assert is_gone(pid)
    with pytest.raises(ModelUnavailable):
        await waiting
    with pytest.raises(ModelUnavailable, match="the daemon is stopping"):
        await model.ask(asked("b"), Fact, endpoint=model_server.plain)
