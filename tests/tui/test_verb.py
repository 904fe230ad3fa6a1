"""`thermocline tui` as a command: pictures, the browser, and what is said when it cannot open."""

import http.client
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from daemon_process import PROGRAM, Daemon
from machine import free_port
from shells import run

pytest.importorskip("textual")


def test_a_picture_of_a_tab_is_written(daemon, tmp_path):
    with daemon.client() as client:
        client.store("a lighthouse \x1b[2J by the sea")
    file = tmp_path / "memories.svg"
    words = ("--tab", "memories", "--screenshot", str(file), "--size", "100x30")
    done = subprocess.run(
        [sys.executable, *PROGRAM, "tui", "--socket", str(daemon.socket), *words],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    picture = file.read_text(encoding="utf-8")
    assert picture.startswith("<svg")
    assert "\x1b" not in picture
    assert "lighthouse" in picture


def test_a_picture_without_a_daemon_says_so(tmp_path):
    file = tmp_path / "none.svg"
    words = ("--socket", tmp_path / "no.sock", "--screenshot", file)
    done = run("tui", *words, code=3)
    assert "no daemon answers" in done.stderr
    assert "thermocline&#160;daemon" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tab", "nowhere"), "no tab 'nowhere'; there are overview, memories"),
        (("--size", "big"), "--size: expected columns x rows such as 120x40, got 'big'"),
        ((), "tui needs a terminal; see --screenshot"),
        (("--web", "--port", "0"), "--port: expected 1 to 65535, got 0"),
    ],
)
def test_wrong_usage_is_explained(words, message):
    assert message in run("tui", *words, code=2).stderr


def test_without_textual_it_says_how_to_install_it():
    code = (
        "import sys; sys.modules['textual'] = None;"
        "from thermocline.daemon.cli.main import main; sys.exit(main(['tui']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 4
    assert "needs textual, which is not installed" in done.stderr
    assert "make tui, or pipx install --force '.[tui]'" in done.stderr


@pytest.fixture
def served(daemon: Daemon) -> Iterator[tuple[int, str]]:
    """The port of a view that is served, and its token."""
    port = free_port()
    words = ("tui", "--web", "--port", str(port), "--socket", str(daemon.socket))
    process = subprocess.Popen(
        [sys.executable, *PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        found = re.fullmatch(rf"http://127\.0\.0\.1:{port}/\?token=([\w-]+)\n", line)
        assert found is not None, line
        yield port, found[1]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        process.stdout.close()


def get(port: int, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.body = answer.read()  # type: ignore[attr-defined]
        return answer
    finally:
        connection.close()


def test_the_browser_gets_in_once_with_the_token_and_nobody_without(served):
    port, token = served
    for path in ("/", "/ws", "/static/js/textual.js", "/?token=wrong", "/?token="):
        assert get(port, path).status == 403
    entered = get(port, f"/?token={token}")
    assert (entered.status, entered.headers["Location"]) == (303, "/")
    cookie = entered.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert get(port, f"/?token={token}").status == 403, "the token works once"
    session = cookie.partition(";")[0]
    page = get(port, "/", Cookie=session)
    assert page.status == 200
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert get(port, "/static/js/textual.js", Cookie=session).status == 200
    assert get(port, "/", Cookie=session, Host="evil.example").status == 403
    assert get(port, "/ws", Cookie=session, Origin="http://evil.example").status == 403
    name = session.partition("=")[0]
    assert get(port, "/", Cookie=f"{name}=\xff\xfe").status == 403
    assert get(port, "/?token=%ff%fe").status == 403
    busy = run("tui", "--web", "--port", str(port), code=4)
    assert "choose another with --port" in busy.stderr
