"""What goes to the screen, character by character."""

import pytest

pytest.importorskip("textual")

from thermocline.daemon.client.wording import ago, size
from thermocline.tui.charts import bar, bars, fitted, number, top_of
from thermocline.tui.text import masked, part_of, plain, round_span


def test_nothing_stored_acts_on_the_terminal():
    for stored, shown in [
        ("plain text, é 漢 🙂", "plain text, é 漢 🙂"), ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b31m", "\\x9b31m"), ("a\r\nb\tc", "a\\r\\nb\\tc"), ("\u202etxt.exe", "\\u202etxt.exe"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"), ("tag\U000e0041", "tag\\U000e0041"),
        ("half \ud83d", "half \\ud83d"),
    ]:  # fmt: skip
        assert plain(stored) == shown
    assert plain("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_secrets_are_masked():
    for secret in [
        "sk-proj-abcdefghijklmnop0123456789",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh",
        "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
    ]:
        shown = masked(f"the key {secret} is new")
        assert secret not in shown
        assert shown.startswith("the key ••••••••")


def test_passwords_are_masked_and_usual_texts_are_not():
    for before, secret, after in (
        ("postgres://", "ana:hunter2", "@db/x"),
        ("password: ", "hunter2", ""),
        ("Authorization: Bearer ", "abcdefghijklmnop", ""),
        ("家里的Wi-Fi密码是 ", "tulpen-regen-88", ""),
        ("新的Wi-Fi密码: ", "kirschbaum-77", ""),
        ("The password of the router is ", "hunter-22", ""),
        ("Das WLAN-Passwort lautet ", "katze7!", ""),
        ("La contraseña del wifi es ", "rosa_9", ""),
        ("Le mot de passe est ", "chat-12", ""),
        ("my PIN is ", "4471", ""),
        ("PIN ", "4471", ""),
    ):
        assert masked(before + secret + after) == f"{before}••••••••{after}"
    for text in (
        "The password of the router is on the yellow note",
        "passwords are kept in 1Password",
        "Never push the token: it is short",
        "risk-based-approach-to-everything",
        "https://a.b/c:d@e",
        "the token rotates",
    ):
        assert masked(text) == text


def test_times_and_sizes_are_in_their_largest_units():
    assert [ago(when, 1000.0) for when in (None, 1000.0, 940.0, 4600.0)] == [
        "never", "now", "1 min ago", "in 1 h",
    ]  # fmt: skip
    assert [round_span(n) for n in (5, 65, 3700, 90000)] == ["5 s", "1 min", "1 h 1 min", "1 d 1 h"]
    assert [size(one) for one in (5, 2048, 3 << 20)] == ["5 B", "2.0 KB", "3.0 MB"]
    assert part_of(1024, 5120) == "1.0 of 5 KB"
    assert part_of(100, 5120) == "100 B of 5 KB"


def test_a_bar_is_as_full_as_its_share():
    assert bar(0.0, 4) == ("", "────")
    assert bar(0.001, 4) == ("▏", "───")
    assert bar(0.5, 4) == ("██", "──")
    assert bar(1.5, 4) == ("████", "")


def test_a_scale_ends_at_a_round_number_above_the_highest_value():
    assert [top_of(one) for one in (0, 0.3, 1, 3, 7, 11, 450)] == [1, 0.5, 1, 5, 10, 20, 500]
    assert [number(one) for one in (0, 0.25, 16.94, 1234)] == ["0", "0.25", "16.9", "1,234"]


def test_a_chart_fills_its_columns_and_keeps_the_highest_value():
    assert fitted([1, 9, 2, None], 2) == [9, 2]
    assert fitted([None, None], 1) == [None]
    assert fitted([1, 2], 4) == [1, 1, 2, 2]
    assert fitted([], 2) == [None, None]
    assert bars([None, 0, 5, 10], 2, 10) == ["   █", " ▁██"]
