# SPDX-License-Identifier: Apache-2.0
"""Another process on the device, as the judge is one for MooreEval's contestants.

A device gives the blocks of a launch to its SMs in an order that it keeps from launch to launch,
and that what ran before decides. A kernel with fewer blocks than there are SMs runs on those that
come first, and takes up to 8 % more or less time there. After work of another process the order is
the same each time (docs/benchmarks.md, "Beside CUPTI").
"""

from __future__ import annotations

import functools
import multiprocessing
from multiprocessing.connection import Connection


def use_device() -> None:
    """Returns when a kernel of the other process has run."""
    connection = _started()
    connection.send(None)
    connection.recv()


@functools.cache
def _started() -> Connection:
    here, there = multiprocessing.Pipe()
    spawning = multiprocessing.get_context("spawn")  # A fork has no use of the device.
    spawning.Process(target=_serve, args=(there,), daemon=True).start()
    there.close()  # So that reading ends with the process.
    return here


def _serve(connection: Connection) -> None:
    import torch

    one = torch.zeros(1, device="cuda")
    while True:
        try:
            connection.recv()
        except EOFError:
            return
        one.add_(1)
        torch.cuda.synchronize()
        connection.send(None)
