"""Requests that schemathesis draws from the API's own description get answers that the description allows."""

from __future__ import annotations

from typing import Any, Final

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")
pytest.importorskip("schemathesis", reason="pip install schemathesis")

from hypothesis import HealthCheck, Phase, given, settings

from lessonbank.service.serving import Running

pytestmark = pytest.mark.release
EXAMPLES: Final = 15
_ENDLESS: Final = "/v1/events"


def test_every_operation_answers_as_its_description_says(server: Running) -> None:
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
        max_examples=EXAMPLES,
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
