"""Which database a restore is from, and which token is sent to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.config import load
from thermocline.daemon.errors import ConfigInvalid, InvalidInput, NotFound
from thermocline.daemon.replication.account import CREDENTIALS_FILE, Account
from thermocline.daemon.restoring.whence import account_for

URL = "https://mine.example"
NOTHING = Path("/nonexistent/config.json")


def found(folder: Path, *sets: str, env: dict[str, str] | None = None, **given: Any) -> Account:
    """The account for a restore into `folder`."""
    env = {"HOME": str(folder)} | (env or {})
    settings = load(env, sets=sets, system_file=NOTHING).settings
    wish = {"url": None, "token": None, "agent": None} | given
    return account_for(settings, env, folder / "state", **wish)


def token_of(account: Account) -> str | None:
    return None if account.token is None else account.token.reveal()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("configured\n")
    return path


def evoclaws(folder: Path, agent: str, **fields: str) -> None:
    place = folder / "state/agents" / agent / "memory"
    place.mkdir(parents=True)
    (place / CREDENTIALS_FILE).write_text(json.dumps(fields))


def test_the_named_database_is_meant(tmp_path: Path) -> None:
    account = found(tmp_path, url="libsql://mine.example", token=" secret ")
    assert (account.url, token_of(account)) == (URL, "secret")
    assert "secret" not in repr(account)


def test_without_a_name_the_configured_one_is_meant(tmp_path: Path, token_file: Path) -> None:
    account = found(tmp_path, f"sync.url={URL}", f"sync.token_file={token_file}")
    assert (account.url, token_of(account)) == (URL, "configured")
    account = found(tmp_path, f"sync.url={URL}", f"sync.token_file={token_file}", token="given")
    assert token_of(account) == "given"


def test_what_is_given_needs_nothing_of_what_is_configured(tmp_path: Path) -> None:
    sets = (f"sync.url={URL}", f"sync.token_file={tmp_path / 'missing'}")
    for url in (None, URL, "https://another.example"):
        assert token_of(found(tmp_path, *sets, url=url, token="given")) == "given"
    with pytest.raises(ConfigInvalid):
        found(tmp_path, *sets)


def test_the_configured_token_opens_the_configured_database_alone(
    tmp_path: Path, token_file: Path
) -> None:
    sets = (f"sync.url={URL}", f"sync.token_file={token_file}")
    assert token_of(found(tmp_path, *sets, url="libsql://mine.example")) == "configured"
    assert token_of(found(tmp_path, *sets, url="https://MINE.example/")) == "configured"
    assert token_of(found(tmp_path, *sets, url="libsql://other.example")) is None
    assert token_of(found(tmp_path, sets[1], url="libsql://other.example")) is None
    env = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    (tmp_path / "turso-token").write_text("service")
    assert token_of(found(tmp_path, url="libsql://other.example", env=env)) is None


def test_the_token_for_evoclaws_database_is_sent_to_no_other(
    tmp_path: Path, token_file: Path
) -> None:
    evoclaws(tmp_path, "default", database_url="libsql://mine.example", auth_token="evoclaw")
    sets = (f"sync.token_file={token_file}",)
    assert token_of(found(tmp_path, *sets)) == "configured"
    assert token_of(found(tmp_path, *sets, url=URL)) == "configured"
    assert token_of(found(tmp_path, *sets, url="https://other.example")) is None
    # Nor is EvoClaw's sent to the one that the configuration names.
    assert token_of(found(tmp_path, "sync.url=https://other.example")) is None
    assert token_of(found(tmp_path, f"sync.url={URL}")) == "evoclaw"


def test_a_token_of_evoclaws_without_a_database_is_for_the_configured_one(tmp_path: Path) -> None:
    evoclaws(tmp_path, "default", auth_token="evoclaw")
    assert token_of(found(tmp_path, f"sync.url={URL}")) == "evoclaw"
    assert token_of(found(tmp_path, f"sync.url={URL}", url=URL)) == "evoclaw"
    assert token_of(found(tmp_path, f"sync.url={URL}", url="https://other.example")) is None
    assert token_of(found(tmp_path, url=URL)) is None


def test_the_token_of_all_agents_databases_is_for_those_alone(
    tmp_path: Path, token_file: Path
) -> None:
    sets = ("sync.url=libsql://m-{agent}.example", f"sync.token_file={token_file}")
    for url in ("https://m-otis.example", "libsql://m-{agent}.example"):
        assert token_of(found(tmp_path, *sets, url=url, agent="otis")) == "configured"
    assert token_of(found(tmp_path, *sets, url="https://m-ada.example", agent="otis")) is None


def test_the_token_of_the_service_is_found(tmp_path: Path) -> None:
    (tmp_path / "turso-token").write_text("of the service")
    env, sets = {"CREDENTIALS_DIRECTORY": str(tmp_path)}, (f"sync.url={URL}",)
    with pytest.raises(ConfigInvalid, match="a token and nothing else") as error:
        found(tmp_path, *sets, url=URL, env=env)
    assert "--token-file" in (error.value.hint or "")
    (tmp_path / "turso-token").write_text("service")
    assert token_of(found(tmp_path, *sets, url=URL, env=env)) == "service"
    assert token_of(found(tmp_path, *sets, env=env)) == "service"


def test_evoclaws_credentials_open_evoclaws_database_alone(tmp_path: Path) -> None:
    evoclaws(tmp_path, "default", database_url="libsql://mine.example", auth_token="evoclaw")
    account = found(tmp_path)
    assert (account.url, token_of(account)) == (URL, "evoclaw")
    assert token_of(found(tmp_path, url=URL)) == "evoclaw"
    assert token_of(found(tmp_path, url="https://other.example")) is None


def test_a_database_of_each_agent_needs_the_name_of_one(tmp_path: Path) -> None:
    url = "https://{agent}.example"
    assert found(tmp_path, url=url, agent="otis").url == "https://otis.example"
    assert found(tmp_path, f"sync.url={url}", agent="otis").url == "https://otis.example"
    for given in ({"url": url}, {}):
        with pytest.raises(InvalidInput, match="a database of its own"):
            found(tmp_path, f"sync.url={url}", **given)


@pytest.mark.parametrize("url", ["ftp://x/y", "https://me:secret@x/", "https://x?t=secret", "x"])
def test_what_is_no_url_of_a_database_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        found(tmp_path, url=url)
    assert "secret" not in error.value.message


def test_a_file_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file") as error:
        found(tmp_path)
    assert "--url" in (error.value.hint or "")
    with pytest.raises(NotFound):
        found(tmp_path, url=f"file:{tmp_path}/none.db")
    (tmp_path / "some.db").touch()
    assert found(tmp_path, url=f"file:{tmp_path}/some.db").kind == "file"


def test_a_memory_without_a_replica_has_nothing_to_be_restored_from(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"cold\.backend is none"):
        found(tmp_path, "cold.backend=none")
