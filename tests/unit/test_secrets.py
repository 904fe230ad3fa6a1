from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.language.secret_patterns import is_card, is_iban
from thermocline.daemon.language.secrets import clear, clear_turns

FILE = Path(__file__).parents[1] / "data" / "secret_texts.txt"
RUN = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"


def written(text: str) -> str:
    return text.replace("{A}", RUN).replace("{N}", "\n").replace("{}", "")


LINES = [
    tuple(line.split(" | ", 1))
    for line in FILE.read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
SECRETS = [written(text) for what, text in LINES if what == "secret"]
# What opens or pays is removed from talks alone.
OPENING = [written(text) for what, text in LINES if what == "talk"]
NOT_OPENING = [written(text) for what, text in LINES if what == "said"]
HARMLESS = [written(text) for what, text in LINES if what == "none"]


def test_there_are_enough_examples_to_measure():
    assert len(SECRETS) >= 60
    assert len(HARMLESS) >= 100


def test_a_secret_is_cleared_once_and_for_all():
    for text in SECRETS:
        cleared = clear(text)
        assert sum(cleared.counts.values()) >= 1, text
        again = clear(cleared.text)
        assert (again.text, again.counts) == (cleared.text, {})


def test_what_is_no_secret_survives():
    for text in HARMLESS:
        cleared = clear(text)
        assert (cleared.text, cleared.counts) == (text, {})


def test_what_opens_a_door_or_pays_is_removed_from_a_talk():
    for text in OPENING:
        assert clear(text).text == text
        assert " removed]" in clear_turns([text])[0], text
    for text in NOT_OPENING:
        assert clear_turns([text]) == [text]


def test_nothing_of_the_secret_is_left_and_its_surroundings_are():
    cleared = clear("Ada said: password=hunter2, and the port is 8080")
    assert cleared.text == "Ada said: password=[password removed], and the port is 8080"
    assert clear("x postgres://ada:hunter2@db/x y").text == (
        "x postgres://ada:[url password removed]@db/x y"
    )
    assert clear("""{"token": "ab12cd34", "n": 1}""").text == (
        """{"token": "[token removed]", "n": 1}"""
    )


def test_the_marker_names_the_kind():
    for text, kind in [
        (f"sk-{RUN}", "api_key"),
        (f"ghp_{RUN}", "github_token"),
        ("AKIA" + "IOSFODNN7EXAMPLE", "aws_key"),
        (f"xoxb-{RUN}", "slack_token"),
        (f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{RUN}", "jwt"),
        ("-----BEGIN PRIVATE " + "KEY-----\nMIIE\n-----END PRIVATE KEY-----", "private_key"),
        (f"Authorization: Bearer {RUN}", "bearer"),
        ("password: hunter2", "password"),
        ("The church stream key is live_9f3k27xq81tb, is that right?", "api_key"),
        ("Fürs Online-Banking ist es enzian-kar-77.", "password"),
        ("token=ab12cd34", "token"),
        ("redis://:geheim@localhost", "url_password"),
        ("4111 1111 1111 1111", "credit_card"),
        ("DE89 3704 0044 0532 0130 00", "iban"),
    ]:
        cleared = clear(f"before {text} after" if "BEGIN" not in text else text)
        assert cleared.counts == {kind: 1}
        assert f"[{kind.replace('_', ' ')} removed]" in cleared.text


def test_every_secret_is_counted():
    text = f"sk-{RUN} and sk-{RUN}x, password=hunter2"
    assert clear(text).counts == {"api_key": 2, "password": 1}


def test_a_private_key_ends_where_its_text_does_even_without_an_end():
    begin = "-----BEGIN RSA PRIVATE " + "KEY-----"
    assert clear(f"a\n{begin}\nMIIE\n-----END RSA PRIVATE KEY-----\nb").text == (
        "a\n[private key removed]\nb"
    )
    assert "MIIE" not in clear(f"{begin}\nMIIE\nMIIF").text


def test_card_and_account_numbers_are_told_by_their_check_digits():
    assert is_card("4111-1111-1111-1111")
    assert not is_card("4111-1111-1111-1112")
    assert is_iban("GB82 WEST 1234 5698 7654 32")
    assert not is_iban("GB83 WEST 1234 5698 7654 32")


@given(st.text())
def test_clearing_twice_changes_nothing_more(text):
    cleared = clear(text)
    assert clear(cleared.text).text == cleared.text


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_key_is_found_whatever_stands_around_it(before, after):
    cleared = clear(f"{before} ghp_{RUN} {after}")
    assert RUN not in cleared.text
    assert sum(cleared.counts.values()) >= 1


LONG = ["a", "password ", "token: ", "sk-", "eyJ", "1", "4111 ", "http://a:", "AB12 ", "a.b", "M"]


def test_a_long_text_of_anything_is_read_in_good_time():
    for piece in [*LONG, "-----BEGIN RSA PRIVATE KEY-----\n"]:
        clear(piece * (64_000 // len(piece)))
