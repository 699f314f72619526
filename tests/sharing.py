# SPDX-License-Identifier: Apache-2.0
"""Random shares of tests that take long, for continuous integration.

A variable of the environment has the share: $MC_CORPUS_SHARE that of each corpus,
$MC_SCENARIO_SHARE that of the command line's scenarios and of the pages. Each run draws others and
says which; $MC_SHARE_DRAW chooses the same again.
"""

from __future__ import annotations

import math
import os
import random
from typing import TypeVar

T = TypeVar("T")


def share_of(things: list[T], variable: str) -> list[T]:
    """Those that the share leaves, at least one, in their order."""
    share = float(os.environ.get(variable, "1"))
    if share >= 1 or not things:
        return things
    draw = os.environ.get("MC_SHARE_DRAW") or str(random.SystemRandom().randrange(10**6))
    chosen = random.Random(draw).sample(range(len(things)), math.ceil(share * len(things)))
    print(f"{len(chosen)} of {len(things)}: {variable}={share} MC_SHARE_DRAW={draw}", flush=True)
    return [things[i] for i in sorted(chosen)]
