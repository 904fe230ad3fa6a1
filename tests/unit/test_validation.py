from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.metadata import validate

URL = "Tool '{}' mentioned without URL/documentation link"
COMMAND = "Action '{}' mentioned without command example"
DECISION = "Decision near '{}...' may lack implementation details"


def messages(note: str) -> list[str]:
    return [omission.message for omission in validate(note)]


def test_the_warnings_are_evoclaws():
    for note, warnings in [
        ("Tried ComfyUI today, works.", [URL.format("ComfyUI")]),
        ("We install things later.", [COMMAND.format("install")]),
        ("We decided to wait.", [DECISION.format("We decided to wait.")]),
        ("all fine", []),
    ]:
        assert messages(note) == warnings


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
