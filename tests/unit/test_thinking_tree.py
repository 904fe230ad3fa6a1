"""The tree as a model sees it, and what is made of what it says."""

from __future__ import annotations

from scripted_model import ScriptedModel

from thermocline.daemon.llm.model import read_prompts
from thermocline.daemon.memory.tree_nodes import NamedCategory, Node, prompt, trace_of
from thermocline.daemon.tasks.model_or_rules import AskOptions, ModelOrRules
from thermocline.daemon.tasks.tree_tasks import chosen, search_tree

TREE = {
    "people": Node("People"),
    "people/ana": Node("Ana, who likes tea", 3, 1, 50.0),
    "projects/Boat": Node("The boat"),
}
ASKED = AskOptions(model=True)


def test_only_categories_of_the_tree_above_the_threshold_are_kept_the_best_first():
    found = chosen(
        [
            NamedCategory("people", 0.31, " it  is\nabout\x00 her "),
            NamedCategory("/root/people/ana/", 7.0), NamedCategory("people/ana", 0.4, "again"),
            NamedCategory("PROJECTS/boat", 0.9), NamedCategory("people/bob", 1.0),
            NamedCategory("projects", 0.9), NamedCategory("people", 0.3),
            NamedCategory("people", float("nan")),
        ],
        TREE,
    )  # fmt: skip
    assert [(one.path, one.relevance) for one in found] == [
        ("people/ana", 1.0),
        ("projects/Boat", 0.9),
        ("people", 0.31),
    ]
    assert found[-1].reason == "it is about her"
    assert trace_of(found[0].path) == ("root", "people", "people/ana")


def test_a_name_without_its_path_will_do_where_only_one_category_has_it():
    tree = {**TREE, "projects/ana": Node("Ana, the ship")}
    found = chosen(
        [NamedCategory("boat", 0.9), NamedCategory("Ana", 0.8), NamedCategory("projects/ana", 0.7)],
        tree,
    )
    assert [one.path for one in found] == ["projects/Boat", "projects/ana"]


async def test_the_tree_comes_before_the_question_and_is_marked_as_the_same():
    model = ScriptedModel({"tree": [[]]})
    await search_tree(ModelOrRules(model, read_prompts()), TREE, "what does Ana drink?", ASKED)
    tree, question = model.asked[0].parts
    assert (tree.stable, tree.quoted) == (True, True)
    assert (question.stable, question.quoted) == (False, True)
    assert question.text == "what does Ana drink?"
    assert tree.text == prompt(TREE)
