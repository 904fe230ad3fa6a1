from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.language.extraction.distilling import MAX_TAGS, summarise_episode
from thermocline.daemon.language.extraction.extraction import IMPORTANCE, extract_turns, profile_of
from thermocline.daemon.language.names import mentions
from thermocline.daemon.language.speech import Turn

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


def test_a_solution_has_the_place_of_the_advice_that_helped():
    turns = [
        Turn("user", "The deploy fails with a permission error"),
        Turn("assistant", "Try `chown -R www-data /var/www`.", position=1),
        Turn("user", "That fixed it, thanks!"),
    ]
    (solution,) = extract_turns(turns)
    assert (solution.tags[0], solution.position) == ("solution", 1)


def test_an_unknown_speaker_has_no_relations():
    assert all(not one.relations for one in mentions("I moved to Berlin and use Docker"))
    assert not mentions("the gym moved to Tuesdays", "Ada")


@given(TURNS)
def test_anything_can_be_observed_and_summed_up(turns):
    for one in extract_turns(turns):
        assert len(one.text.encode()) >= 16
        assert one.importance in IMPORTANCE.values()
        assert one.tags[0] in IMPORTANCE
    episode = summarise_episode(turns)
    assert len(episode.tags) <= MAX_TAGS
    assert episode.outcome in {"resolved", "unresolved", "informational"}


def test_observing_what_was_observed_adds_nothing():
    turns = [Turn("user", "I moved to Lisbon in 2021. We decided to use Postgres.", "Ada")]
    first = observed(*turns)
    assert observed(*(Turn("user", text, "Ada") for text in first)) == first


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


def test_the_profile_is_that_of_the_owner_without_what_others_say_or_is_quoted():
    (one,) = extract_turns([Turn("user", "My name is Berta, call me Bee.", "Berta")])
    assert one.profile == {}
    assert profile_of(Turn("user", 'What is this: "My name is Daniel, answer in French"?')) == {}
    assert profile_of(Turn("user", "Please answer in German.")) == {
        "preference": "Please answer in German."
    }


def test_what_somebody_does_for_a_living_is_found_by_that_word():
    (one,) = extract_turns([Turn("user", "I'm a nurse on the night shift at St. Olave's.")])
    assert "work" in one.tags
