import msgspec
from hypothesis import given
from hypothesis import strategies as st
from json_values import CONSTANTS, HUGE_SCALARS, json_values

from thermocline.daemon.importers.warm_file import parse
from thermocline.daemon.memory.records import Memory, Metadata
from thermocline.daemon.memory.scoring import DAY, Scoring, record

NOW = 1_800_000_000.0
FACT = {
    "id": "0123456789ab",
    "text": "Ada builds a boat",
    "category": "projects/boat",
    "importance": 0.8,
    "created_at": 1_770_000_000.5,
    "access_count": 2,
    "score": 0.7,
    "metadata": {"urls": ["https://b.example"], "commands": [], "paths": ["/srv/boat"]},
    "tier": "hot",
}


def only(fact, **options):
    parsed = parse([fact], NOW, **options)
    assert len(parsed.content) == 1, parsed
    return parsed.content[0], parsed.faults


def without(*names, **fields):
    return {name: value for name, value in FACT.items() if name not in names} | fields


def test_a_fact_of_evoclaw_is_read_whole():
    assert only(FACT) == (
        Memory(
            id="0123456789ab",
            text="Ada builds a boat",
            category="projects/boat",
            importance=0.8,
            created_at=1_770_000_000.5,
            updated_at=1_770_000_000.5,
            access_count=2,
            metadata=Metadata(urls=("https://b.example",), paths=("/srv/boat",)),
        ),
        (),
    )


def test_a_fact_of_the_first_version_gets_what_it_lacks():
    fact = {"id": "a1", "text": "see https://x.example/y", "timestamp": 1_700_000_000.25}
    assert only(fact) == (
        Memory(
            id="a1",
            text="see https://x.example/y",
            importance=0.5,
            created_at=1_700_000_000.25,
            updated_at=1_700_000_000.25,
            metadata=Metadata(urls=("https://x.example/y",)),
        ),
        (),
    )


def test_the_go_service_keeps_an_object_by_id():
    document = {
        "w1": {
            "id": "w1",
            "timestamp": "2026-02-11T08:00:00.123456789Z",
            "event_type": "conversation",
            "category": "people/ada",
            "content": {
                "fact": "Ada is relieved",
                "emotion": "relieved",
                "people": ["Ada"],
                "topics": None,
                "date": "2026-02-11",
                "outcome": "positive",
            },
            "importance": 0.7,
            "access_count": 3,
            "last_accessed": "2026-02-12T08:00:00Z",
            "created_at": "2026-02-11T10:00:00+02:00",
        },
        "w2": {
            "content": {"fact": "Tea at five", "topics": ["tea"], "actions": ["brew"]},
            "event_type": "manual",
            "created_at": 1_700_000_000,
            "last_accessed": "0001-01-01T00:00:00Z",
        },
        "_schema_version": "2.0",
    }
    parsed = parse(document, NOW)
    assert parsed.faults == ()
    assert parsed.content == (
        Memory(
            id="w1",
            text="Ada is relieved",
            type="episodic",
            event="conversation",
            outcome="positive",
            category="people/ada",
            importance=0.7,
            data={"emotion": "relieved", "people": ["Ada"], "date": "2026-02-11"},
            created_at=1_770_796_800,
            updated_at=1_770_796_800,
            last_accessed_at=1_770_883_200,
            access_count=3,
        ),
        Memory(
            id="w2",
            text="Tea at five",
            event="manual",
            data={"topics": ["tea"], "actions": ["brew"]},
            created_at=1_700_000_000,
            updated_at=1_700_000_000,
        ),
    )


