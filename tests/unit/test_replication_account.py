"""What an account says of its token: where it goes, and who can read it."""

import tempfile
from pathlib import Path

import pytest

from thermocline.daemon.cloud.account import (
    OF_A_CALL,
    Account,
    Secret,
    account_of,
)
from thermocline.daemon.config import load
from thermocline.daemon.errors import ConfigInvalid

NOWHERE = Path("/nonexistent/config.json")


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("s3cret\n")
    path.chmod(0o600)
    return path


def account_with(token: Path) -> Account:
    sets = ("sync.url=https://a", f"sync.token_file={token}")
    settings = load({}, sets=sets, system_file=NOWHERE).settings
    account = account_of(settings, {}, "default", token.parent)
    assert account is not None
    return account


def test_the_way_out_names_the_place_of_the_token():
    for account, code, way_out in [
        (
            Account("https://a", Secret("t"), "sync.url", "/etc/token"),
            "unauthorized",
            "make a new token, and put it into /etc/token",
        ),
        (
            Account("https://a", Secret("t"), "sync.url", "/etc/token"),
            "forbidden",
            "make a token that allows writing, and put it into /etc/token",
        ),
        (
            Account("https://a", None, "sync.url"),
            "unauthorized",
            "make a token, and put it into a separate file, and name that in sync.token_file",
        ),
        (
            Account("https://a", None, "--url"),
            "unauthorized",
            "make a token, and give it with --token-file",
        ),
        (
            Account("https://a", Secret("t"), OF_A_CALL),
            "unauthorized",
            "make a new token, and give it with the call",
        ),
        (Account("https://a", Secret("t"), "sync.url"), "offline", None),
        (Account("file:/a", None, "sync.url"), "forbidden", None),
    ]:
        assert account.way_out(code) == way_out


def test_a_token_that_only_its_owner_reads_is_not_exposed(token):
    account = account_with(token)
    assert (account.token_file, account.exposed) == (str(token), False)
    assert account.token == Secret("s3cret")


def test_a_token_is_exposed_where_nothing_on_the_way_keeps_others_out():
    with tempfile.TemporaryDirectory() as folder:
        open_token = Path(folder) / "token"
        open_token.write_text("s3cret")
        open_token.chmod(0o644)
        assert not account_with(open_token).exposed
        Path(folder).chmod(0o755)
        assert account_with(open_token).exposed == all(
            path.stat().st_mode & 0o001 for path in Path(folder).parents
        )
        open_token.chmod(0o640)
        assert not account_with(open_token).exposed


def test_a_place_of_the_token_that_cannot_be_looked_at_is_told_with_the_way_out(tmp_path):
    # As a folder that may not be entered; but that root may.
    env = {"CREDENTIALS_DIRECTORY": str(tmp_path / ("x" * 300))}
    settings = load({}, sets=("sync.url=https://a",), system_file=NOWHERE).settings
    with pytest.raises(ConfigInvalid, match="cannot access"):
        account_of(settings, env, "default", tmp_path)
