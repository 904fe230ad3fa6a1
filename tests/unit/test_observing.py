from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thermocline.daemon.memory.episodes import MAX_TAGS, summarise_episode
from thermocline.daemon.memory.mentions import MentionedRelation, mentions
from thermocline.daemon.memory.observing import IMPORTANCE, Turn, extract_turns

TURNS = st.lists(
    st.builds(
        Turn,
        role=st.sampled_from(["user", "assistant", "system", "tool", "Ada", ""]),
        text=st.one_of(
            st.text(max_size=80),
            st.sampled_from(
                ["I prefer tea to coffee in the morning", "That fixed it, thanks!", "/help",
                 "We decided to use Postgres for billing", "Is it done?", "Yes.", "\ud800 x"]
            ),
        ),
        actor=st.sampled_from(["", "Ada", "Bo Li", "\x00"]),
        position=st.integers(0, 9),
    ),
    max_size=8,
)  # fmt: skip


def observed(*turns: Turn) -> list[str]:
    return [one.text for one in extract_turns(turns)]


@pytest.mark.parametrize(
    ("text", "event", "kind", "type_"),
    [
        ("We decided to use Postgres for billing", "decision", "decision", "semantic"),
        ("I prefer tea to coffee in the morning", "preference_learned", "preference", "semantic"),
        ("My daughter goes to school in Porto", "fact_stored", "fact", "semantic"),
        ("The upload fails with error 413 on big files", "error_recovery", "error_pattern",
         "procedural"),
        ("The fix was to raise the limit in nginx.conf", "task_solution", "solution",
         "procedural"),
        ("No, the port of the service is 8081, not 8080", "correction", "correction", "semantic"),
    ],
)  # fmt: skip
def test_a_statement_becomes_an_observation_of_its_kind(text, event, kind, type_):
    (one,) = extract_turns([Turn("user", text)])
    assert (one.event, one.tags[0], one.type) == (event, kind, type_)
    assert one.importance == IMPORTANCE[kind]


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of France?",
        "can you tell me where the logs are",
        "Hello there, good morning!",
        "Thanks a lot for all of it!",
        "/remember that I prefer tea to coffee",
        "Please write a poem about the sea",
        "Maybe we should look at the logs some time",
        "I like tea",
        "",
    ],
)
def test_questions_greetings_orders_doubts_and_short_texts_are_not_observed(text):
    assert observed(Turn("user", text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "I'm so happy and grateful for all of you",
        "I'll keep that in mind for the next time",
        "The view from up there was so beautiful",
        "Remind me to call the dentist tomorrow",
        "| 1000 | 31 ms | 410 ms | 12 MB | 4 |",
    ],
)
def test_passing_moods_and_what_is_only_wanted_now_are_not_observed(text):
    assert observed(Turn("user", text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Use British spelling in everything you write",
        "add oat milk, Lea is lactose intolerant",
        "remove it and use an in-process LRU instead",
        "Our house number is 17b since the renovation",
        "Das Backup ist heute Nacht fehlgeschlagen",
        "Guess what - I got a puppy two weeks ago",
        "Kubernetes is overkill for the three of us",
        "port 8443 is taken by the unifi controller",
    ],
)
def test_rules_facts_and_news_are_observed_however_they_are_worded(text):
    assert observed(Turn("user", text)) == [text]


def test_a_path_at_the_beginning_is_no_command():
    assert observed(Turn("user", "/var/log/app is rotated weekly, we decided that in May")) != []
    assert observed(Turn("user", "/compact we decided to use Postgres for billing")) == []


def test_an_answer_to_an_offer_is_not_observed():
    assert (
        observed(
            Turn("assistant", "How can I help you today, my friend?"),
            Turn("user", "just bored lol"),
        )
        == []
    )


def test_agents_are_believed_what_they_did_themselves():
    (one,) = extract_turns(
        [Turn("assistant", "I raised the pool from 10 to 50. I'll keep to that.")]
    )
    assert (one.event, one.text) == ("task_completed", "I raised the pool from 10 to 50")


@pytest.mark.parametrize("found", ["works", "yep that was it, builds now", "jetzt geht es wieder"])
def test_advice_that_works_is_a_solution_with_its_problem(found):
    *_, solution = extract_turns(
        [
            Turn("user", "The build hangs at the link step"),
            Turn("assistant", "Link it with `mold`. Let me know if it helps."),
            Turn("user", found),
        ]
    )
    assert solution.text == "The build hangs at the link step → Link it with `mold`"
    assert solution.event == "task_solution"


def test_an_error_status_is_told_from_a_sum():
    (sum_of_money,) = extract_turns([Turn("user", "Our venue wants a deposit of 500 by Friday")])
    assert sum_of_money.event == "fact_stored"
    (status,) = extract_turns([Turn("user", "The upload page returns 502 since the release")])
    assert status.event == "error_recovery"


def test_the_first_person_becomes_the_actor():
    (one,) = extract_turns([Turn("user", "I prefer dark mode and tabs", "Ada", position=3, at=9.0)])
    assert one.text == "Ada prefers dark mode and tabs"
    assert (one.subject, one.actor, one.position, one.at) == ("Ada", "Ada", 3, 9.0)


def test_where_the_grammar_is_not_safe_the_sentence_stays_and_the_actor_is_set():
    (one,) = extract_turns([Turn("user", "I like tea and we hate your coffee", "Ada")])
    assert one.text == "I like tea and we hate your coffee"
    assert one.actor == "Ada"


