"""The command line before it reaches a daemon: words, values, mistakes, exit codes."""

import json
import os
import subprocess
import sys

import pytest

from thermocline.daemon.cli.main import main, split
from thermocline.daemon.cli.verbs import VERBS

COMMAND = [sys.executable, "-m", "thermocline.daemon.cli.main"]
# These go on without a daemon, or need none.
ALONE = {"provision",
    "daemon", "config", "mcp", "hook", "connect", "doctor", "install", "uninstall", "completion",
    "tui",
}  # fmt: skip
ASKING = [verb for verb in VERBS if verb not in ALONE]
NEEDED = {
    "import": ["-"],
    "store": ["x"], "retrieve": ["x"], "get": ["abcd"], "update": ["abcd", "--text", "x"],
    "forget": ["abcd"], "merge": ["abcd", "efgh"], "unmerge": ["abcd"], "kv": ["list"],
    "search-url": ["x"], "extract-metadata": ["--file", "-"], "backup": ["none.tar.gz"],
    "restore": ["--verify"], "distill": ["--text", "x"],
    "observe": ["-", "--conversation", "c"],
    "undo": ["abcd"], "join": ["0000-0000-0000"],
}  # fmt: skip


@pytest.mark.parametrize(("words", "code", "told"), [
    ("--version >&-", 1, "thermocline: cannot write the result: Bad file descriptor\n"),
    ("--version >/dev/full", 1, "cannot write the result"),
    ("store - <&-", 2, "closed"),
    ("store - </dev/zero", 2, "cannot read standard input: it has more than"),
    ("distill --file /dev/zero", 2, "cannot read /dev/zero: it has more than 67108864 bytes"),
    ("store - <$NOT_TEXT", 2, "byte 0xff at position 2"),
])  # fmt: skip
def test_streams_that_are_closed_full_endless_or_no_text_are_refused(words, code, told, tmp_path):
    not_text = tmp_path / "not-text"
    not_text.write_bytes(b"ab\xff")
    done = subprocess.run(
        f"{' '.join(COMMAND)} {words}",
        shell=True, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "NOT_TEXT": str(not_text)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr


def test_the_verb_is_found_among_the_options():
    for words, verb, rest in [
        (["store", "x"], "store", ["x"]),
        (["--json", "store", "--text", "x"], "store", ["--json", "--text", "x"]),
        (["--agent-id", "list", "get", "id"], "get", ["--agent-id", "list", "id"]),
        (["--socket=/a", "--agent", "b", "hot"], "hot", ["--socket=/a", "--agent", "b"]),
        (["--help"], None, ["--help"]),
        (["--socket"], None, ["--socket"]),
        ([], None, []),
    ]:  # fmt: skip
        assert split(words) == (verb, rest)


@pytest.mark.parametrize("verb", ASKING)
def test_every_verb_says_in_one_line_that_no_daemon_answers(verb, tmp_path, capfd, monkeypatch):
    words = ["--socket", str(tmp_path / "none.sock"), verb, *NEEDED.get(verb, [])]
    spoken = tmp_path / "spoken"
    spoken.write_text("the heron nests at the mill\n")
    with spoken.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(words) == 3
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "thermocline daemon" in err


def test_every_verb_has_help_and_the_help_names_every_verb_and_exit_code(capsys):
    for verb, (_, does) in VERBS.items():
        assert main([verb, "--help"]) == 0
        out, err = capsys.readouterr()
        assert f"{does[:1].upper()}{does[1:]}." in " ".join(out.split())
        assert "--agent-id, --agent ID" in out
        assert err == ""
        assert main(["help", verb]) == 0
        assert capsys.readouterr().out == out
    assert main(["help"]) == main(["--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: thermocline [--socket PATH]")
    assert all(f"  {verb} " in out and does in out for verb, (_, does) in VERBS.items())
    assert all(f"\n  {code} " in out for code in (0, 1, 2, 3, 4, 130))


def test_naming_the_verbs_imports_none_of_them():
    code = (
        "import sys; from thermocline.daemon.cli.main import main; main(['--help']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stderr.split())
    verbs = {f"thermocline.daemon.cli.{module}" for module, _ in VERBS.values()}
    assert "thermocline.daemon.client.caller" in loaded
    assert not loaded & (verbs | {"aiohttp", "sqlite3", "asyncio", "http.client"})


@pytest.mark.parametrize(("words", "told"), [
    ([], "VERB"),
    (["stor"], "did you mean store?"),
    (["xyzzy"], "see thermocline --help"),
    *(
        ([verb, "x"], f"there is no '{verb}'; search the memories with: thermocline retrieve QUERY")
        for verb in ("recall", "search", "ask", "find", "recal")
    ),
    *(
        ([verb, "x"], f"there is no '{verb}'; store a memory with: thermocline store TEXT")
        for verb in ("remember", "add")
    ),
    (["delete", "x"], "there is no 'delete'; delete memories for good with: thermocline forget ID"),
    (["restart"], "there is no 'restart'; run the daemon with: thermocline daemon"),
    (["-v"], "unknown option -v; see thermocline --help"),
    (["store"], "a text is missing"),
    (["store", "a", "--text", "b"], "give the text once"),
    (["store", "a", "b"], "store takes no word 'b'"),
    (["store", "a", "--importance", "much"], "expected a number, got 'much'"),
    (["store", "a", "--importance", "nan"], "expected a number, got 'nan'"),
    (["store", "a", "--importance", "inf"], "expected a number, got 'inf'"),
    (["store", "a", "--type", "vague"], "expected one of semantic, episodic, procedural, got"),
    (["store", "a", "--data", "{"], "--data: expected JSON"),
    (["store", "a", "--data", "NaN"], "NaN is not a JSON number"),
    (["store", "a", "--data", '{"k": 1, "k": 2}'], "the key 'k' is repeated"),
    (["store", "a", "--data", "[" * 100_000], "nested too deeply"),
    (["store", "-", "--data", "-"], "only one value"),
    (["store", "a", "--cat", "b"], "unknown option --cat, perhaps --category; see"),
    (["store", "a", "--auth-token", "x"], "db-url and auth-token required"),
    (["retrieve", "a", "--auth-token", "x"], "db-url and auth-token required"),
    (["hot", "--auth-token", "x"], "db-url and auth-token required"),
    (["cold", "--init", "--auth-token", "x"], "db-url and auth-token required"),
    (["cold", "--db-url", "x", "--auth-token", "x", "--token-file", "y"], "give the token once"),
    (["cold", "--db-url", "x", "--auth-token", "x", "--offset", "1"], "--offset: not available"),
    (["cold", "--db-url", "x", "--token-file", os.devnull], "expected a token and nothing else"),
    (["store", "-", "--db-url", "x", "--token-file", "-"], "only one value"),
    (["hot", "--update", "task", "-", "--db-url", "x", "--token-file", "-"], "only one value"),
    (["sync", "--db-url", "x"], "unknown option --db-url"),
    (["devices", "--retire"], "--retire needs ID|NAME"),
    (["join", "zzz"], "a code is twelve characters, such as 3Y6G-VJ39-PWCZ"),
    (["devices", "--retire", "x", "--rejoin"], "--retire and --rejoin exclude each other"),
    (["retrieve", "a", "--limit", "9" * 5_000], "expected a whole number"),
    (["retrieve", "a", "--weights", "luck=1"], "with each of match, recency, importance"),
    (["retrieve", "a", "--weights", "match=1,match=2"], "at most once, got 'match=2'"),
    (["retrieve", "a", "--weights", "match=much"], "expected a number, got 'much'"),
    (["retrieve", "a", "--mode", "magic"], "expected one of keyword"),
    (["list", "--archived", "maybe"], "expected one of true, false"),
    (["update", "abcd"], "nothing to change"),
    (["forget"], "say what to forget"),
    (["forget", "--yes"], "say what to forget"),
    (["forget", "--agent", "old", "--yes"], "say what to forget"),
    (["forget", "--agent-id", "old", "--yes"], "say what to forget"),
    (["forget", "abcd", "--category", "x"], "either IDs, or"),
    (["get"], "get needs ID"),
    (["kv", "-get"], "kv: expected one of list, get, set, delete, got '-get'"),
    (["kv", "get"], "get needs KEY"),
    (["kv", "set", "k"], "set needs KEY and VALUE"),
    (["kv", "delete", "k", "v"], "kv delete takes no word 'v'"),
    (["kv", "get", "k", "--limit", "3"], "kv get takes no --limit"),
    (["hot", "--update", "lesson"], "--update needs KEY and JSON"),
    (["hot", "--update", "lesson", "text"], "--update lesson: expected JSON, got 'text'"),
    (["hot", "--rebuild", "--update", "lesson", "{}"], "exclude each other"),
    (["tree", "--add", "a"], "--add needs PATH and DESC"),
    (["extract-metadata"], "extract-metadata needs --file"),
    (["search-url", "a", "--url", "b"], "give the url once"),
    (["retrieve", " "], "the query is empty"),
    (["retrieve", "x", "--llm", "--mode", "tree"], "--mode tree uses no model"),
    (["forget", "ab12", "--all"], "give nothing else"),
    (["import"], "give a PATH or --url"),
    (["undo"], "name a memory, or an author"),
    (["config", "recall.limit", "--check"], "KEY is read: give no --check"),
    (["tree", "--llm"], "go with --search"),
    (["tree", "--undo", "--prune"], "exclude each other"),
    (["metrics", "--report", "--trend"], "exclude each other"),
    (["consolidate", "--mode", "weekly"], "expected one of quick, daily, monthly, full, got"),
    (["consolidate", "--auth-token", "x"], "db-url and auth-token required"),
    (["ingest-daily", "--days", "0"], "--days: expected 1 or more"),
    (["validate", "one"], "validate takes no word 'one'"),
    (["distill"], "give a text once: as a word or with --file"),
    (["distill", "a", "--file", "b"], "give a text once: as a word or with --file"),
    (["distill", "--file", "-", "--file", "-"], "only one value"),
    (["distill", "a", "--category", "x"], "--category needs --store"),
    (["distill", "a", "--rules", "--llm"], "give either --rules or a model"),
    (["observe"], "observe needs FILE"),
    (["observe", "-"], "give standard input a --conversation"),
    (["observe", "-", "--conversation", "c", "--turns", "--end"], "--turns stands alone"),
    (["observe", __file__, "--conversation", "c", "--rules", "--llm"], "either --rules or"),
    (["observe", "-", "--conversation", "c", "--later", "--rules"], "give either --later, or"),
    (["graph", "--alias", "x"], "need a NAME"),
    (["graph", "--depth", "1"], "--depth needs a NAME"),
    (["graph", "Ada", "--limit", "3"], "--limit takes no NAME"),
    (["graph", "Ada", "--type", "god"], "expected one of person, project"),
    (["experiences", "add", "x"], "experiences add needs --type"),
    (["experiences", "add", "x", "--solution", '{"a":'], "--solution: expected JSON"),
    (["experiences", "prefer", "editor"], "prefer needs CATEGORY and VALUE"),
    (["experiences", "stats", "--tag", "x"], "experiences stats takes no --tag"),
    (["experiences", "observe", "x"], "experiences observe needs --conversation"),
    (["reflect", "add"], "reflect add needs TEXT"),
    (["reflect", "add", "x"], "reflect add needs --type"),
    (["reflect", "add", "x", "--type", "joy"], "expected one of failure, success, insight"),
    (["reflect", "list", "--action", "x"], "reflect list takes no --action"),
    (["episode", "add", "x", "--outcome", "won"], "expected one of resolved"),
    (["skill", "add", "x"], "skill add needs --description"),
    (["skill", "add", "x", "--description", "y"], "skill add needs --file"),
    (["skill", "show"], "skill show needs ID"),
    (["context", "x", "--query", "y"], "give the query once"),
    (["context", "--format", "xml"], "expected one of thermocline, json"),
    (["sessions", "list", "x"], "sessions list takes no word 'x'"),
    (["sessions", "start", "x", "--status", "active"], "sessions start takes no --status"),
    (["sessions", "archive", "x", "--category", "a"], "sessions archive takes no --category"),
    (["--socket"], "--socket needs PATH; see thermocline --help"),
])  # fmt: skip
def test_a_mistake_is_explained_and_exits_with_2(words, told, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert "Traceback" not in err


def test_options_and_words_may_stand_in_any_order(tmp_path):
    for words in [
        ["kv", "list", "--limit", "3", "prefix"],
        ["kv"],
        ["retrieve", "-gate"],
        ["retrieve", "-hello there", "--limit", "3"],
        ["retrieve", "--query", "-gate"],
        ["store", "-x"],
        ["store", "--text", "-3 degrees", "--tag", "-t"],
        ["kv", "set", "k", "-v"],
        ["kv", "set", "--agent", "x", "key", "value"],
        ["forget", "abcd", "--json", "ef01"],
        ["forget", "--category", "x", "--query", "y", "--yes"],
        ["forget", "--agent", "x", "--all", "--yes"],
        ["store", "--category", "x", "text"],
        ["store", "--", "--text"],
        ["store", "--text=--text"],
        ["store", "- a list item"],
        ["store", "x", "--db-url", "", "--auth-token", ""],
        ["store", "x", "--db-url", "libsql://x"],
        ["devices", "--rejoin", "--json"],
        ["store", "x", "--cmd", "make", "--command", "ls", "--url", "u", "--path", "/a/b"],
        ["update", "abcd", "--expires", "never"],
        ["update", "abcd", "--no-tags"],
        ["get", "abcd", "--agent-id", "nova", "--json"],
    ]:  # fmt: skip
        assert main(["--socket", str(tmp_path / "none.sock"), *words]) == 3


def test_a_file_that_is_not_there_is_refused_as_evoclaw_does(capsys):
    assert main(["--json", "extract-metadata", "--file", "/no/such\x1b"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert "No such file" in json.loads(out)["error"]["message"]
    assert main(["extract-metadata", "--file", "/no/such\x1b"]) == 1
    assert "\x1b" not in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_error():
    with subprocess.Popen(
        [*COMMAND, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_a_token_on_the_command_line_is_warned_of_and_not_repeated(tmp_path, capsys):
    socket = str(tmp_path / "none.sock")
    words = ["--socket", socket, "store", "x", "--db-url", "libsql://x", "--auth-token", "s3cret"]
    assert main(words) == 3
    err = capsys.readouterr().err
    assert err.count("--token-file FILE hides the token") == 1
    assert "s3cret" not in err


def test_evoclaws_critical_sync_refuses_half_a_database_in_its_own_words(capsys):
    assert main(["sync-critical", "--auth-token", "x"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["error"]
    assert told["error"].startswith("db-url and auth-token required")


@pytest.mark.parametrize(("words", "code", "error"), [
    (["--json", "store"], 2, "usage"),
    (["stor", "--json"], 2, "usage"),
    (["store", "x", "--json"], 3, "unreachable"),
    (["config", "--json", "--set", "log.level=loud"], 2, "config_invalid"),
    (["config", "--check", "--json", "--set", "log.level=loud"], 2, "config_invalid"),
    (["export", "/no/such/folder/x", "--json"], 3, "unreachable"),
    (["extract-metadata", "--file", "/no/such", "--json"], 1, "io"),
])  # fmt: skip
@pytest.mark.parametrize("chosen", ["option", "environment"])
def test_a_program_gets_an_error_as_json_too(
    words, code, error, chosen, tmp_path,
    capsys, monkeypatch
):  # fmt: skip
    if chosen == "environment":
        monkeypatch.setenv("THERMOCLINE_OUTPUT", "json")
        words = [word for word in words if word != "--json"]
    assert main(["--socket", str(tmp_path / "none.sock"), *words]) == code
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert list(told) == ["error"]
    assert told["error"]["code"] == error
    assert told["error"]["message"]
    assert set(told["error"]) <= {"code", "message", "field", "hint"}
    assert err == ""


def test_the_environment_chooses_the_form_of_an_answer(capsys, monkeypatch):
    for chosen, code, told in (
        ("json", 0, '"ok": true'), ("text", 0, "ok: "),
        ("xml", 2, "THERMOCLINE_OUTPUT: expected json or text, got 'xml'"),
    ):  # fmt: skip
        monkeypatch.setenv("THERMOCLINE_OUTPUT", chosen)
        assert main(["config", "--check"]) == code
        assert told in "".join(capsys.readouterr())


def test_a_word_after_the_end_of_options_is_no_request_for_json(tmp_path, capsys):
    assert main(["--socket", str(tmp_path / "none.sock"), "store", "--", "--json"]) == 3
    assert capsys.readouterr().out == ""
