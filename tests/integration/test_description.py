"""The daemon describes itself: validly, and every call that fits is answered as described."""

import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from daemon_process import Daemon
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

pytestmark = pytest.mark.fuzz
EXAMPLES = 30
MISSING = "what makes up calls is not installed: make fuzz"
# They have no end.
ENDLESS = {"/api/events"}
# What holds for all calls, as it is told and as it is described.
EVERYWHERE = {r"got a number": "without a fraction", r"NUL character": "without NUL"}


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon of its own: anything is sent to it."""
    pytest.importorskip("schemathesis", reason=MISSING)
    daemon = Daemon(tmp_path_factory.mktemp("fuzzed"), "--set", "limits.max_batch=50").start()
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def session(fuzzed: Daemon) -> Any:
    """Requests over the daemon's socket."""
    from requests import Session  # noqa: PLC0415 - here and below: not there without `make fuzz`
    from requests.adapters import HTTPAdapter  # noqa: PLC0415
    from urllib3.connection import HTTPConnection  # noqa: PLC0415
    from urllib3.connectionpool import HTTPConnectionPool  # noqa: PLC0415

    class Connection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connected.settimeout(60)
            connected.connect(str(fuzzed.socket))
            return connected

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
            super().init_poolmanager(*args, **kwargs)
            self.poolmanager.pool_classes_by_scheme = {"http": Pool}

    session = Session()
    session.trust_env = False
    session.mount("http://", Adapter())
    return session


@pytest.fixture(scope="module")
def description(session: Any) -> Any:
    return session.get("http://daemon/api/openapi.json").json()


def test_the_description_is_valid_openapi(description):
    from openapi_spec_validator import validate  # noqa: PLC0415

    validate(description)


@pytest.fixture(scope="module", autouse=True)
def _remembered(session: Any) -> None:
    """Something to find, to change and to forget."""
    for number in range(20):
        text = f"Ana drinks tea number {number} on Friday at https://tea.example/{number}"
        new = {"text": text, "category": f"people/ana{number % 3}", "tags": ["tea"]}
        assert session.post("http://daemon/api/memory", json=new).status_code == 201
    assert session.put("http://daemon/api/kv/city", json={"value": "Lisbon"}).status_code == 200
    lesson = {"text": "water boils at 100 degrees"}
    assert session.put("http://daemon/api/hot/lesson", json=lesson).status_code == 200


@pytest.mark.parametrize("fits", [True, False], ids=["calls that fit", "calls that do not fit"])
def test_every_call_is_answered_as_the_description_says(session, description, *, fits):
    import schemathesis  # noqa: PLC0415
    from schemathesis import GenerationMode  # noqa: PLC0415

    mode = GenerationMode.POSITIVE if fits else GenerationMode.NEGATIVE
    faults: list[str] = []
    for found in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = found.ok()
        if operation.path in ENDLESS:
            continue
        try:
            _holds(operation, mode, session, description)
        except Unsatisfiable:
            assert not fits, operation.label  # It takes nothing that could be wrong.
        except Exception as error:  # noqa: BLE001 - all are told together
            faults.append(f"{operation.label}: {error!r:.1500}")
    assert not faults, "\n\n".join(faults)


def _holds(operation: Any, mode: Any, session: Any, description: Any) -> None:
    from schemathesis import GenerationMode  # noqa: PLC0415
    from schemathesis.specs.openapi import checks  # noqa: PLC0415

    excluded = [checks.positive_data_acceptance, checks.negative_data_rejection]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def answered(case: Any) -> None:
        response = case.call(base_url="http://daemon", session=session, timeout=60)
        # No 5xx, and no status, media type or body that is not described.
        case.validate_response(response, excluded_checks=excluded)
        if mode is GenerationMode.POSITIVE and response.status_code == 400:
            error = response.json()["error"]
            assert _is_described(error, operation, description), error

    answered()


def _is_described(error: Any, operation: Any, description: Any) -> bool:
    """Whether the limit that a call was refused for is told where the call is described."""
    for told, described in EVERYWHERE.items():
        if re.search(told, error["message"]):
            return described in description["info"]["description"]
    field = re.sub(r"\[\d+\]", "", error.get("field", "")).rpartition(".")[2]
    schemas = description["components"]["schemas"]
    own = description["paths"][operation.path][operation.method.lower()]
    parameters = {one["name"]: one["schema"] for one in own["parameters"]}
    words = own["summary"] + own["description"]
    for name in _referenced(own.get("requestBody", {}), schemas):
        words += schemas[name].get("description", "")
        parameters |= schemas[name].get("properties", {})
    return f"`{field}`" in words or "description" in str(parameters.get(field))


def _referenced(part: Any, schemas: Any) -> set[str]:
    names = set(re.findall(r"#/components/schemas/(\w+)", str(part)))
    return names.union(*(_referenced(schemas[name], schemas) for name in names))
