import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.language.secrets import Cleared, clear, clear_turns

FILE = Path(__file__).parents[1] / "data" / "secret_texts.txt"
TEXTS_BY_SHAPE = 100
RUN = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"


def written(text: str) -> str:
    text = text.replace("{A}", RUN).replace("{N}", "\n").replace("{}", "")
    return text.replace("⟦", "").replace("⟧", "")


LINES = [
    tuple(line.split(" | ", 1))
    for line in FILE.read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
# What opens or pays is removed from talks alone.
TEXTS = {
    kind: [(written(text), re.findall("⟦(.+?)⟧", text)) for what, text in LINES if what == kind]
    for kind in ("secret", "none", "talk", "said")
}


def in_talk(text: str) -> str:
    return clear_turns([text])[0]


def test_a_secret_is_cleared_once_and_for_all():
    for text, _ in TEXTS["secret"]:
        cleared = clear(text)
        assert clear(cleared.text) == Cleared(cleared.text, {})


def left(kind: str) -> list[str]:
    """The examples of which a secret is left."""
    cleared = in_talk if kind == "talk" else lambda text: clear(text).text
    return [
        text
        for text, secrets in TEXTS[kind]
        if cleared(text) == text or any(secret in cleared(text) for secret in secrets)
    ]


def changed(kind: str) -> list[str]:
    """The harmless examples that are not as they were."""
    cleared = in_talk if kind == "said" else lambda text: clear(text).text
    return [text for text, _ in TEXTS[kind] if cleared(text) != text]


@pytest.mark.parametrize(("kind", "share"), [("secret", 0.028), ("talk", 0.06)])
def test_nearly_all_secrets_of_the_examples_are_removed(kind, share):
    assert len(TEXTS[kind]) > 100
    assert len(left(kind)) <= share * len(TEXTS[kind]), left(kind)


@pytest.mark.parametrize(("kind", "share"), [("none", 0.037), ("said", 0.081)])
def test_nearly_all_that_is_no_secret_survives(kind, share):
    assert len(TEXTS[kind]) > 100
    assert len(changed(kind)) <= share * len(TEXTS[kind]), changed(kind)


def test_what_its_shape_tells_is_always_removed():
    """These have no words around them that could be weighed."""
    shapes = [text for text, _ in TEXTS["secret"][:TEXTS_BY_SHAPE]]
    assert not [text for text in shapes if clear(text).text == text]


def test_who_asks_for_a_password_names_none():
    for text in ("¿Cuál es la contraseña?", "Quel est le mot de passe ?", "Welches ist das Wort?"):
        assert in_talk(text) == text


def test_a_password_in_words_is_told_by_how_it_is_spelled():
    turns = [
        "FATAL: password authentication failed",
        "the new one is marabou stork umbrella, all one word, lowercase -> maraboustork7umbrella",
    ]
    assert clear_turns(turns)[1] == (
        "the new one is [password removed], all one word, lowercase -> [password removed]"
    )
    assert "thursday" in in_talk("the hashtag is throw back thursday, all one word")


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
        ("The church stream key is live_9f3k27xq81tb, is that right?", "token"),
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


@pytest.mark.parametrize("piece", ["A", "A ", "x", "@", "a.b@", "!a", "a-", "1.", "中", '"a" '])
def test_a_long_text_behind_the_name_of_a_secret_is_read_in_good_time(piece):
    began = time.process_time()
    clear("my password is " + piece * (64_000 // len(piece)))
    assert time.process_time() - began < 5
