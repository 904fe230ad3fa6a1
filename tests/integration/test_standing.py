"""Standing memories: recognised when they are stored, shown, and changed by hand."""

from typing import Any

RULE = "Never push on Fridays"


def listed(call: Any, standing: str) -> list[str]:
    page = call.ok("GET", f"/api/memory?standing={standing}")
    assert page["total"] == len(page["results"])
    return sorted(memory["text"] for memory in page["results"])


def test_a_standing_statement_is_recognised_and_shown_as_such(call):
    assert call.store(RULE)["standing"] is True
    assert call.store("I never saw that film")["standing"] is False
    assert call.store("Is my son allergic to nuts?")["standing"] is False
    texts = [{"text": "Our son can't have nuts"}, {"text": "The roof was mended in May"}]
    first, second = call.ok("POST", "/api/memory/batch", {"memories": texts})["results"]
    assert first["standing"] is True
    assert second["standing"] is False
    assert listed(call, "true") == [RULE, "Our son can't have nuts"]
    assert len(listed(call, "false")) == 3


def test_a_turn_of_a_conversation_is_not_standing(call):
    assert call.store(RULE, group="chat", position=3)["standing"] is False


def test_what_remember_observe_and_distil_keep_is_recognised(call):
    call.ok("POST", "/api/tools/remember", {"text": "Antworte immer kurz"})
    turn = {"role": "user", "text": "I'm allergic to penicillin, so no amoxicillin for me."}
    body = {"conversation": "c", "turns": [turn], "wait": True}
    assert call.ok("POST", "/api/observe", body)["stored"]
    shown = listed(call, "true")
    assert "Antworte immer kurz" in shown
    assert any("penicillin" in text for text in shown)


def test_it_is_set_by_hand_and_survives_a_new_text(call):
    given = call.store("The roof was mended in May", standing=True)
    refused = call.store(RULE, standing=False)
    assert given["standing"] is True
    assert refused["standing"] is False
    target = f"/api/memory/{given['id']}"
    assert call.ok("PUT", target, {"text": "The roof was mended in June"})["standing"] is True
    assert call.ok("PUT", target, {"standing": False})["standing"] is False
    # A text that changes its nature is read again, unless it was set by hand.
    ordinary = call.store("We push at noon")
    assert ordinary["standing"] is False
    changed = call.ok("PUT", f"/api/memory/{ordinary['id']}", {"text": "Never push at noon"})
    assert changed["standing"] is True
    kept = call.ok("PUT", f"/api/memory/{refused['id']}", {"text": "Never push on Sundays"})
    assert kept["standing"] is False


def test_undo_and_a_merge_keep_it(call):
    older, newer = call.store(RULE), call.store("Somebody pushed on Friday")
    call.ok("POST", f"/api/memory/{older['id']}/merge", {"into": newer["id"]})
    assert call.ok("GET", f"/api/memory/{newer['id']}")["standing"] is True
    call.ok("POST", f"/api/memory/{older['id']}/unmerge")
    assert call.ok("GET", f"/api/memory/{newer['id']}")["standing"] is False


def test_the_command_line_sets_shows_and_lists_it(shell):
    shell.out("store", "The roof was mended in May", "--standing")
    shell.out("store", RULE, "--no-standing")
    assert "roof" in shell.out("list", "--standing")
    assert RULE not in shell.out("list", "--standing")
    key = next(one["id"] for one in shell.json("list")["results"] if one["text"] == RULE)
    assert "standing" not in shell.out("get", key)
    shell.out("update", key, "--standing")
    assert ", standing" in shell.out("get", key)
    assert RULE in shell.out("list", "--standing")
    shell.out("update", key, "--no-standing")
    assert RULE not in shell.out("list", "--standing")


def test_what_is_imported_is_recognised(shell, tmp_path):
    page = tmp_path / "MEMORY.md"
    page.write_text("# Owner\n\n- I'm allergic to nuts\n- The roof was mended in May\n")
    shell.out("import", page)
    listed = shell.out("list", "--standing")
    assert "allergic to nuts" in listed
    assert "roof" not in listed


def test_the_command_says_that_a_memory_will_always_be_shown(shell):
    assert (
        shell.out("store", "nothing over 15 kilos, not even once")
        .rstrip()
        .endswith("in general; standing: in every context")
    )
    assert "standing" not in shell.out("store", "--no-standing", "nothing with nuts, ever")
    assert "standing" not in shell.out("store", "the roof was mended in May")


def test_a_dose_stands_in_five_languages_and_a_bus_line_does_not(call):
    doses = [
        "I take 50 mg of losartan every morning",
        "Ich nehme täglich L-Thyroxin 75",
        "Tomo 10 mg de enalapril por la noche",
        "Je prends 40 mg d'oméprazole",
        "我每天吃20毫克的阿托伐他汀",
    ]
    for text in doses:
        assert call.store(text)["standing"], text
    for text in ("I take the bus every morning", "Ich nehme täglich die Linie 75"):
        assert not call.store(text)["standing"], text


def test_nunca_with_an_order_stands(call):
    assert call.store("Nunca uses emojis")["standing"]
    assert not call.store("Nunca vas al gimnasio")["standing"]
