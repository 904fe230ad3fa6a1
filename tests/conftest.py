"""What many tests need: a real daemon in a process of its own, and a client for it."""

import gc
import itertools
import os
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from calls import Caller, Wire
from daemon_process import Daemon, wait_until
from fork_server import Forked, ForkServer
from hypothesis import settings
from shells import Shell
from short_pauses import quicken_keys

# Each of hundreds of processes would compile the daemon again, three times as slow to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Waiting for the disk makes no test better: what is written is synced in memory, if there is room.
_SHM = Path("/dev/shm")
if os.access(_SHM, os.W_OK) and "TMPDIR" not in os.environ:
    _room = os.statvfs(_SHM)
    if _room.f_bavail * _room.f_frsize > 2 << 30 and not _room.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"], tempfile.tempdir = str(_SHM), None

_numbers = itertools.count(1)
_FIGURE = "figure"
pytest_plugins = ["cloud_fixtures", "model_server"]
OURS = (
    *("THERMOCLINE_", "XDG_", "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CONFIGURATION_DIRECTORY"),
    # Nor do its secrets and its way to the network.
    *("CREDENTIALS_DIRECTORY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)

# How long an example takes says more about the machine than about the code. The examples are the
# same in every run; `--hypothesis-profile random` looks for new ones.
settings.register_profile("same", deadline=None, max_examples=15, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=150, print_blob=True)
settings.load_profile("same")


def pytest_xdist_auto_num_workers() -> int:
    """Two workers more than there are cores: each waits half of its time for others."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing of what is collected is garbage: the collector would take a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # Looking for garbage as often as usual would take a twentieth of the time.
        gc.set_threshold(50_000)


@pytest.fixture(scope="session", autouse=True)
def _machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Nothing of the machine that runs the tests reaches them: no settings, secrets or models."""
    folder = tmp_path_factory.mktemp("machine")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts its background jobs so, and what they start inherits it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(OURS)]:
            patch.delenv(name)
        patch.setenv("HOME", str(folder))
        # In place of /etc/thermocline.
        patch.setenv("CONFIGURATION_DIRECTORY", str(folder / "etc"))
        patch.setenv("THERMOCLINE_MODEL_PORTS", "")
        # In place of /run/user.
        patch.setenv("XDG_RUNTIME_DIR", "")
        yield folder


@pytest.fixture(scope="session", autouse=True)
def _forks(request: pytest.FixtureRequest, _machine: Path) -> Iterator[None]:
    """The quick tests fork their daemons; each of the long ones has its own interpreter."""
    if not request.config.option.markexpr.startswith("not "):
        yield
        return
    with closing(ForkServer()) as forks, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Daemon, "forks", forks)
        # As in the forks: what one locks the other opens.
        quicken_keys(patch.setattr)
        yield


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, _machine: Path) -> None:
    """Each test has a home of its own."""
    home = _machine / f"home{next(_numbers)}"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def eventually() -> Callable[..., None]:
    """`eventually(condition, what)` polls with a deadline."""
    return wait_until


class Clock:
    """A wall clock that only a test moves; called, it gives its seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def wall() -> Clock:
    """A wall clock that only the test moves."""
    return Clock(1_700_000_000.0)


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """`figure(name, value)` puts a line into the table that a long run prints at its end."""

    def note(name: str, value: object) -> None:
        request.node.user_properties.append((_FIGURE, (name, str(value))))

    return note


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table of figures, after a run of the long tests."""
    if config.option.markexpr.startswith("not "):
        return
    reports = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    lines = [line for one in reports for key, line in one.user_properties if key == _FIGURE]
    if lines:
        terminalreporter.section("figures")
        width = max(len(name) for name, _ in lines)
        for name, value in lines:
            terminalreporter.write_line(f"{name:<{width}}  {value}")


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Makes daemons that are not started yet; all are ended after the test."""
    made: list[Daemon] = []

    def make(*options: str, name: str = "d") -> Daemon:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        made.append(Daemon(folder, *options))
        return made[-1]

    yield make
    for daemon in made:
        # Whoever wants to see an orderly end stops the daemon in the test.
        if isinstance(daemon.process, Forked):
            daemon.kill()
        elif daemon.running:
            daemon.stop()


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    """A daemon that runs."""
    return make_daemon().start()


@pytest.fixture(scope="module")
def shared_daemon(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemon]:
    """A daemon that runs as long as the tests of one module, with its OPTIONS, if it has some."""
    options = getattr(request.module, "OPTIONS", ())
    daemon = Daemon(tmp_path_factory.mktemp("shared"), *options).start()
    yield daemon
    assert daemon.stop() == 0, daemon.log.read_text()


@pytest.fixture
def call(shared_daemon: Daemon) -> Caller:
    """Calls of an agent of its own to the module's daemon."""
    return Caller(shared_daemon.socket, f"agent{next(_numbers)}")


@pytest.fixture
def shell(call: Caller) -> Shell:
    """Commands of the same agent."""
    return Shell(call.path, call.agent)


@pytest.fixture
def copy_agent(shared_daemon: Daemon) -> Callable[[str, str], None]:
    """`copy_agent(source, target)` begins an agent with the memories that another has now.

    Many memories are stored once for a module, and copied for each of its tests.
    """

    def copy(source: str, target: str) -> None:
        folder = shared_daemon.folder(target)
        folder.mkdir(mode=0o700)
        with (
            closing(sqlite3.connect(shared_daemon.folder(source) / "memory.db")) as old,
            closing(sqlite3.connect(folder / "memory.db")) as new,
        ):
            old.backup(new)

    return copy


@pytest.fixture
def wire(shared_daemon: Daemon) -> Iterator[Callable[..., Wire]]:
    """`wire()` opens a bare connection to the module's daemon, or to another's socket."""
    made: list[Wire] = []

    def make(path: Path | None = None, timeout: float = 60.0) -> Wire:
        made.append(Wire(path or shared_daemon.socket, timeout))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def calls_of() -> Callable[..., Caller]:
    """`calls_of(daemon, agent)` makes calls to any daemon."""
    return lambda daemon, agent="default": Caller(daemon.socket, agent)
