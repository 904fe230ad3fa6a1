from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.language.cues import outcome_of
from thermocline.daemon.language.extraction.distilling import (
    SUMMARY_BYTES,
    Distilled,
    core_summary,
    distil,
    facts,
    fitted,
    stages_of,
    topics_of,
)
from thermocline.daemon.language.names import people
from thermocline.daemon.language.sentences import shortened, utf8_bytes
from thermocline.daemon.language.vocabulary import not_topics

# What texts are made of: words of every kind, marks, labels, and anything at all.
MARKS = ("User: ", "\nAgent: ", "\n", ". ", "- [x] ", "but ", "because ", "?", "```\n", "\\", '"')
WORDS = ("not ", "we decided to use Postgres", "Ada", "fixed", "yet", "I prefer tea", "thanks! ")
OTHERS = (
    "`make all`", "https://a.example/b", "/srv/data/x", "我们决定", "です。", "🎉", "\ud800",
    "\x00",
)  # fmt: skip
PIECES = st.one_of(st.text(max_size=12), st.sampled_from(MARKS + WORDS + OTHERS))
TEXTS = st.lists(PIECES, max_size=30).map(" ".join)
SHORT_PIECES = "I we our me Maximiliana: User: Agent: am 'm have likes failed done works . , :"
SHORT_TEXTS = st.lists(st.sampled_from([*SHORT_PIECES.split(), "\n"]), max_size=9).map(" ".join)


# What EvoClaw's distiller answers is in the comments where this one answers better.


def test_a_fact_within_the_limit_is_not_cut_and_its_details_stay():
    # "I was worried about the vet visit but Biscuit reco", topics with "about", ongoing.
    text = "I was worried about the vet visit but Biscuit recovered and I'm relieved. Thanks!"
    told = distil(text)
    assert told.fact == "I was worried about the vet visit but Biscuit recovered and I'm relieved"
    assert told.emotion == "worried → grateful"
    assert told.outcome == "positive"
    assert told.people == ()
    assert told.topics == ("vet", "visit", "biscuit")
    assert distil(text, max_bytes=512).topics == ("vet", "visit", "biscuit", "recovered")


def test_of_a_fact_beyond_the_limit_the_clause_that_says_most_stays():
    text = (
        "Ada: I was worried about the migration because the old cluster failed twice, but Bob"
        " fixed the replication and everything works now."
    )
    told = distil(text)
    assert told.fact == "Bob fixed the replication and everything works now"
    assert (told.people, told.outcome) == (("Ada", "Bob"), "positive")
    assert told.topics
    assert distil(text, max_bytes=40).fact == "Bob fixed the replication…"


@given(TEXTS, st.integers(16, 600), st.floats(0, 1))
def test_the_limit_always_holds_and_references_always_survive(text, max_bytes, aggression):
    told = distil(text, aggression=aggression, max_bytes=max_bytes)
    assert utf8_bytes(told.fact) <= max_bytes
    assert len(core_summary(told).encode()) <= SUMMARY_BYTES
    assert fitted(told, max_bytes) == told
    for one in facts(text, aggression=aggression, max_bytes=max_bytes):
        assert 0 < utf8_bytes(one.fact) <= max_bytes
    everything = distil(text, max_bytes=10_000)
    assert (told.urls, told.commands, told.paths) == (
        everything.urls, everything.commands, everything.paths
    )  # fmt: skip


@given(TEXTS | SHORT_TEXTS, st.integers(16, 600), st.floats(0, 1))
def test_a_fact_is_never_longer_than_the_text(text, max_bytes, aggression):
    told = stages_of(text, distil(text, aggression=aggression, max_bytes=max_bytes))
    size = told.original_size
    assert max(told.core_size, utf8_bytes(told.distilled.fact)) <= size
    for one in facts(text, aggression=aggression, max_bytes=max_bytes):
        assert utf8_bytes(one.fact) <= size


@given(TEXTS)
def test_facts_lose_no_reference_of_a_text_whose_references_are_few(text):
    told = distil(text)
    found = facts(text)
    assert {url for one in found for url in one.urls} >= set(told.urls)
    assert {path for one in found for path in one.paths} >= set(told.paths)


@given(st.text(), st.integers(0, 60))
def test_a_shortened_text_fits_and_begins_as_the_whole_does(text, room):
    short = shortened(text, room)
    assert utf8_bytes(short) <= room or short == ""
    assert text.startswith(short.removesuffix("…")) or not text.isprintable()


def test_of_many_details_the_first_stay():
    whole = Distilled(
        fact="the new billing service was deployed to the second data centre",
        people=("Ada", "Bob", "Carol", "Dan"),
        topics=("billing", "service", "cluster", "latency"),
        actions=("deployed to the second data centre", "called the bank", "sent a mail"),
        outcome="positive",
    )
    assert fitted(whole, 2_000) == whole
    for max_bytes, fact in ((240, whole.fact), (40, "the new billing service was deployed…")):
        lean = fitted(whole, max_bytes)
        assert (lean.fact, lean.outcome) == (fact, "positive")
        assert (lean.people, lean.topics) == (whole.people[:3], whole.topics[:3])
        assert lean.actions == whole.actions[:2]


def test_statements_that_differ_in_a_number_or_a_denial_are_no_repetitions():
    text = "The port of the service is 8080. The port of the service is 8081. It is not fixed."
    assert len(facts(text, aggression=0.3)) >= 2


def test_a_reference_in_no_statement_goes_with_the_best_fact():
    text = "We decided to buy it.\n\n```\ngit clone https://git.example.com/x.git\n```\n"
    (fact,) = facts(text)
    assert fact.urls == ("https://git.example.com/x.git",)
    assert facts("https://only.example.com/link")[0].urls == ("https://only.example.com/link",)


def test_the_last_statement_that_tells_an_outcome_decides_and_promises_count_least():
    assert outcome_of(["It failed", "I fixed it", "It is nice"]) == "positive"
    assert outcome_of(["I fixed it", "We need to tell Ada"]) == "positive"
    assert outcome_of(["It is nice", "We need to tell Ada"]) == "pending"
    assert distil("User: is it fixed?\nAgent: The failure is still there.").outcome == "negative"


def test_a_known_person_is_found_whatever_the_name():
    assert people("Tell Xylo about it") == ()
    assert people("Tell Xylo about it", known=("Xylo",)) == ("Xylo",)


@given(TEXTS)
def test_topics_are_content_words_in_lower_case(text):
    for topic in topics_of(text, ""):
        assert topic == topic.lower()
        assert topic not in not_topics()


def test_topics_come_from_any_script_and_not_from_references():
    for text, topics in [
        ("The tests of the GPU server fail, a test on the server at https://a.example/gpuless",
         {"test", "tests", "gpu", "server", "fail"}),
        ("我们决定在东京使用数据库", {"东京", "数据库"}),
        ("東京で会議を開く", {"東京", "会議"}),
        ("데이터베이스를 사용", {"데이터베이스", "사용"}),
        ("and then it was 42 of them", set()),
    ]:  # fmt: skip
        assert set(topics_of(text, "")) <= topics
        assert bool(topics_of(text, "")) == bool(topics)


def test_a_long_text_of_anything_is_read_in_good_time():
    for piece in ["a", "Ada: I ", "**a ", "`", "は。", "not "]:
        text = piece * (20_000 // len(piece))
        assert utf8_bytes(distil(text).fact) <= 100
        facts(text)
