"""`thermocline completion`, in the shells themselves."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import PROGRAM

ASK = {
    # The first word is what is typed, its last element the word to complete.
    "bash": """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _thermocline
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "fish": """
        source $argv[1]; set -e argv[1]
        complete -C (string join ' ' -- $argv) | string replace -r '\\t.*' ''; true
    """,
    # Without a terminal zsh completes nothing: the script's own words are looked up.
    "zsh": """
        compdef() { : }
        source "$1"; shift
        _describe() { for each in "${(@P)2}"; do print -r -- "${each%%:*}"; done }
        _arguments() {
          if [[ "$*" == *'->verb'* ]]; then
            if (( $#words > 2 )); then state=rest; shift words; else state=verb; fi; return
          fi
          local each last="$words[-2]"
          for each in "$@"; do
            if [[ "$each" == '*'"$last"'['*'('*')' || "$each" == '*:word:('*')' ]]; then
              print -l -- ${=${${each##*\\(}%\\)}}
            elif [[ "$each" == '*--'* ]]; then
              print -r -- ${${each#\\*}%%\\[*}
            fi
          done
        }
        words=("$@"); _thermocline
    """,
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script of each shell."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in ASK:
        printed = subprocess.run(
            [sys.executable, *PROGRAM, "completion", shell], check=True, capture_output=True
        )
        (folder / shell).write_bytes(printed.stdout)
    return folder


def complete(shell: str, scripts: Path, *words: str) -> set[str]:
    """What a shell offers for the last of the words after `thermocline`."""
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not installed")
    plain = {"bash": ["--norc", "--noprofile"], "fish": ["--no-config"], "zsh": ["-f"]}[shell]
    script = [] if shell == "fish" else ["sh"]
    ran = subprocess.run(
        [program, *plain, "-c", ASK[shell], *script, scripts / shell, "thermocline", *words],
        check=True,
        capture_output=True,
        text=True,
        cwd=scripts,
    )
    assert ran.stderr == ""
    return {*ran.stdout.split()}


@pytest.mark.parametrize("shell", ASK)
def test_a_shell_offers_verbs_options_values_and_files_where_one_is_wanted(shell, scripts):
    verbs = complete(shell, scripts, "re")
    assert {"retrieve", "restore", "reflect"} <= verbs
    assert {"--type", "--category", "--json"} <= complete(shell, scripts, "store", "--")
    assert {"semantic", "episodic", "procedural"} <= complete(shell, scripts, "store", "--type", "")
    assert {"bash", "zsh", "fish"} <= complete(shell, scripts, "completion", "")
    if shell != "zsh":
        assert "fish" in complete(shell, scripts, "import", "fi")
        assert complete(shell, scripts, "store", "--category", "fi") == set()
    if shell == "bash":
        assert "retrieve" in complete(shell, scripts, "--agent-id", "x", "--json", "retr")


def test_an_unknown_shell_is_refused_by_name():
    refused = subprocess.run(
        [sys.executable, *PROGRAM, "completion", "tcsh"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "expected one of bash, zsh, fish" in refused.stderr
