"""`provision` on the command line: a database for an owner, and what a device needs for it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from machine import free_port
from provider_server import API_TOKEN, ORGANIZATION, ProviderServer
from shells import run

DATABASES = f"/v1/organizations/{ORGANIZATION}/databases"
Provision = Callable[..., Any]


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
def provision(provider: ProviderServer, tmp_path: Path) -> Provision:
    """`provision(*words, code=0)` runs the command with an API token in a file."""
    token = tmp_path / "api-token"
    token.write_text(f"{API_TOKEN}\n")

    def provision(*words: str, code: int = 0, org: str = ORGANIZATION, api: str = "") -> Any:
        options = ("--org", org, "--api-token-file", str(token), "--api", api or provider.url)
        return run("provision", *words, *options, code=code)

    return provision


def test_an_owner_gets_a_database_a_token_and_the_configuration_of_a_device(
    provider, provision, tmp_path
):
    folder = tmp_path / "ana"
    said = provision("ana", "--to", str(folder), "--expires", "26w")
    assert "made libsql://ana-acme.turso.io" in said.stdout
    assert provider.requests == [
        ("POST", DATABASES, {}, {"name": "ana", "group": "default"}),
        (
            *("POST", f"{DATABASES}/ana/auth/tokens"),
            {"expiration": ["26w"], "authorization": ["full-access"]},
            None,
        ),
    ]
    assert (folder / "turso-token").read_text() == "jwt-ana-1\n"
    assert (folder / "turso-token").stat().st_mode & 0o777 == 0o600
    sync = {
        "url": "libsql://ana-acme.turso.io",
        "token_file": "~/.config/thermocline/turso-token",
    }
    assert json.loads((folder / "config.json").read_text()) == {"sync": sync}
    shown = run("config", "--config", str(folder / "config.json"))
    assert "libsql://ana-acme.turso.io" in shown.stdout
    assert not {"jwt-ana-1", API_TOKEN} & {*said.stdout.split(), *said.stderr.split()}


def test_a_dry_run_prints_the_requests_and_sends_none(provider, tmp_path):
    words = ("--org", ORGANIZATION, "--api", provider.url, "--dry-run")
    lines = run("provision", "ana", *words, "--to", str(tmp_path / "ana")).stdout.splitlines()
    create, mint = (line.split(maxsplit=2) for line in lines)
    assert create[:2] == ["POST", provider.url + DATABASES]
    assert json.loads(create[2]) == {"name": "ana", "group": "default"}
    assert mint[1].startswith(f"{provider.url}{DATABASES}/ana/auth/tokens?expiration=never")
    [first, second] = json.loads(run("provision", "ana", *words, "--json").stdout)["requests"]
    assert (first["url"], first["body"]) == (create[1], json.loads(create[2]))
    assert (second["url"], second["body"]) == (mint[1], None)
    assert provider.requests == []
    assert not (tmp_path / "ana").exists()


def test_an_interrupted_one_is_continued(provider, provision, tmp_path):
    to = ("--to", str(tmp_path / "ana"))
    provider.broken = 503
    assert "cannot do it now: not now" in provision("ana", *to, code=4).stderr
    provider.broken = 0
    # As when it was killed between its two files; those of another owner stay.
    assert [path.name for path in (tmp_path / "ana").iterdir()] == ["config.json"]
    assert "exists already" in provision("bob", *to, code=1).stderr
    assert provider.databases == {"ana": []}
    assert json.loads(provision("ana", *to, "--json").stdout)["created"] is False
    assert provider.databases == {"ana": ["jwt-ana-1"]}
    assert "exists already" in provision("ana", *to, code=1).stderr
    assert provider.databases == {"ana": ["jwt-ana-1"]}, "no token is made that nobody keeps"


def test_what_is_wrong_is_said_and_an_api_token_that_is_refused_not_repeated(provision, tmp_path):
    to, nobody = ("--to", str(tmp_path / "x")), f"http://127.0.0.1:{free_port()}"
    for words, options, code, reason in (
        (("ana",), {"org": "others"}, 1, "could not find organization others"),
        (("ana", "--group", "far"), {}, 1, "group far not found"),
        (("Ana!",), {}, 1, "lower-case letters"),
        (("ana",), {"api": "http://api.example"}, 1, "http://"),
        (("ana",), {"api": nobody}, 4, "cannot reach the provider"),
    ):
        assert reason in provision(*words, *to, code=code, **options).stderr
    (tmp_path / "api-token").write_text("wrong-token")
    said = provision("ana", *to, code=1)
    assert "refuses the API token" in said.stderr
    assert "wrong-token" not in said.stdout + said.stderr
