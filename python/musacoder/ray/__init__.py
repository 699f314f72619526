# SPDX-License-Identifier: Apache-2.0
"""MooreEval on a Ray cluster (docs/ray.md; `pip install musacoder[ray]`).

    pool = musacoder.ray.start(measure=8, gpus=1)          # once; the actors outlive this process
    pool = musacoder.ray.connect()                         # in any process of the cluster
    judged = await pool.verdict(task, answer)
    many = pool.evaluate_many([(task, answer), ...])       # in order, without an event loop

Each actor owns one child process of the program, which stays the unit of trust.  An actor that
measures has a GPU; where there are actors that prepare, they compile on nodes without one.
"""

from musacoder.ray.pool import Pool, connect, start, stop

__all__ = ["Pool", "connect", "start", "stop"]
