"""What of a text is put into the full-text index."""

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.indexing import index_text, indexed_columns
from thermocline.daemon.memory.records import Memory


def test_runs_of_scripts_without_blanks_become_pairs():
    for text, words in [
        ("plain words", ["plain", "words"]), ("東京都庁", ["東京", "京都", "都庁"]), ("山", ["山"]),
        ("in 東京 today", ["in", "東京", "today"]), ("ab東京cd", ["ab", "東京", "cd"]),
        ("한국어", ["한국", "국어"]), ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("ｆｕｌｌ　ｗｉｄｔｈ", ["full", "width"]), ("ﾃｽﾄ", ["テス", "スト"]),
        ("Привет мир", ["Привет", "мир"]), ("𠮷野家", ["𠮷野", "野家"]),
    ]:  # fmt: skip
        assert index_text(text).split() == words


@given(st.text(alphabet="東京都庁大阪府ab ", max_size=30))
def test_every_part_of_a_run_is_found_by_its_own_pairs(text):
    whole = f" {' '.join(index_text(text).split())} "
    for run in text.split():
        for start in range(len(run) - 1):
            part = run[start : start + 2]
            if all(char not in "ab" for char in part):
                assert f" {part} " in whole


@given(st.text())
def test_any_text_can_be_indexed(text):
    assert isinstance(index_text(text), str)


def test_the_columns_are_text_with_outcome_then_subject_then_tags():
    memory = Memory(
        id="1",
        text="broke the mast",
        outcome="repaired",
        subject="boat",
        tags=("sea", "東京都"),
        created_at=0.0,
        updated_at=0.0,
    )
    text, subject, tags = indexed_columns(memory)
    assert text.split() == ["broke", "the", "mast", "repaired"]
    assert subject == "boat"
    assert tags == "sea 東京都"
