"""What every store must do: subclass it, say how to make one, and run it with pytest.

```python
import pytest
from lessonbank.testing import StoreContract

@pytest.mark.anyio                      # with an `anyio_backend` fixture, or any other way to run async tests
class TestMyStore(StoreContract):
    async def make(self):
        return await MyStore.open(...)  # fresh and empty each time; the contract closes it
```

A bank runs on it then. Every promise in the docstrings of `Records` and `Index` in `lessonbank.contracts.ports` has its
test here, and so have the functions of `lessonbank.contracts.store_calls`. A store that has a `Queue`, or `Care`, runs
`QueueContract` and `CareContract`, too. What only a store on disk promises (surviving a crash, other processes) is for
its own tests.
"""

from __future__ import annotations

from .store_care import CareTests
from .store_editing import EditingTests
from .store_history import HistoryTests
from .store_listing import ListingTests
from .store_purging import PurgingTests
from .store_queue import QueueTests
from .store_ranking import RankingTests
from .store_records import RecordTests
from .store_repeating import RepeatingTests
from .store_rewinding import RewindingTests
from .store_trust import TrustTests


class StoreContract(
    RecordTests,
    RankingTests,
    HistoryTests,
    RewindingTests,
    PurgingTests,
    TrustTests,
    ListingTests,
    EditingTests,
    RepeatingTests,
):
    """`Records` and `Index`. Subclass it under `@pytest.mark.anyio` and override `make`."""


class QueueContract(QueueTests):
    """`Queue`, of a store that keeps the contract above."""


class CareContract(CareTests):
    """`Care`, of a store that keeps the contract above."""
