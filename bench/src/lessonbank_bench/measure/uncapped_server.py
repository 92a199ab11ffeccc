"""The server that is measured: `lessonbank serve` without the cap on lessons an hour, which every load reaches.

python -m lessonbank_bench.measure.uncapped_server ADDRESS
"""

from __future__ import annotations

import asyncio
import sys

from lessonbank import Safety
from lessonbank.http.service.application import application
from lessonbank.http.service.serving import serve
from lessonbank.wiring import connect_async


async def main(address: str, /) -> None:
    """Serve the bank at `address` on a free port of this machine until interrupted, and print where."""
    bank = await connect_async(address, scope="default", embedder="lexical", safety=Safety(caps=None))
    await serve(
        lambda _: application(bank, close=True),
        host="127.0.0.1",
        port=0,
        ready=lambda url: print(f"serves {url}/v1", file=sys.stderr, flush=True),
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
