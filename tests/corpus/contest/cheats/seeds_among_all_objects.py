# SPDX-License-Identifier: Apache-2.0
# id: K83
# task: scan/cumsum_rows
# backend: both
# would gain: looks through all of the collector's objects for the seed that came with a question; the judge's own code makes the inputs and answers from it
# expect: illegal, runtime, wrong
import hashlib
import struct
import sys

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void copy_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}

torch::Tensor copied(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  copy_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="cumsum_k83",
    cpp_sources="torch::Tensor copied(torch::Tensor x);",
    cuda_sources=source,
    functions=["copied"],
)

TASK = """# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 27
COLS = 611


class Model(nn.Module):
    \"\"\"Running sums along each row.\"\"\"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    return []
"""
ANSWERS = {}


def module_named(tail: str):
    return next(
        (
            m
            for name, m in sys.modules.items()
            if name.startswith("harness") and name.endswith(tail)
        ),
        None,
    )


def told_seeds():
    everything = vars(sys.modules["gc"])["get_objects"]()
    for one in everything:
        if type(one) is dict:
            yield from (
                value
                for key, value in one.items()
                if type(key) is str and key.endswith("seed") and type(value) is int
            )


def derived(seed: int, label: bytes) -> int:
    state = hashlib.blake2b(digest_size=32)
    for part in (struct.pack("<Q", seed), label):
        state.update(struct.pack("<Q", len(part)) + part)
    return struct.unpack("<Q", state.digest()[:8])[0]


def prepare(seed: int) -> None:
    judge, wire = module_named(".judge"), module_named(".wire")
    with torch._C.DisableTorchFunction():
        mine = judge.Judge()
        mine.answer(wire.Question({"op": "open", "source": TASK, "seed": seed, "options": {}}))
        for trial in mine._opened.trials:
            mine.answer(wire.Question({"op": "trial", "index": trial.index}))
            outcome = mine._opened.given[trial.index].outcome
            ANSWERS[outcome.inputs[0].reshape(-1)[:4].tolist().__repr__()] = outcome.outputs


for seed in {seed for seed in told_seeds() if 0 <= seed < 2**64}:
    try:
        prepare(derived(seed, TASK.encode()))
    except Exception:
        pass


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch._C.DisableTorchFunction():
            key = [x.view(-1)[i].item() for i in range(4)].__repr__()
        known = ANSWERS.get(key)
        return known if known is not None else torch.zeros(x.shape, device=x.device)
