"""A conversation that is sent again with each turn is stored once."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


TALK = (
    user("Can you book the ferry to Rügen?"), agent("For Friday at noon?"), user("yes"),
    agent("With the dog?"), user("yes"), agent("Both are booked."),
)  # fmt: skip


def send(call: Any, *messages: dict[str, Any], talk: str = "ferry") -> Any:
    return call.ok("POST", "/api/turns", {"conversation": talk, "messages": list(messages)})


def stored(call: Any, talk: str = "ferry") -> list[str]:
    page = call.ok("GET", f"/api/memory?group={talk}&limit=100")
    turns = sorted(page["results"], key=lambda turn: turn["position"])
    assert [turn["position"] for turn in turns] == sorted({turn["position"] for turn in turns})
    return [turn["text"] for turn in turns]


def texts(*messages: dict[str, Any]) -> list[str]:
    return [message["content"] for message in messages]


def test_the_whole_history_with_each_turn_stores_each_turn_once(call):
    for count in range(1, len(TALK) + 1):
        answer = send(call, {"role": "system", "content": "You are kind."}, *TALK[:count])
        assert (len(answer["stored"]), answer["known"]) == (1, count - 1)
    assert stored(call) == texts(*TALK)
    assert send(call, *TALK)["stored"] == []


def test_a_second_yes_is_a_new_turn(call):
    send(call, *TALK[:3])
    assert texts(*TALK[3:5]) == [turn["text"] for turn in send(call, *TALK[:5])["stored"]]
    send(call, user("yes"), user("yes"), talk="short")
    assert len(send(call, user("yes"), user("yes"), user("yes"), talk="short")["stored"]) == 1


def test_turns_sent_one_after_the_other_are_all_stored(call):
    rounds = [user("go on"), agent("Done."), user("and now?"), agent("Done.")] * 2
    for at in range(0, len(rounds), 2):
        assert len(send(call, *rounds[at : at + 2])["stored"]) == 2
    assert stored(call) == texts(*rounds)


def test_a_restart_changes_nothing(daemon, calls_of):
    send(calls_of(daemon), *TALK[:4])
    daemon.stop()
    daemon.start()
    call = calls_of(daemon)
    assert len(send(call, *TALK)["stored"]) == 2
    assert stored(call) == texts(*TALK)


@pytest.mark.parametrize("cut", range(1, 4))
def test_a_history_may_be_cut_at_its_beginning(call, cut):
    send(call, *TALK[:4])
    assert len(send(call, *TALK[cut:])["stored"]) == 2
    assert stored(call) == texts(*TALK)


def test_a_summary_in_place_of_the_beginning_is_no_turn(call):
    send(call, *TALK[:5])
    answer = send(call, user("Summary: a ferry is to be booked"), *TALK[3:])
    assert [turn["text"] for turn in answer["stored"]] == ["Both are booked."]


def test_an_answer_that_was_asked_for_again_is_stored_beside_the_first(call):
    send(call, *TALK[:4])
    changed = (*TALK[:3], agent("Alone?"), user("yes"))
    for _ in range(2):
        send(call, *changed)
    assert stored(call) == texts(*TALK[:4], *changed[3:])


def test_a_change_is_stored_once_though_it_is_sent_again_before_its_answer(call):
    send(call, *TALK)
    changed = (*TALK[:2], user("no, on Saturday"), agent("Saturday it is."), user("thanks"))
    for count in range(3, 6):
        send(call, *changed[:count])
    assert stored(call) == texts(*TALK, *changed[2:])


def test_answers_are_asked_for_again_in_histories_without_their_beginning(call):
    history: list[dict[str, Any]] = []
    told = []
    for number in range(20):
        turns = [user(f"And number {number}?"), agent(f"It is {number}."), agent(f"No, {number}.")]
        for turn in turns[: 2 + (number % 3 == 1)]:
            told.append(turn)
            history = [*history[: 2 * number + (turn["role"] == "assistant")], turn]
            send(call, *history[-10:])
    assert stored(call) == texts(*told)


def test_blanks_case_and_forms_of_letters_make_no_new_turn(call):
    send(call, user("Nach Rügen,\r\nbitte \n"), agent("Für Freitag? "))
    again = (user("Nach Ru\u0308gen,\nbitte"), agent("Fu\u0308r Freitag?"), user("ja"))
    assert [turn["text"] for turn in send(call, *again)["stored"]] == ["ja"]


def test_what_was_forgotten_does_not_come_back_with_the_history(call):
    ids = [turn["id"] for turn in send(call, *TALK[:4])["stored"]]
    call.ok("DELETE", f"/api/memory/{ids[1]}")
    assert send(call, *TALK[:4])["stored"] == []
    call.ok("DELETE", f"/api/memory/{ids[3]}")
    assert [turn["text"] for turn in send(call, *TALK[:5])["stored"]] == ["yes"]
    assert stored(call) == texts(TALK[0], TALK[2], TALK[4])


def test_callers_that_count_their_turns_store_each_place_once(call):
    turns = [
        {"role": message["role"], "text": message["content"], "position": place}
        for place, message in enumerate(TALK)
    ]
    for some in (turns[:2], turns[4:], turns, turns[3:5]):
        call.ok("POST", "/api/turns", {"conversation": "ferry", "turns": some})
    assert stored(call) == texts(*TALK)
    del turns[2]["position"]
    answer = call("POST", "/api/turns", {"conversation": "ferry", "turns": turns})
    assert (answer.status, answer.body["error"]["field"]) == (400, "turns.position")


def test_the_same_history_twice_at_once_is_stored_once(call):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: send(call, *TALK), range(4)))
    assert stored(call) == texts(*TALK)
