from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.language.extraction.distilling import distil
from thermocline.daemon.language.extraction.extraction import extract_turns
from thermocline.daemon.language.extraction.notes import read_note
from thermocline.daemon.language.sentences import sentences
from thermocline.daemon.language.speech import Turn

UNALTERED = [
    "rm -rf build/*", "0 */3 * * *", "*/5 * * * * backup.sh", "src/**/*.ts and lib/**/*.js",
    "def f(*args, **kwargs)", "listen_addresses='*'", "a='*' and b='*'", "5*3*2 and 2**8",
    "f(**a) and g(**b)", "SELECT *, b* FROM t", "/* no comment */", "__init__ and __main__.py",
    r"\d+\.\d+ and C:\*.txt", "&amp; or &nbsp;", "*one* word", "`**code**` and ``a ` b``",
    "`rm *` and `cp *`",
]  # fmt: skip
MARKED = [
    ("We **never** deploy on Fridays", "We never deploy on Fridays"),
    ("**Decision: use uv.** It is quick", "Decision: use uv. It is quick"),
    ('the **"old" way** is gone', 'the "old" way is gone'),
    ("__two words__ here", "two words here"),
    ("**重要**：我们使用Postgres", "重要：我们使用Postgres"),
    ("use ~~npm~~ pnpm", "use pnpm"),
]


def test_asterisks_that_are_no_marks_stay_wherever_a_text_is_read():
    for text in UNALTERED:
        said = f"We decided to use {text} for the nightly job"
        assert sentences(said) == [said]
        assert [one.text for one in extract_turns([Turn("user", said)])] == [said]
        assert distil(said, max_bytes=500).fact == said
        assert [fact.text for fact in read_note(f"# Note\n- [x] {said}\n- other")] == [said]


def test_a_line_may_begin_with_them():
    for text in UNALTERED:
        assert " ".join(sentences(text)).replace(" ", "") == text.replace(" ", "")


def test_bold_marks_around_words_and_what_is_struck_out_are_removed():
    for marked, text in MARKED:
        assert " ".join(" ".join(sentences(marked)).split()) == text


WORDS = """we decided use the port 8080 *args ** * */3 _a_ __x__ ~~ # - 1. 2) > | ` ``` src/**/*.py
 Ada prefers never, always. not: (*) [x] [a](b) <b> &lt; 'x*' I'm in \\*"""


@given(st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=14).map(" ".join))
def test_what_is_kept_is_part_of_what_was_said(said):
    text = "".join(said.split()).replace("**", "").replace("__", "")
    for observation in extract_turns([Turn("user", said)]):
        kept = "".join(observation.text.split()).replace("**", "").replace("__", "")
        assert kept.casefold() in text.casefold()