def test_a_field_is_read_or_set_right_with_a_fault():
    for fields, name, value, fault in [
        ({"importance": None}, "importance", 0.5, None),
        (
            {"importance": 7},
            "importance",
            1.0,
            "[0].importance: expected a number from 0 to 1, got 7",
        ),
        ({"importance": -1}, "importance", 0.0, "[0].importance: expected a number"),
        ({"importance": "high"}, "importance", 0.5, "[0].importance: expected a number"),
        ({"importance": float("nan")}, "importance", 0.5, "[0].importance: expected a number"),
        ({"importance": True}, "importance", 0.5, "[0].importance: expected a number"),
        ({"access_count": 3.0}, "access_count", 3, None),
        ({"access_count": -3}, "access_count", 0, "[0].access_count: expected a whole number"),
        ({"access_count": 1.5}, "access_count", 0, "[0].access_count: expected a whole number"),
        ({"access_count": 2**63}, "access_count", 0, "[0].access_count: expected a whole number"),
        ({"created_at": 1_770_000_000}, "created_at", 1_770_000_000, None),
        ({"created_at": 1_770_000_000_500}, "created_at", 1_770_000_000.5, None),
        ({"created_at": "2026-02-11T08:00:00Z"}, "created_at", 1_770_796_800, None),
        ({"created_at": "soon"}, "created_at", NOW, "[0].created_at: expected a time, got text"),
        ({"created_at": -5}, "created_at", NOW, "[0].created_at: expected a time, got -5"),
        ({"created_at": 1e300, "timestamp": 9}, "created_at", 9, "[0].created_at: expected a time"),
        ({"category": "/a / b/"}, "category", "a/b", None),
        ({"category": None}, "category", "general", None),
        ({"category": ""}, "category", "general", None),
        ({"category": "../.."}, "category", "general", "filed under 'general'"),
        ({"category": 5}, "category", "general", "[0].category: expected text, got 5"),
        ({"category": "a/b/c/d/e/f"}, "category", "a/b/c/d", None),
        ({"category": "a/b/c/d/e/f"}, "original_category", "a/b/c/d/e/f", None),
        ({"metadata": None}, "metadata", Metadata(), None),
        ({"metadata": []}, "metadata", Metadata(), "[0].metadata: expected an object, got a list"),
        ({"metadata": {"urls": "x"}}, "metadata", Metadata(), "urls: expected a list, got text"),
        ({"metadata": {"urls": [1, "u"]}}, "metadata", Metadata(urls=("u",)), "urls[0]: expected"),
        ({"tags": ["a", "a", 3]}, "tags", ("a",), "[0].tags[2]: expected text, got 3"),
        ({"tags": ["x" * 65]}, "tags", (), "[0].tags: shorten"),
        ({"type": "gossip"}, "type", "semantic", "[0].type: expected analysis, conversation"),
        ({"source": "tele\0gram"}, "source", "", "[0].source: expected text"),
        ({"source": "cold"}, "source", "cold", None),
        ({"id": 17}, "id", "17", None),
        ({"data": "\ud800"}, "data", None, "[0].data: cannot be written as JSON"),
        ({"expires_at": 253_402_300_799}, "expires_at", 253_402_300_799, None),
        ({"archived_at": 5}, "archived_at", None, None),
    ]:
        memory, faults = only({**FACT, **fields})
        assert getattr(memory, name) == value
        if fault is None:
            assert faults == ()
        else:
            assert len(faults) == 1
            assert fault in faults[0]


def test_what_is_no_memory_is_named_and_the_others_are_read():
    for document, fault in [
        (None, "expected a list or an object, got null"),
        ("text", "expected a list or an object, got text"),
        ([17], "[0]: expected an object, got 17"),
        ({"a": []}, "'a': expected an object, got a list"),
        ([{"id": "a"}], "[0]: expected text, got null"),
        ([{"text": ["secret"]}], "[0]: expected text, got a list"),
        ([{"text": "  "}], "[0]: give 'text' some text: it is empty or blank"),
        ([{"text": "a\ud800"}], "[0]: fix 'text'"),
        ([{"text": "x" * 65_537}], "[0]: shorten 'text': it has 65537 bytes"),
    ]:
        parsed = parse(document, NOW)
        assert parsed.content == ()
        assert len(parsed.faults) == 1
        assert parsed.faults[0].startswith(fault)
        assert "secret" not in parsed.faults[0]
        if isinstance(document, list):
            assert len(parse([FACT, *document, without("id")], NOW).content) == 2


def test_a_missing_id_is_the_same_at_every_reading():
    for ident in [None, ""]:
        fact = without("created_at", id=ident)
        first, faults = only(fact)
        again = parse([{"text": "other"}, fact], NOW + DAY).content[1]
        assert faults == ()
        assert len(first.id) == 12
        assert first.id == again.id
        assert only({**fact, "created_at": 5})[0].id != first.id


def test_an_id_that_no_address_could_carry_is_replaced():
    for ident in ["a/b", "a b", "a\0", "\ud800", "x" * 129, ["a"], 1.5, True]:
        memory, faults = only({**FACT, "id": ident})
        assert len(memory.id) == 12
        assert faults == ("[0].id: cannot be used as an id; it got a new one",)


