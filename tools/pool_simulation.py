#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found"
"""Where a pool of MooreEval on Ray meets its next limit, from 8 to 4,096 GPUs (docs/ray.md).

    python tools/pool_simulation.py [--verdicts-per-minute 45] [--ray-ms 1.05]

The pool is the real one; its actors are simulated and reply after a pause.  The measured figure is
the processor time that the pool itself spends on a question.  A call of a real actor costs the
driver --ray-ms more (1 / the rate of `tools/ray_try.py rate`), and each GPU judges
--verdicts-per-minute.  Needs ray installed, but no cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from musacoder.judged import Json  # noqa: E402
from musacoder.ray.pool import Member, Pool  # noqa: E402

GPUS = (8, 64, 512, 1024, 2048, 4096)
QUESTIONS = 10_000
PAUSE_S = 0.02
PREPARED_KB = 154  # The kernel of reduction/row_sum for sm_90, in base64, as it crosses.


class Remote:
    """What a handle's method is in Ray: .remote() gives something to await."""

    async def _reply(self) -> Json:
        await asyncio.sleep(random.expovariate(1 / PAUSE_S))
        verdict = {"outcome": {"kind": "pass"}}
        return {"reward": 1.0, "feedback": "", "seconds": 0.0, "verdict": verdict}

    def remote(self, *_: Any) -> Any:
        return self._reply()


class Actor:
    ask = Remote()


def cost_ms(gpus: int) -> float:
    """Milliseconds of processor time that the pool spends on a question."""
    pool = Pool([Member(f"gpu-{i}", Actor(), "simulated") for i in range(gpus)], [])
    asked = [("class Model: pass\n", f"answer {i}") for i in range(QUESTIONS)]
    start = time.process_time()
    pool.evaluate_many(asked)
    return 1e3 * (time.process_time() - start) / QUESTIONS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts-per-minute", type=float, default=45)
    parser.add_argument("--ray-ms", type=float, default=1.05)
    arguments = parser.parse_args()
    print("GPUs   verdicts/s   pool ms   one driver/s   drivers   prepared MB/s")
    for gpus in GPUS:
        load = gpus * arguments.verdicts_per_minute / 60
        pool_ms = cost_ms(gpus)
        capacity = 1e3 / (pool_ms + arguments.ray_ms)
        drivers = max(1, -(-load // capacity))
        print(
            f"{gpus:4}   {load:10.0f}   {pool_ms:7.2f}   {capacity:12.0f}   {drivers:7.0f}"
            f"   {load * PREPARED_KB / 1e3:13.1f}"
        )


if __name__ == "__main__":
    main()
