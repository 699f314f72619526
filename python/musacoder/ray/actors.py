# SPDX-License-Identifier: Apache-2.0
"""The actor: one child process of the program on one node."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from musacoder.judged import Json
from musacoder.local import Program

# A question with the same reply from every working device and policy.
PROBE_TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs(): return [torch.rand(64, 96)]
def get_init_inputs(): return []
"""
PROBE_ANSWER = '''import torch
from torch.utils.cpp_extension import load_inline
SOURCE = r"""
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  twice<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
ext = load_inline(name="probe", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=SOURCE, functions=["run"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.run(x)
'''
PROBE_S = 300.0


def is_infra(reply: Json) -> bool:
    """True if the machine failed, regardless of the answer."""
    if "verdict" in reply:
        return bool(reply["verdict"]["outcome"]["kind"] == "infra")
    return reply.get("kind") == "infra"


class Verifier:
    """Passes a question to the child and its reply back, both unchanged (docs/serve.md)."""

    def __init__(self, options: Sequence[str], program: str | None = None) -> None:
        # Ray sets it to the actor's share of processors, which must not limit the reference.
        os.environ.pop("OMP_NUM_THREADS", None)
        self._options = list(options)
        self._path = program
        self._program = Program(program, options)
        self._problem = ""
        self._lock = asyncio.Lock()

    async def ask(self, question: Json) -> Json:
        """Raises Unreachable if the child ends; the next question starts a new child."""
        return await asyncio.wrap_future(self._program.ask(question))

    async def state(self) -> tuple[str, str]:
        """The description of program and machine, and why the actor is set aside, or "".

        Actors with equal descriptions give equal verdicts.
        """
        return str((await self.ask({"verb": "about"}))["about"]), self._problem

    async def examine(self) -> str:
        """The reason to set the actor aside, or "": judges a right kernel in a new child.

        A new child is a new device process.  Concurrent calls share one probe.
        """
        async with self._lock:
            if not self._problem and not await self._is_healthy():
                self._problem = "its probe fails: look at its GPU"
        return self._problem

    async def _is_healthy(self) -> bool:
        """False if the machine fails; any other reply to the probe shows that it works."""
        program = Program(self._path, self._options)
        verb = "prepare" if "--architecture" in self._options else "evaluate"
        task = {"id": "probe", "code": PROBE_TASK}
        question = {"verb": verb, "task": task, "answer": PROBE_ANSWER}
        try:
            reply = await asyncio.wait_for(asyncio.wrap_future(program.ask(question)), PROBE_S)
        except (ConnectionError, asyncio.TimeoutError):
            return False
        finally:
            program.close()
        return not is_infra(reply)
