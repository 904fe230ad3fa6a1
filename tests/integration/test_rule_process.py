"""Long texts are read by the rules in a process of their own, so that other callers do not wait."""

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from daemon_process import until
from machine import children, cpu_seconds

from thermocline.daemon.language.extraction import distilling
from thermocline.daemon.language.extraction.distilling import summarise_episode
from thermocline.daemon.language.extraction.extraction import extract_turns
from thermocline.daemon.language.extraction.notes import read_note
from thermocline.daemon.language.speech import Turn
from thermocline.daemon.memory.messages import Message
from thermocline.daemon.tasks.compaction import CompactionLimits, compact
from thermocline.daemon.tasks.model_or_rules import RuleProcess

SENTENCES = (
    "User: We decided to move the billing service to Postgres because the old cluster failed.",
    "Assistant: Done, I deployed it; see https://ci.example/jobs/8 and /var/log/billing/app.log.",
    "User: Maria prefers short answers in the morning and dislikes meetings before ten.",
    "Assistant: The error was solved by `systemctl restart billing` on the second node.",
)


def long_text(chars: int, seed: int = 1) -> str:
    chance = random.Random(seed)
    lines: list[str] = []
    while sum(map(len, lines)) < chars:
        lines.append(f"{chance.choice(SENTENCES)} It was case {chance.randrange(10_000)}.")
    return "\n".join(lines)


@pytest.fixture
async def process() -> AsyncIterator[RuleProcess]:
    made = RuleProcess()
    yield made
    await made.close()


def test_long_texts_are_not_distilled_by_the_daemons_own_interpreter(daemon):
    texts = [long_text(30_000, seed) for seed in range(4)]
    began = time.thread_time()
    facts = [distilling.distil(text).fact for text in texts]
    needed = time.thread_time() - began
    assert daemon.process is not None
    pid = daemon.process.pid
    before = cpu_seconds(pid)

    def distil(text: str) -> Any:
        with daemon.client() as client:
            return client.request("POST", "/api/distill", body={"text": text})

    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(distil, texts))
    assert [answer["distilled"]["fact"] for answer in answers] == facts
    assert cpu_seconds(pid) - before < needed / 4
    assert len(children(pid)) == 1


async def test_the_process_computes_what_the_rules_compute(process):
    text = long_text(6_000)
    size = len(text)
    turns = [Turn("user", line, "Ada", at, 1.5) for at, line in enumerate(text.splitlines())]
    limits = {"aggression": 0.4, "max_bytes": 200}
    assert await process.run(size, distilling.distil, text, **limits) == distilling.distil(
        text, **limits
    )
    facts = await process.run(size, distilling.facts, text, **limits)
    assert facts == distilling.facts(text, **limits)
    assert await process.run(size, distilling.best, facts, text) == distilling.best(facts, text)
    assert await process.run(size, extract_turns, turns) == extract_turns(turns)
    assert await process.run(size, summarise_episode, turns) == summarise_episode(turns)
    note = f"# Decisions\n{text}"
    headings = {"decisions": "projects/decisions"}
    assert await process.run(size, read_note, note, headings) == read_note(note, headings)
    messages = [Message("user", line) for line in text.splitlines()]
    assert await process.run(size, compact, messages, 600, CompactionLimits()) == compact(
        messages, 600, CompactionLimits()
    )
    assert process.pid is not None


async def test_a_short_text_starts_no_process(process):
    text = "Ada prefers tea in the morning"
    assert (await process.run(len(text), distilling.distil, text)).fact == text
    assert process.pid is None


async def test_a_process_that_dies_leaves_the_text_to_a_thread(process):
    text = long_text(20_000)
    reading = asyncio.create_task(process.run(len(text), distilling.facts, text))
    await until(lambda: process.pid is not None, "the process starts")
    os.kill(process.pid, signal.SIGKILL)
    assert await reading == distilling.facts(text)
    assert await process.run(5_000, distilling.distil, text) == distilling.distil(text)
    assert process.pid is not None


async def test_a_process_that_cannot_start_leaves_the_text_to_a_thread():
    broken = RuleProcess(command=("/nonexistent/python",))
    assert (await broken.run(5_000, distilling.distil, "Ada likes tea")).fact == "Ada likes tea"


async def test_a_cancelled_caller_ends_the_computation(process):
    text = long_text(400_000)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await process.run(len(text), distilling.facts, text)
    assert (await process.run(5_000, distilling.distil, "Ada likes tea")).fact == "Ada likes tea"
