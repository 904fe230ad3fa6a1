"""The problems of the daemon, as status shows them."""

from __future__ import annotations

from thermocline.daemon.runtime.problems import Problems


def test_one_cause_in_eighty_agents_is_one_line():
    problems = Problems()
    problems.report("replica_away", "/llm", "something else")
    for number in range(80):
        problems.report("retired", f"a{number}", f"'a{number}' has stopped", "take it in again")
    other, shown = problems.current()
    assert other.message == "something else"
    assert shown.message == "'a0' has stopped (and 79 more like it)"
    assert shown.hint == "take it in again"
    assert [each.message for each in problems.current(lambda agent: agent == "a7")][1:] == [
        "'a7' has stopped"
    ]
