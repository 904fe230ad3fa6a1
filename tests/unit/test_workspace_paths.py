"""Which files of a workspace are a memory's, and the names of their copies."""

from thermocline.daemon.memory.agent_files import belongs, copy_path


def test_a_text_below_the_folder_belongs_to_the_memory():
    for path in [
        "memory/2026-03-01.md", "memory/skills/tea/SKILL.MD", "memory/episodes.jsonl",
        "memory/ça et là/Tagebuch.markdown", "memory/x.txt",
    ]:  # fmt: skip
        assert belongs(path)


def test_what_is_none_of_the_memorys_does_not():
    for path in [
        "memory", "memory/", "note.md", "MEMORY.md", "/memory/note.md", "memory/../note.md",
        "memory/./note.md", "memory//note.md", "memory/.hidden.md", "memory/.git/note.md",
        "memory/picture.png", "memory/warm-memory.json", "memory/turso-credentials.json",
        "memory/no ending", "memory/line\nbreak.md", "memory/nul\0.md",
        "memory/" + "x" * 260 + ".md", "memory/" + "x/" * 600 + "y.md", "memory/\udcff.md",
    ]:  # fmt: skip
        assert not belongs(path)


def test_the_name_of_a_copy_tells_whose_it_is_and_is_always_usable():
    assert copy_path("memory/a/note.md", "pi-1", "0a1b") == "memory/a/note.conflict-pi-1-0a1b.md"
    assert belongs(copy_path("memory/" + "ü" * 126 + ".md", "../evil\0" * 9, "0a1b"))
    assert belongs(copy_path("memory/" + "d/" * 490 + "note.md", "0123456789abcdef", "0a1b"))
