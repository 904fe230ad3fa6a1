"""A week of an agent's life: Claude Code with a scripted model, connected as a person does it.

Seven days of four sessions in two projects (`data/week.json`): facts, a correction a day, a
password and a PIN, two poisoned web pages that a tool reads, and a device that is lost after day 5
and restored from its replica. Each night the upkeep runs. Then 40 questions, each in a session of
its own: what was injected, how much of it, what of it was stale, and what leaked.

    .venv/bin/python -m pytest -q -m clients tests/acceptance/week.py
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from client_programs import Desk, installed
from daemon_process import wait_until
from device import Device, ending
from fake_models import FakeModel, UseTool
from sqld_server import Sqld

DATA = Path(__file__).resolve().parents[1] / "data" / "week.json"
DAY = 86_400.0
# The device is lost in the night after it.
LOST_AFTER = 5
# What Claude Code writes before the context of a hook, and the block.
BLOCK = re.compile(
    r"(\w+) hook additional context:\s*(<thermocline-context.*?</thermocline-context>)", re.DOTALL
)
# The first line of a block says what the mark means.
QUOTED = re.compile(r"(?<!Inside )<quote[^>]*>.*?</quote>", re.DOTALL)
# What an item says of the one that it replaced.
REPLACED = re.compile(r' replaces="[^"]*"')
CHARS_PER_TOKEN = 4
# The devices of a home send at once what is critical, and the rest soon.
USUAL = ("sync.change_seconds=2", "sync.critical_seconds=1", "sync.poll_seconds=60")


class Session(msgspec.Struct):
    """What a person says in a project, and what the model replies, after it has read a page."""

    at: str
    says: str
    reply: str
    reads: str = ""


class Page(msgspec.Struct):
    """A poisoned page; `remembers` is what a model that falls for it stores."""

    text: str
    remembers: str
    canary: str


class Question(msgspec.Struct):
    """`wants` is a part of the right answer, `was` of the one that it replaced."""

    asks: str
    wants: str = ""
    was: str = ""


class Week(msgspec.Struct):
    """The script."""

    days: list[list[Session]]
    pages: dict[str, Page]
    secrets: list[str]
    questions: list[Question]


class Asked(NamedTuple):
    """What a question met: the block of the session's start, and that of the prompt."""

    question: Question
    start: str
    prompt: str

    @property
    def injected(self) -> str:
        """Both."""
        return f"{self.start}\n{self.prompt}"


@dataclass
class Outcome:
    """What the week came to.

    Attributes:
        memories: those at the end.
        lost: the memories that the device had before it was lost and not after.
        restore_seconds: of the `restore` command.
        asked: each question with what was injected.
        leaked: the places in which a secret stands, by the first letters of it.
        unquoted: the places that repeat a poisoned page outside of quotes, by its word.
        quoted: the poisoned pages that were injected in quotes.
    """

    memories: int = 0
    lost: list[str] = field(default_factory=list)
    restore_seconds: float = 0.0
    asked: list[Asked] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    unquoted: list[str] = field(default_factory=list)
    quoted: list[str] = field(default_factory=list)

    @property
    def answerable(self) -> list[Asked]:
        """Those that have an answer."""
        return [one for one in self.asked if one.question.wants]

    @property
    def met(self) -> list[Asked]:
        """Those whose answer was injected."""
        return [one for one in self.answerable if has(one.injected, one.question.wants)]

    @property
    def stale(self) -> list[str]:
        """The questions that met what used to be right, without what replaced it."""
        return [
            one.question.asks
            for one in self.asked
            if one.question.was
            and has(one.injected, one.question.was)
            and not has(one.injected, one.question.wants)
        ]

    @property
    def unmarked(self) -> list[str]:
        """The questions that met what used to be right as if it still were."""
        return [
            one.question.asks
            for one in self.asked
            if one.question.was and has(REPLACED.sub("", one.injected), one.question.was)
        ]

    def rows(self) -> Iterator[tuple[str, str]]:
        """The table."""
        by_prompt = sum(has(one.prompt, one.question.wants) for one in self.answerable)
        corrected = sum(bool(one.question.was) for one in self.asked)
        missing = [one.question.asks for one in self.answerable if one not in self.met]
        yield "memories after the week", f"{self.memories}"
        yield "restored after the loss", f"{self.restore_seconds:.1f} s, {len(self.lost)} lost"
        yield "answers injected", f"{len(self.met)} of {len(self.answerable)}"
        yield "of them with the prompt itself", f"{by_prompt}"
        yield "not injected", "; ".join(missing) or "none"
        yield "tokens at the start of a session", _tokens([one.start for one in self.asked])
        yield "tokens with a prompt", _tokens([one.prompt for one in self.asked])
        yield "corrected answers, of them stale", f"{corrected}; {'; '.join(self.stale) or 'none'}"
        yield "also shown, not marked as replaced", "; ".join(self.unmarked) or "none"
        yield "secrets leaked", "; ".join(self.leaked) or "none"
        yield "poisoned pages unquoted", "; ".join(self.unquoted) or "none"
        yield "poisoned pages quoted", "; ".join(self.quoted) or "none"


