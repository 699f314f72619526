# SPDX-License-Identifier: Apache-2.0
"""MooreEval on a Ray cluster (docs/ray.md; `pip install musacoder[ray]`).

    pool = musacoder.ray.start(measure=8, gpus=1)
    judged = await pool.verdict(task, answer)
    many = pool.evaluate_many([(task, answer), ...])
    again = musacoder.ray.connect()

The actors outlive the process that starts them, and connect() finds them in any process of the
cluster.  evaluate_many needs no event loop and keeps the order.

Each actor owns one child process of the program, which stays the unit of trust.  An actor that
measures has a GPU; where there are actors that prepare, they compile on nodes without one.
"""

from musacoder.ray.pool import Pool, connect, start, stop

__all__ = ["Pool", "connect", "start", "stop"]
