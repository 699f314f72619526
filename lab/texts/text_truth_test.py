# SPDX-License-Identifier: Apache-2.0
"""The reader of the forge's texts: true lines are true, and each changed number is found."""

from __future__ import annotations

import json
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any

from kernel_trace import Program, Tensor
import text_variants
from text_truth import (
    ROOT,
    Truth,
    code_blocks,
    grammar_of,
    lines_of,
    other_line,
    read_rows,
    truths_of,
    verdict_of,
)

CUDA = """
#include <torch/extension.h>
__device__ float total(float* s, float partial) {
  int tid = threadIdx.x;
  s[tid] = partial;
  __syncthreads();
  for (int width = 32; width > 0; width /= 2) {
    if (tid < width) s[tid] += s[tid + width];
    __syncthreads();
  }
  partial = s[0];
  __syncthreads();
  return partial;
}
__global__ void sum_kernel(const float* x, float* out, int cols) {
  __shared__ float shared[64];
  int row = blockIdx.x, tid = threadIdx.x;
  float sum = 0.0f;
  for (int col = tid; col < cols; col += 64) {
    float value = x[row * cols + col];
    sum += value;
  }
  sum = total(shared, sum);
  if (tid == 0) out[row] = sum;
}
__global__ void relu_kernel2(const float* sum_1, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float value = sum_1[i];
    out[i] = fmaxf(value, 0.0f);
  }
}
torch::Tensor sum_relu_forward(torch::Tensor x) {
  auto stream = at::cuda::getCurrentCUDAStream();
  int N = x.size(0);
  auto sum_1 = torch::empty({N}, x.options());
  {
    int rows = N, cols = x.size(1);
    sum_kernel<<<rows, 64, 0, stream>>>(x.data_ptr<float>(), sum_1.data_ptr<float>(), cols);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
  auto out = torch::empty({N}, x.options());
  {
    int n = N;
    relu_kernel2<<<(n + 127) / 128, 128, 0, stream>>>(sum_1.data_ptr<float>(),
      out.data_ptr<float>(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
  return out;
}
"""
PLAN = "a block of 64 threads for each row and a tree in shared memory"
TEXT = """<think>
Launches in all: 2.
Kernel 1, sum_kernel: sum, by {plan}; 5 blocks of 64 threads.
In kernel 1, cols has the value 100.
Rejected for kernel 1: one thread for each row. Only 5 threads would have work, here 320.
The price of kernel 1: 8 barriers a block, where one thread for each row has 0.
Thread 9 of block 3 in kernel 1 has row = 3.
A block of kernel 1 passes 8 barriers.
A block of kernel 1 takes 256 bytes of shared memory.
Kernel 1 is not one thread for each row: 5 sectors for a warp's load against 4.
Each element of x is loaded 1x in kernel 1.
Kernel 2, relu_kernel2: relu, by one thread for each element; 1 blocks of 128 threads.
128 threads, 5 with work; `if (i < n)` stops 123 of kernel 2.
The largest tensor has 500 elements, below 2^31, so int is enough for offsets.
</think>
""".replace("{plan}", PLAN)
MODULE = "import torch\nN = 5\nM = 100\n"


def truth_of(text: str) -> Truth:
    answer = f'cuda_source = r"""{CUDA}"""\next = load_inline()\n'
    row: dict[str, Any] = {
        "depth": 2,
        "operators": ["sum", "relu"],
        "messages": [
            {"role": "user", "content": f"```python\n{MODULE}```\n"},
            {"role": "assistant", "content": f"{text}\n```python\n{answer}```\n"},
        ],
    }
    truth = Truth(row)
    truth.made = Program(CUDA)
    truth.made.run_host([Tensor("x", [5, 100], None, 4)])
    return truth


class TextTruth(unittest.TestCase):
    def setUp(self) -> None:
        Truth.grammar = grammar_of(ROOT / "data/forge/sentences.json")

    def test_true_lines_are_true(self) -> None:
        truth = truth_of(TEXT)
        for line in lines_of(truth.text):
            self.assertEqual(verdict_of(line, truth)[0], "true", (line, verdict_of(line, truth)))

    def test_every_changed_number_is_found(self) -> None:
        changed = 0
        for line in lines_of(truth_of(TEXT).text):
            for number in re.finditer(r"(?<![\w^-])\d+(?![\w^-])", line):
                # The number of a thread is arbitrary, and a block size is part of a plan's words.
                if line[: number.start()].endswith(("Thread ", "below 2^", "sectors of ")):
                    continue
                wrong = line[: number.start()] + str(int(number[0]) + 3) + line[number.end() :]
                self.assertNotEqual(verdict_of(wrong, truth_of(TEXT))[0], "true", wrong)
                changed += 1
        self.assertGreater(changed, 25)

    def test_a_line_of_an_answer_is_compared_with_it(self) -> None:
        truth = truth_of(TEXT)
        truth.failed_answer = "a\nb = 1\n"
        self.assertTrue(other_line("Line 2: b = 1", truth))
        self.assertFalse(other_line("Line 1: b = 1", truth))

    def test_a_barrier_that_some_threads_skip_is_found(self) -> None:
        truth = truth_of(TEXT)
        truth.made = Program(
            CUDA.replace(
                "  partial = s[0];\n  __syncthreads();",
                "  partial = s[0];\n  if (tid < 8) __syncthreads();",
            )
        )
        truth.made.run_host([Tensor("x", [5, 100], None, 4)])
        self.assertEqual(verdict_of("A block of kernel 1 passes 8 barriers.", truth)[0], "false")

    def test_a_variant_has_the_features_that_it_names_and_no_others(self) -> None:
        one = {"features": [], "reason": ["Launches in all: 2."], "code": "import torch\n"}
        shuffle = {**one, "features": ["warp_shuffles"], "code": "__shfl_xor_sync(m, v, 1)\n"}
        whole = {"baseline": one, "single_feature": [shuffle], "algorithm": None, "composite": None}
        row = {**truth_of("").row, "kind": "variants"}

        def verdicts(**members: object) -> list[bool | None]:
            answer = {"role": "assistant", "content": json.dumps({**whole, **members})}
            truths = truths_of({**row, "messages": [row["messages"][0], answer]})
            return [text_variants.is_true(lines_of(one.text)[0], code_of(one)) for one in truths]

        def code_of(truth: Truth) -> str:
            return "".join(code_blocks(truth.messages[1:]))

        self.assertEqual(verdicts(), [True, True])
        self.assertEqual(verdicts(composite={**shuffle, "code": "c"}), [True, True, False])
        self.assertEqual(verdicts(algorithm={**shuffle, "code": "c"}), [True, True, False])
        self.assertEqual(verdicts(single_feature=[{**shuffle, "features": []}]), [True, False])
        self.assertEqual(verdicts(single_feature=[{**one, "features": ["x"]}]), [False])  # Codes.
        self.assertEqual(verdicts(more=1), [False])

    def test_a_file_that_has_no_conversations_is_named_with_its_line(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rl.jsonl"
            path.write_text('{"kind": "k", "messages": [{"content": ""}]}\n{"id": "x"}\n')
            with self.assertRaisesRegex(ValueError, "rl.jsonl:2: not a conversation"):
                read_rows(path)


if __name__ == "__main__":
    unittest.main()
