# SPDX-License-Identifier: Apache-2.0
"""The actor: one child process of the program on one node."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from musacoder.judged import Json
from musacoder.local import Program

# A question to which an honest device has one reply, whatever the policy.
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


class Verifier:
    """A question goes to the child as it is; the reply comes back as it is (docs/stream.md)."""

    def __init__(self, options: Sequence[str], program: str | None = None) -> None:
        # Ray sets it to the actor's share of processors, which is no limit for the reference.
        os.environ.pop("OMP_NUM_THREADS", None)
        self._options = list(options)
        self._path = program
        self._program = Program(program, options)

    async def ask(self, question: Json) -> Json:
        """Raises Unreachable where the child ends; the next question starts another."""
        return await asyncio.wrap_future(self._program.ask(question))

    async def about(self) -> str:
        """The description of program and machine; actors with equal ones give equal verdicts."""
        return str((await self.ask({"verb": "about"}))["about"])

    async def is_well(self) -> bool:
        """Whether a new child, and so a new device process, passes a kernel that is right."""
        program = Program(self._path, self._options)
        question = {"task": {"id": "probe", "code": PROBE_TASK}, "answer": PROBE_ANSWER}
        try:
            reply = await asyncio.wrap_future(program.ask(question))
        except ConnectionError:
            return False
        finally:
            program.close()
        return "verdict" in reply and reply["verdict"]["outcome"]["kind"] == "pass"
