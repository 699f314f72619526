# SPDX-License-Identifier: Apache-2.0
"""The use of this machine's GPUs, as nvidia-smi reports it."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass

_PROCESSES = ("--query-compute-apps=pid,process_name", "--format=csv,noheader")
_MEMORY = ("--query-gpu=uuid,memory.used", "--format=csv,noheader,nounits")
# The driver's own use moves by a few MiB; a context alone is hundreds.
_MEMORY_SLACK_MIB = 64
_WAIT_S = 10.0


@dataclass(frozen=True)
class Use:
    processes: frozenset[str]  # "pid, name"
    memory_mib: dict[str, int]  # The key is the GPU's UUID.

    @staticmethod
    def parse(processes: str, memory: str) -> Use:
        """Figures of nvidia-smi's output; an unknown figure ("[N/A]") is left out."""
        lines = frozenset(line.strip() for line in processes.splitlines() if line.strip())
        used = {}
        for line in memory.splitlines():
            gpu, _, figure = line.partition(",")
            if figure.strip().isdecimal():
                used[gpu.strip()] = int(figure)
        return Use(lines, used)

    def left_since(self, before: Use) -> list[str]:
        """The uses that are new since a former state, one per line."""
        left = [f"process {one}" for one in sorted(self.processes - before.processes)]
        for gpu, now in self.memory_mib.items():
            more = now - before.memory_mib.get(gpu, now)
            if more > _MEMORY_SLACK_MIB:
                left.append(f"{more} MiB of {gpu}")
        return left


def num_gpus() -> int:
    """0 also where there is no nvidia-smi."""
    return sum(line.startswith("GPU ") for line in _ask("-L").splitlines())


def use_now() -> Use:
    return Use.parse(_ask(*_PROCESSES), _ask(*_MEMORY))


def left_in_the_end(before: Use) -> list[str]:
    """The uses that remain after some seconds, in which a driver may clear up."""
    deadline = time.monotonic() + _WAIT_S
    while left := use_now().left_since(before):
        if time.monotonic() > deadline:
            return left
        time.sleep(0.5)
    return []


def _ask(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