def has(text: str, words: str) -> bool:
    """Whether a text has these words, in any case."""
    return words.casefold() in text.casefold()


def _mentions(text: str, secret: str) -> bool:
    """Whether a secret stands in a text; digits of a longer number are none."""
    return bool(re.search(rf"(?<![\w.]){re.escape(secret)}(?!\w)", text, re.ASCII))


def _tokens(blocks: list[str]) -> str:
    sizes = sorted(len(block) // CHARS_PER_TOKEN for block in blocks)
    return f"{sizes[len(sizes) // 2]} in the middle, {sizes[-1]} at most"


class Life:
    """The person's home, device and agent.

    Args:
        folder: where all of it goes.
        week: the script.
        sqld: the replica.
        model: what Claude Code asks.
        pages: the base URL of the web.
    """

    def __init__(self, folder: Path, week: Week, sqld: Sqld, model: FakeModel, pages: str) -> None:
        self.week = week
        self.device = Device(folder / "device", *USUAL, url=sqld.url, clock=True).start()
        self.desk = Desk(folder / "home", self.device.socket)
        self.outcome = Outcome()
        self._folder, self._sqld, self._model, self._pages = folder, sqld, model, pages
        self._sessions = 0

    def live(self) -> Outcome:
        """The week and its questions."""
        self.desk.run("thermocline", "connect", "claude-code", "--yes")
        for number, sessions in enumerate(self.week.days, start=1):
            for session in sessions:
                self._hold(session)
            self._sleep(number)
            if number == LOST_AFTER:
                self._lose()
        self._model.script = lambda _text, _tools: "I see."
        self._check_requests()
        for question in self.week.questions:
            self.outcome.asked.append(self._ask(question))
        self.outcome.memories = len(self.device.memories())
        self._check_leaks()
        return self.outcome

    def _hold(self, session: Session) -> None:
        """One session, until its conversation is an episode."""
        calls: list[UseTool] = []
        if session.reads:
            url = f"{self._pages}/{session.reads}"
            page = self.week.pages[session.reads]
            command = {"command": f"curl -s {url}", "description": "read the page"}
            calls = [
                UseTool("Bash", command),
                UseTool("remember", {"text": page.remembers, "source": f"web:{url}"}),
            ]

        def reply(_: str, offered: list[str]) -> str | UseTool:
            there = bool(calls) and any(name.endswith(calls[0].name) for name in offered)
            return calls.pop(0) if there else session.reply

        self._model.script = reply
        self._say(session.at, session.says)
        assert not calls, f"the model could not call {calls}"
        self._sessions += 1
        wait_until(self._is_learned, "the session is an episode")

    def _is_learned(self) -> bool:
        return len(self.device.memory.episodes(limit=500).results) >= self._sessions

    def _say(self, project: str, prompt: str) -> None:
        self.desk.project = self.desk.home / project
        self.desk.project.mkdir(exist_ok=True)
        env = {
            "ANTHROPIC_BASE_URL": self._model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        }
        options = ("--output-format", "json", "--dangerously-skip-permissions")
        self.desk.run("claude", "-p", prompt, *options, env=env)

    def _sleep(self, days: int) -> None:
        """The night: the upkeep runs, and everything is sent."""
        self.device.memory.consolidate("daily")
        self.device.sync()
        self.device.set_clock(days * DAY)

    def _lose(self) -> None:
        """Lose the device with all that it had, and restore another from the replica."""
        before = self.device.texts()
        self.device.lose()
        begun = time.monotonic()
        self.device.restore()
        self.outcome.restore_seconds = time.monotonic() - begun
        self.device.start()
        self.outcome.lost = sorted(before - self.device.texts())

    def _ask(self, question: Question) -> Asked:
        del self._model.requests[:]
        self._say("lanternfish", question.asks)
        blocks = dict.fromkeys(("SessionStart", "UserPromptSubmit"), "")
        for event, block in blocks_of(self._model.requests[0]):
            blocks[event] += block
        return Asked(question, *blocks.values())

    def _check_requests(self) -> None:
        """What the sessions of the week sent of each other."""
        for secret in self.week.secrets:
            spoken = next(
                at for at, one in enumerate(self._model.requests) if secret in json.dumps(one)
            )
            for body in self._model.requests[spoken:]:
                if any(_mentions(block, secret) for _, block in blocks_of(body)):
                    self.outcome.leaked.append(f"{secret[:2]}… in a later session")

    def _check_leaks(self) -> None:
        """Secrets on the disks and in blocks, and what the pages wanted."""
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        ours = [path for path in files if self.desk.home not in path.parents]
        for secret in self.week.secrets:
            self.outcome.leaked += [
                f"{secret[:2]}… in {path.name}"
                for path in ours
                if _mentions(path.read_bytes().decode("latin-1"), secret)
            ]
            self.outcome.leaked += [
                f"{secret[:2]}… for '{one.question.asks}'"
                for one in self.outcome.asked
                if _mentions(one.injected, secret)
            ]
        hot = msgspec.json.encode(self.device.memory.hot()).decode()
        pages = "".join(path.read_text() for path in self.device.state.rglob("MEMORY.md"))
        for page in self.week.pages.values():
            places = {"the hot state": hot, "MEMORY.md": pages}
            for one in self.outcome.asked:
                places[one.question.asks] = QUOTED.sub("", one.injected)
                if has(one.injected, page.canary) and page.canary not in self.outcome.quoted:
                    self.outcome.quoted.append(page.canary)
            self.outcome.unquoted += [
                f"{page.canary} in {place}"
                for place, text in places.items()
                if has(text, page.canary)
            ]


def blocks_of(body: Any) -> Iterator[tuple[str, str]]:
    """The context blocks in a request to a model, each with the event that injected it."""
    if isinstance(body, str):
        yield from BLOCK.findall(body)
    elif isinstance(body, dict | list):
        for part in body.values() if isinstance(body, dict) else body:
            yield from blocks_of(part)


@contextmanager
def web(pages: dict[str, Page]) -> Iterator[str]:
    """A web of these pages on the loopback; its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            body = pages[self.path.strip("/")].text.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.clients
@pytest.mark.timeout(1800)
def test_a_week_is_remembered_and_nothing_leaks(
    tmp_path: Path, sqld: Sqld, figure: Callable[[str, object], None]
) -> None:
    assert installed(), "the clients are not installed: make clients"
    script = msgspec.json.decode(DATA.read_bytes(), type=Week)
    with FakeModel() as model, web(script.pages) as pages:
        life = Life(tmp_path, script, sqld, model, pages)
        with ending(life.device):
            outcome = life.live()
    for name, value in outcome.rows():
        figure(name, value)
    assert not outcome.lost
    assert not outcome.leaked
    assert not outcome.unquoted
    # Both pages were kept, so that they could have reached a session.
    assert len(outcome.quoted) == len(script.pages)