def test_agents_are_believed_what_they_report_and_nothing_else():
    assert observed(Turn("assistant", "I prefer short answers and dark mode")) == []
    assert observed(Turn("assistant", "I can help you with the deployment, let me know")) == []
    (one,) = extract_turns([Turn("assistant", "Deployed the billing service on port 8081.")])
    assert (one.event, one.type) == ("task_completed", "episodic")
    assert observed(Turn("system", "We decided to use Postgres for billing")) == []
    assert observed(Turn("tool", "The build failed with an error in main.c")) == []


def test_a_short_answer_is_observed_with_its_question():
    assert observed(
        Turn("assistant", "What is your favorite editor?"), Turn("user", "Vim with few plugins")
    ) == ["What is your favorite editor? Vim with few plugins"]


def test_what_a_user_finds_to_work_is_a_solution_and_keeps_its_problem():
    turns = [
        Turn("user", "The deploy fails with a permission error"),
        Turn("assistant", "Try `chown -R www-data /var/www`.", position=1),
        Turn("user", "That fixed it, thanks!"),
    ]
    problem, solution = extract_turns(turns)
    assert problem.tags[0] == "error_pattern"
    assert solution.tags[0] == "solution"
    assert solution.text == f"{problem.text} → Try `chown -R www-data /var/www`"
    assert solution.position == 1


def test_repetitions_are_observed_once_and_corrected_statements_not_at_all():
    assert observed(
        Turn("user", "The gate code is 4711."),
        Turn("user", "We decided to use Postgres for billing."),
        Turn("user", "we decided to use Postgres for billing"),
        Turn("user", "Sorry, the gate code is 4712, not 4711."),
    ) == ["We decided to use Postgres for billing", "The gate code is 4712, not 4711"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I moved to New York last year",
         {("Ada", "person"): [("moved_to", "New York")], ("New York", "place"): []}),
        ("Ada's sister Zoe works at Siemens and uses Rust",
         {("Ada", "person"): [("sister", "Zoe")],
          ("Zoe", "person"): [("works_at", "Siemens"), ("uses", "Rust")],
          ("Siemens", "organization"): [], ("Rust", "technology"): []}),
        ("We decided to use Postgres for project Heron",
         {("Ada", "person"): [("uses", "Postgres")], ("Postgres", "technology"): [],
          ("Heron", "project"): []}),
        ("My dog is called Rex", {("Rex", "concept"): [], ("Ada", "person"): [("dog", "Rex")]}),
        ("it is swift to go by node", {}),
    ],
)  # fmt: skip
def test_entities_and_their_relations_are_found(text, found):
    assert {(one.name, one.type): list(one.relations) for one in mentions(text, "Ada")} == {
        key: [MentionedRelation(*pair) for pair in pairs] for key, pairs in found.items()
    }


def test_an_unknown_speaker_has_no_relations():
    assert all(not one.relations for one in mentions("I moved to Berlin and use Docker"))


@settings(max_examples=100, deadline=None)
@given(TURNS)
def test_anything_can_be_observed_and_summed_up(turns):
    for one in extract_turns(turns):
        assert len(one.text.encode()) >= 20
        assert one.importance in IMPORTANCE.values()
        assert one.tags[0] in IMPORTANCE
    episode = summarise_episode(turns)
    assert len(episode.tags) <= MAX_TAGS
    assert episode.outcome in {"resolved", "unresolved", "informational"}


def test_observing_what_was_observed_adds_nothing():
    turns = [Turn("user", "I moved to Lisbon in 2021. We decided to use Postgres.", "Ada")]
    first = observed(*turns)
    assert observed(*(Turn("user", text, "Ada") for text in first)) == first


@pytest.mark.parametrize(
    ("turns", "outcome", "words"),
    [
        (
            [
                Turn("user", "The deploy fails with a permission error on /var/www"),
                Turn("assistant", "Try `chown -R www-data /var/www`."),
                Turn("user", "That fixed it, thanks!"),
            ],
            "resolved",
            ("permission error", "chown"),
        ),
        (
            [
                Turn("user", "Can you fix the login page?"),
                Turn("assistant", "The login page is not fixed yet, the tests still fail."),
            ],
            "unresolved",
            ("asked: Can you fix the login page?", "not fixed yet"),
        ),
        (
            [Turn("user", "What's the capital of France?"), Turn("assistant", "Paris.")],
            "informational",
            ("capital of France", "Paris"),
        ),
        (
            [
                Turn("user", "can you rename getUser to fetchUser?"),
                Turn("assistant", "Done, 14 files changed."),
                Turn("user", "please never commit to main, always open a PR"),
            ],
            "resolved",
            ("asked: can you rename getUser", "never commit to main"),
        ),
        (
            [
                Turn("user", "the deploy hangs again. raised the timeout to 60 s and it works"),
                Turn("assistant", "Glad to hear it."),
            ],
            "resolved",
            ("the deploy hangs again. raised the timeout",),
        ),
        ([Turn("user", "hi"), Turn("assistant", "hello")], "informational", ()),
        ([], "informational", ()),
    ],
)
def test_an_episode_tells_what_was_wanted_and_how_it_ended(turns, outcome, words):
    episode = summarise_episode(turns)
    assert episode.outcome == outcome
    assert all(word in episode.summary for word in words)


def test_an_episode_has_three_to_five_tags_where_there_are_words_for_them():
    episode = summarise_episode(
        [
            Turn("user", "The backup of the photo archive fails on the NAS with error 28", "Ada"),
            Turn("assistant", "The disk was full; I deleted old snapshots and the backup works."),
        ]
    )
    assert 3 <= len(episode.tags) <= 5
    assert "backup" in episode.tags
    assert "ada" not in episode.tags
