# SPDX-License-Identifier: Apache-2.0
"""MooreEval on a Ray cluster (docs/serve.md; `pip install musacoder[ray]`).

    pool = musacoder.ray.start(measure=8, gpus=1)
    judged = await pool.verdict(task, answer)
    many = pool.evaluate_many([(task, answer), ...])
    again = musacoder.ray.connect()

The actors outlive the process that starts them, and connect() finds them in any process of the
cluster.  evaluate_many needs no event loop and keeps the order.

Each actor owns one child process of the program, which does the judging.  An actor that measures
has a GPU; actors that prepare compile on nodes without a GPU.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from musacoder.ray.pool import Pool, connect, start, stop

__all__ = ["Pool", "connect", "start", "stop"]


def __getattr__(name: str) -> Any:
    """Imports Ray at the first use, so that the command can report its absence in one line."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from musacoder.ray import pool

    return getattr(pool, name)
