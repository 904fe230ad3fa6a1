"""What a text refers to, and what a note lacks."""

import json
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.metadata import extract, merge, validate
from thermocline.daemon.memory.records import Metadata

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
CASES = json.loads((VECTORS / "evoclaw_metadata.json").read_text())["cases"]


def test_the_references_are_those_that_evoclaw_finds():
    for case in CASES:
        found = extract(case["text"])
        expected = case["metadata"]
        assert list(found.urls) == expected["urls"]
        assert list(found.commands) == expected["commands"]
        assert list(found.paths) == expected["paths"]


def test_what_is_too_long_is_no_reference_and_windows_ends_lines_too():
    assert extract("https://long.example/" + "x" * 3_000).urls == ()
    assert extract("`" + "x" * 199 + "` `" + "y" * 200 + "`").commands == ("x" * 199,)
    assert extract("docker ps -a\r\npip list -v\r\n").commands == ("ps -a", "list -v")


WORDS = (
    "a ` `` ``` `a a`b `\n / /a /a/ // /a/b a. a- a-. a.b. .a - _ @ a@ www. https:// https://a "
    "https://( ) ( )( $ $\t git sudo sudo\t ~/ ./ ../ .. a.com a.com/ a.com: %/ ,/ é é."
)
BLANKS = (" ", "\t", "\n", " \n", "git ", "$ ", "sudo ", "sudo  ", " git", "https://a ) ")


def test_no_text_of_64_kib_takes_long():
    for prefix in ["", "https://a", "/a", "\n  `", "git "]:
        slowest = 0.0
        for unit in (*filter(None, WORDS.split(" ")), *BLANKS):
            text = prefix + unit * (65_536 // len(unit)) + "!"
            begin = time.process_time()
            extract(text)
            slowest = max(slowest, time.process_time() - begin)
        # Reading 64 KiB takes milliseconds; going back over it again and again takes minutes.
        assert slowest < 1.0


@given(st.text(alphabet="ab/.~`$ \n:-w@()gitcom\ud800é漢", max_size=200))
def test_whatever_the_text_every_reference_is_part_of_it(text):
    found = extract(text)
    for reference in (*found.urls, *found.commands, *found.paths):
        assert reference in text
    assert len(found.urls) <= 10
    assert len(found.commands) <= 5
    assert len(found.paths) <= 10


def test_what_the_caller_gave_comes_first_uncut_and_nothing_comes_twice():
    given_ = Metadata(urls=("u2", "u0", "u0"), commands=("c",))
    found = Metadata(urls=("u0", "u1"), paths=("/p/q",))
    merged = merge(given_, found)
    assert merged == Metadata(urls=("u2", "u0", "u1"), commands=("c",), paths=("/p/q",))
    many = tuple(f"https://g.example/{n}" for n in range(30))
    found = Metadata(urls=tuple(f"https://f.example/{n}" for n in range(12)))
    assert merge(Metadata(urls=many), found).urls == many + found.urls[:10]


URL = "Tool '{}' mentioned without URL/documentation link"
COMMAND = "Action '{}' mentioned without command example"


def messages(note: str) -> list[str]:
    return [omission.message for omission in validate(note)]


def test_each_warning_has_its_line_and_a_suggestion_that_names_it():
    for note, kind, line, names in [
        ("# Day\n\nfine\nTried ComfyUI today", "url", 4, "line 4: add the URL of ComfyUI"),
        ("fine\n\n- installed it", "command", 3, "line 3: add the command in back quotes"),
        ("a\nb\n* we chose tea", "next_step", 3, "line 3: say what follows"),
    ]:
        (omission,) = validate(note)
        assert (omission.kind, omission.line) == (kind, line)
        assert names in omission.suggestion


def test_actions_are_found_in_every_form():
    for verb, action in [
        ("downloaded", "download"), ("reinstalled", "install"), ("configuring", "configure"),
        ("set up", "setup"), ("setup", "setup"), ("deploys", "deploy"),
    ]:  # fmt: skip
        assert messages(f"Ada {verb} things") == [COMMAND.format(action)]


def test_what_is_no_omission_gives_no_warning():
    for note in [
        "```\ninstall comfyui\ndecided\n```",
        "~~~sh\ninstall comfyui\n~~~",
        "the function `install()` of `ComfyUI`",
        "<!-- install ComfyUI -->",
        "Installed ComfyUI from https://github.com/x/ComfyUI with `git clone`",
        "Installed it:\n\n```\nmake install\n```",
        "Installed it:\n$ make install",
        "The download is slow and our setup is old",
        "There is no need to install anything",
        "We did not deploy it",
        "Should we install it?",
        "Have we decided?",
        "We decided to wait. Next: ask Ada",
        "We chose tea; Ada will buy it tomorrow",
        "- we chose tea\n- [ ] buy it",
        "undecided, installer, deployment, reconfigurable, deploy-key",
        "see docs.ollama.com/install for it",
        "",
    ]:
        assert messages(note) == []


def test_one_mention_with_a_link_is_enough_and_one_too_far_away_is_not():
    assert messages("Tried Ollama.\n\n" + "So. " * 100 + "\nOllama: https://ollama.com") == []
    assert messages("Tried Ollama.\n" + "So it is.\n" * 60 + "https://a.example") == [
        URL.format("Ollama")
    ]


def test_every_tool_action_and_decision_is_warned_of_once():
    note = "Installed Ollama, installed OLLAMA, installed Whisper. We chose it, chose it."
    assert len(messages(note)) == len(set(messages(note))) == 4


def test_the_words_around_a_decision_are_short_and_of_one_line():
    (warning,) = messages("First words. " + "very " * 30 + "long: we decided\nmore")
    assert warning.startswith("Decision near '")
    assert len(warning) < 130
    assert "\n" not in warning
    assert "decided" in warning


@given(st.text())
def test_any_note_can_be_validated(note):
    lines = note.count("\n") + 1
    for omission in validate(note):
        assert 1 <= omission.line <= lines
        assert f"line {omission.line}:" in omission.suggestion


@given(st.text(max_size=30))
def test_code_is_never_warned_of(code):
    assert messages(f"```\n{code.replace('`', '')} install ComfyUI decided\n```") == []


def test_a_long_note_of_anything_is_read_in_good_time():
    for piece in ["install ", "ComfyUI ", "```\n", "`", "decided\n", "<!--", "~~~"]:
        validate(piece * (64_000 // len(piece)))
