"""Requests that schemathesis draws from the API's own description get answers that the description allows."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from itertools import count
from typing import Any, Final

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")
if find_spec("schemathesis") is None:  # without an import, which each worker would make
    pytest.skip("needs schemathesis: pip install --group deploy", allow_module_level=True)

from hypothesis import HealthCheck, Phase, given, settings

from lessonbank.http.service.serving import Running

pytestmark = pytest.mark.full

EXAMPLES: Final = [2, pytest.param(15, marks=pytest.mark.release)]
WALKS: Final = [12, pytest.param(60, marks=pytest.mark.release)]
_ENDLESS: Final = "/v1/events"


@pytest.mark.parametrize("examples", EXAMPLES)
def test_every_operation_answers_as_its_description_says(server: Running, examples: int) -> None:
    """One check is left out: that what fits the description is taken. The bank refuses more than a schema can say,
    such as an id that nobody has or a person who is not the holder of the key."""
    import schemathesis
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    key = server.key("Ana", scope="", role="admin", rate=1_000_000)
    headers = {"Authorization": f"Bearer {key}", "Lessonbank-Scope": "acme"}
    operations = [
        found.ok() for found in schemathesis.openapi.from_url(f"{server.url}/v1/openapi.json").get_all_operations()
    ]
    drawn = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for operation in operations:
        if operation.path == _ENDLESS:
            continue

        def answers(case: Any) -> None:
            case.call_and_validate(headers=headers, excluded_checks=[positive_data_acceptance])

        drawn(given(case=operation.as_strategy())(answers))()
    assert len(operations) > 60


@pytest.mark.parametrize("walks", WALKS)
def test_walks_along_the_links_of_the_description_are_answered_as_it_says(server: Running, walks: int) -> None:
    """Such as: add a lesson, get it, edit it, retire it; or: recall, then learn from it."""
    import schemathesis
    from hypothesis.stateful import run_state_machine_as_test
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    key = server.key("Ana", scope="", role="admin", rate=1_000_000)
    scopes = count()  # a walk that is made again finds what it found: nothing
    every = schemathesis.openapi.from_url(f"{server.url}/v1/openapi.json")
    links = {
        (one["operationId"], link["operationId"])
        for path in every.raw_schema["paths"].values()
        for one in path.values()
        for link in one["responses"].get("200", {}).get("links", {}).values()
    }
    linked = {name for link in links for name in link}
    schema = every.include(operation_id=sorted(linked))
    # Only what fits: a link puts a good body in the place of a bad one, which schemathesis still expects to be refused.
    schema.config.generation.update(modes=[schemathesis.GenerationMode.POSITIVE])
    done = Counter[str]()

    class Walk(schema.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            super().setup()
            scope = f"acme%2Fwalk-{next(scopes)}"
            self.headers = {"Authorization": f"Bearer {key}", "Lessonbank-Scope": scope}

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": {**(case.headers or {}), **self.headers}}

        def validate_response(self, response: Any, case: Any, **more: Any) -> None:
            if response.status_code < 300:
                done[case.operation.definition.raw["operationId"]] += 1
            done["calls"] += 1
            case.validate_response(response, excluded_checks=[positive_data_acceptance], headers=self.headers)

    run_state_machine_as_test(
        Walk,
        settings=settings(
            max_examples=walks,
            stateful_step_count=8,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"{done.pop('calls')} calls along {len(links)} links of {len(linked)} operations; taken: {dict(done)}")
    assert {"recalls_get", "recalls_explain", "lessons_get", "runs_get"} & done.keys(), "links lead to what is there"