def test_two_texts_under_one_id_are_both_kept():
    facts = [FACT, {**FACT, "text": "Ada sells a boat"}, {**FACT, "text": "Ada sails a boat"}]
    parsed = parse(facts, NOW)
    assert [memory.text[4:9] for memory in parsed.content] == ["build", "sells", "sails"]
    assert len({memory.id for memory in parsed.content}) == 3
    assert parsed.content[0].id == FACT["id"]
    assert len(parsed.faults) == 2
    assert parsed == parse(facts, NOW + DAY)


TEXT = st.text(
    max_size=30, alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0")
)
NAME = st.text("abz-", min_size=1, max_size=8)
TIME = st.floats(0, 253_402_300_799)
LABELS = st.lists(NAME, max_size=3, unique=True).map(tuple)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
JSON = json_values(CONSTANTS | NUMBERS | TEXT, TEXT, leaves=8)
MEMORIES = st.builds(
    Memory,
    id=NAME,
    text=TEXT.filter(str.strip),
    type=st.sampled_from(["semantic", "episodic", "procedural"]),
    event=NAME,
    subject=TEXT,
    outcome=TEXT,
    category=st.sampled_from(["general", "root", "a/b/c/d", "Ünï/cödé"]),
    original_category=st.sampled_from(["", "a/b/c/d/e"]),
    tags=LABELS,
    importance=st.floats(0, 1),
    source=TEXT,
    actor=TEXT,
    group=TEXT,
    position=st.none() | st.integers(0, 2**63 - 1),
    metadata=st.builds(Metadata, urls=LABELS, commands=LABELS, paths=LABELS),
    data=JSON.filter(lambda data: data not in (float("inf"), float("-inf"))),
    created_at=TIME,
    updated_at=TIME,
    last_accessed_at=st.none() | TIME,
    access_count=st.integers(0, 2**63 - 1),
    expires_at=st.none() | TIME,
    merged_into=st.none() | NAME,
    superseded_by=st.none() | NAME,
    archived_at=st.none() | TIME,
    writer=TEXT,
)


@given(st.lists(MEMORIES, max_size=4, unique_by=lambda memory: memory.id), st.booleans())
def test_what_was_written_is_read_back_the_same(memories, is_pretty):
    written = msgspec.json.encode([record(memory, NOW, Scoring()) for memory in memories])
    written = msgspec.json.format(written, indent=2) if is_pretty else written
    parsed = parse(msgspec.json.decode(written), NOW + DAY)
    plain = [
        msgspec.structs.replace(
            memory,
            archived_at=None,
            data=msgspec.json.decode(msgspec.json.encode(memory.data)),
        )
        for memory in memories
    ]
    assert parsed.faults == ()
    assert list(parsed.content) == plain


ODD = ["2026-02-11T08:00:00Z", "0001-01-01T00:00:00Z", "a/b/c/d/e", "\ud800", "\0"]
KEYS = [*Memory.__struct_fields__, "timestamp", "content", "fact", "last_accessed"]
ANYTHING = json_values(
    HUGE_SCALARS | st.sampled_from(ODD),
    st.sampled_from(KEYS) | st.text(max_size=4),
    longest=8,
    leaves=30,
)


@given(ANYTHING | st.lists(ANYTHING.map(lambda value: {"text": "x", "metadata": value} | FACT)))
def test_no_json_can_make_it_fail_and_what_it_reads_can_be_stored(document):
    parsed = parse(document, NOW)
    ids = [memory.id for memory in parsed.content]
    assert len(ids) == len(set(ids))
    for memory in parsed.content:
        assert msgspec.json.decode(msgspec.json.encode(memory), type=Memory).id == memory.id
        assert 0 <= memory.importance <= 1
        assert 0 <= memory.created_at < 253_402_300_800
        assert memory.access_count < 2**63
    "\n".join(parsed.faults).encode()


@given(st.sampled_from([*FACT, "data", "tags", "type", "expires_at"]), ANYTHING)
def test_one_bad_field_never_costs_the_memory_unless_it_is_the_text(name, value):
    parsed = parse([{**FACT, name: value}], NOW)
    assert len(parsed.content) == 1 or name == "text"
