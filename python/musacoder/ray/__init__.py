# SPDX-License-Identifier: Apache-2.0
"""MooreEval on a Ray cluster (docs/serve.md; `pip install musacoder[ray]`).

    pool = musacoder.ray.start(measure=8, gpus=1)
    judged = await pool.verdict(task, answer)
    many = pool.evaluate_many([(task, answer), ...])
    again = musacoder.ray.connect()

The actors outlive the process that starts them, and connect() finds them in any process of the
cluster.  evaluate_many needs no event loop and keeps the order.

Each actor owns one child process of the program, which stays the unit of trust.  An actor that
measures has a GPU; where there are actors that prepare, they compile on nodes without one.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from musacoder.ray.pool import Pool, connect, start, stop

__all__ = ["Pool", "connect", "start", "stop"]


def __getattr__(name: str) -> Any:
    """Ray is imported with the first use, so that its absence is one line of the command's."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from musacoder.ray import pool

    return getattr(pool, name)
