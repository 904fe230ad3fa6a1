"""The declaration of an operation: what its function takes is what a request has."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from thermocline.daemon.operations import OPERATIONS, Operation
from thermocline.daemon.schemas.common import Input


class Wanted(Input):
    name: str


async def takes_fields(scope: Any, key: str, name: str, limit: int = 3) -> None:
    """Do it."""


async def takes_a_field_and_a_struct(scope: Any, body: Wanted, limit: int = 3) -> None:
    """Do it."""


async def takes_what_may_be_left_out(scope: Any, limit: int = 3) -> None:
    """Do it."""


def fields(struct: Any) -> dict[str, bool]:
    """The fields of a struct, and whether each is required."""
    return {field.encode_name: field.required for field in msgspec.structs.fields(struct)}


@pytest.mark.parametrize(("method", "spread"), [
    ("GET", "query"), ("DELETE", "query"), ("POST", "body"), ("PUT", "body"),
])  # fmt: skip
def test_the_fields_of_a_request_are_the_parameters_of_the_function(method, spread):
    operation = Operation(method, "/api/things/{key}").done_by(takes_fields)
    assert operation.parts == {"key": str}
    assert operation.spread == spread
    assert fields(getattr(operation, spread)) == {"name": True, "limit": False}
    assert operation.needs_body == (spread == "body")
    assert {operation.query, operation.body} - {getattr(operation, spread)} == {None}


def test_fields_beside_a_body_are_the_query():
    operation = Operation("POST", "/api/things").done_by(takes_a_field_and_a_struct)
    assert (operation.body, operation.needs_body, operation.spread) == (Wanted, True, "query")
    assert fields(operation.query) == {"limit": False}


def test_a_body_may_be_left_out_if_all_of_its_fields_may():
    operation = Operation("POST", "/api/things").done_by(takes_what_may_be_left_out)
    assert operation.body is not None
    assert not operation.needs_body


def test_an_unknown_field_is_refused():
    operation = Operation("POST", "/api/things/{key}").done_by(takes_fields)
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"name": "a", "other": 1}, operation.body)


def test_every_body_has_a_name_of_its_own():
    bodies = {operation.body for operation in OPERATIONS if isinstance(operation.body, type)}
    names = Counter(body.__name__ for body in bodies)
    assert [name for name, number in names.items() if number > 1] == []
