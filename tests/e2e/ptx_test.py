# SPDX-License-Identifier: Apache-2.0
"""Candidates on the ptx device through the command line: `musacoder eval --backend cpu`."""

from __future__ import annotations

import importlib.util
import json
import secrets
import subprocess
import unittest
from pathlib import Path
from typing import Any

from program import ROOT, InFolder, run

TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.flip(1) * 2
def get_inputs(): return [torch.rand(30, 64)]
def get_init_inputs(): return []
"""
CANDIDATE = """import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <torch/extension.h>
template <class T>
__global__ void mirror(const T* x, T* y, int n) {
  __shared__ T row[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  row[threadIdx.x] = 2 * x[i];
  BARRIER
  y[i OFFSET] = row[63 - threadIdx.x];
}
torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be on the device");
  auto y = torch::empty_like(x);
  mirror<float><<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
'''
ext = load_inline(name="reverse", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=SOURCE, functions=["run"])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert x.is_cuda and x.device == torch.device("cuda", 0)
        return ext.run(x)
"""

MUSA_TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cat([x[:, 64:], x[:, :64]], 1)
def get_inputs(): return [torch.rand(5, 128)]
def get_init_inputs(): return []
"""
MUSA = """import torch, torch_musa
from torch_musa.utils.musa_extension import load_inline

SOURCE = r'''
#include <torch/extension.h>
__global__ void exchange(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = __shfl_xor_sync(0xffffffff, x[i], warpSize / 2);
  __syncthreads();
}
torch::Tensor run(torch::Tensor x) {
  int bytes = 0;
  musaDeviceGetAttribute(&bytes, musaDevAttrMaxSharedMemoryPerBlock, 0);
  TORCH_CHECK(bytes == 28 << 10, "shared memory of a block: ", bytes);
  auto y = torch::empty_like(x);
  exchange<<<x.size(0), 128>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
'''
ext = load_inline(name="exchange", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"])
assert torch.musa.get_device_properties(0).warp_size == 128
assert torch.musa.get_device_capability() == (2, 1)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert torch.musa.get_device_properties(0).warp_size == 128
        assert torch.musa.get_device_name(0) == "MUSA on CPU"
        assert torch.musa.get_device_capability() == (2, 1)
        return ext.run(x)
"""

TRITON = """import torch
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["columns"])
@triton.jit
def reverse(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns LIMIT
        value = tl.load(x + row * columns + columns - 1 - at, mask=mask)
        tl.store(y + PLACE * columns + at, 2 * value, mask=mask)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        reverse[(x.size(0),)](x, y, x.size(1))
        return y
"""


def in_triton(limit: str = "", place: str = "row") -> str:
    return TRITON.replace("LIMIT", limit).replace("PLACE", place)


LAYERS = """class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(32, 48)
        self.cell = torch.nn.LSTM(48, 64)
"""


def candidate(barrier: str = "__syncthreads();", offset: str = "") -> str:
    return CANDIDATE.replace("BARRIER", barrier).replace("OFFSET", offset)


class Ptx(InFolder):
    def eval(self, candidates: dict[str, str], *options: str, task: str = TASK) -> dict[str, Any]:
        """The outcomes by candidate."""
        given = ["--backend", "cpu", "--task", str(self.write("task.py", task)), *options]
        for name, text in candidates.items():
            given += ["--candidate", str(self.write(f"{name}.py", text))]
        done = run("eval", *given, "--json", "--jobs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        verdicts = [json.loads(line)["verdict"] for line in done.stdout.splitlines()]
        return {Path(one["candidate"]).stem: one["outcome"] for one in verdicts}

    def test_a_profile_has_the_sectors_of_each_trial(self) -> None:
        for options in (["--profile"], []):
            trial, *_ = self.eval({"right": candidate()}, *options)["right"]["trials"]
            # 30 rows of 64 floats are read and written, 8 sectors each time.
            self.assertEqual(trial["sectors"], 30 * 2 * 8 if options else 0)

    @unittest.skipUnless(importlib.util.find_spec("triton"), "PyTorch came without Triton")
    def test_judges_triton(self) -> None:
        outcomes = self.eval(
            {
                "right": in_triton(),
                "races": in_triton(place="(row % 2)"),
                "overruns": in_triton(limit="+ 100"),
                "does_not_compile": in_triton(place="nothing"),
                # The second configuration leaves out the last columns.
                "one_is_wrong": in_triton(limit="- (BLOCK // 256)"),
            }
        )
        self.assertEqual(
            {name: outcome["kind"] for name, outcome in outcomes.items()},
            {
                "right": "pass",
                "races": "wrong",
                "overruns": "runtime",
                "does_not_compile": "compile",
                "one_is_wrong": "wrong",
            },
        )
        trials = outcomes["one_is_wrong"]["trials"]
        findings = [one for trial in trials for one in trial["findings"]]
        self.assertEqual([one["kind"] for one in findings], ["configuration"])
        self.assertIn("1 of 2", findings[0]["detail"])
        self.assertIn("reverse: BLOCK: 256", findings[0]["detail"])
        # The first row reads and the last one writes out of bounds; all race with their neighbours.
        [found, *_] = [
            one
            for one in outcomes["overruns"]["findings"]
            if one["kind"] in ("out_of_bounds_read", "out_of_bounds_write")
        ]
        operation = "tl.load" if found["kind"] == "out_of_bounds_read" else "tl.store"
        self.assertIn(operation, found["location"]["excerpt"])
        [race, *_] = outcomes["races"]["trials"][0]["findings"]
        self.assertEqual(race["kind"], "global_race")
        self.assertIn("tl.store", race["location"]["excerpt"])
        self.assertIn("nothing is not defined", json.dumps(outcomes["does_not_compile"]))

    @unittest.skipUnless(importlib.util.find_spec("triton"), "PyTorch came without Triton")
    def test_the_example_in_triton_of_the_prompts_is_right(self) -> None:
        prompts = ROOT / "data/prompts"
        text = (prompts / "example_triton.py").read_text()
        task = (prompts / "example_task.py").read_text()
        self.assertEqual(self.eval({"example": text}, task=task)["example"]["kind"], "pass")
        native = "from torch.utils.cpp_extension import load_inline\n_ext = load_inline('e', '')\n"
        for language, asked in (("cuda", text), ("cuda", native + text), ("triton", native + text)):
            refused = self.eval({"one": asked}, "--language", language, task=task)["one"]
            self.assertEqual(refused["findings"][0]["rule"], "language.other")

    def test_judges_what_kernels_compute_and_how(self) -> None:
        outcomes = self.eval(
            {
                "right": candidate(),
                "races": candidate(barrier=""),
                "overruns": candidate(offset="+ 1"),
                "does_not_compile": candidate(offset="+ nothing"),
                "refused": candidate().replace("x.size(0), 64>>>", "x.size(0), 2048>>>"),
            }
        )
        kinds = {name: outcome["kind"] for name, outcome in outcomes.items()}
        expected = {
            "right": "pass",
            "races": "wrong",
            "overruns": "runtime",
            "does_not_compile": "compile",
            "refused": "wrong",
        }
        self.assertEqual(kinds, expected)
        refusal = outcomes["refused"]["trials"][0]["findings"][0]
        self.assertEqual(refusal["kind"], "launch_error")
        self.assertIn("a block of 2048", refusal["detail"])
        race = outcomes["races"]["trials"][0]["findings"][0]
        self.assertEqual(race["kind"], "shared_race")
        self.assertIn("row[", race["location"]["excerpt"])
        overruns = {one["kind"]: one for one in outcomes["overruns"]["findings"]}
        self.assertIn("y[i + 1]", overruns["out_of_bounds_write"]["location"]["excerpt"])

    def test_compiles_quickly_and_refuses_what_nvcc_refuses(self) -> None:
        fresh = f"// {secrets.token_hex(8)}\ntemplate <class T>"  # It was never compiled before.
        task = self.write("task.py", TASK)
        module = self.write("right.py", candidate().replace("template <class T>", fresh))
        # The loader knows no folder of the toolkit, as where nobody called ldconfig for it.
        hiding = ["unshare", "-rm", "sh", "-c",
                  'mount --bind /dev/null /etc/ld.so.cache; exec "$0" "$@"']  # fmt: skip
        can_hide = subprocess.run([*hiding, "true"], capture_output=True, check=False)
        within = [] if can_hide.stderr or can_hide.returncode else hiding
        done = run("-v", "eval", "--backend", "cpu", "--task", task, module, within=within)
        commands = [line for line in done.stderr.splitlines() if "] compile in " in line]
        self.assertTrue(any("musacoder-kernels" in line for line in commands), done.stderr)
        self.assertFalse(any("/nvcc " in line for line in commands), done.stderr)
        device_function = "__device__ float twice(float v) { return 2 * v; }\ntemplate <class T>"
        host_function = device_function.removeprefix("__device__ ")
        outcomes = self.eval(
            {
                "kernel_calls_host": candidate()
                .replace("template <class T>", host_function)
                .replace("2 * x[i]", "twice(x[i])"),
                "host_calls_device": candidate()
                .replace("template <class T>", device_function)
                .replace("auto y =", "twice(1);\n  auto y ="),
                "kernel_calls_device": candidate()
                .replace("template <class T>", device_function)
                .replace("2 * x[i]", "twice(x[i])"),
            }
        )
        self.assertEqual(
            {name: outcome["kind"] for name, outcome in outcomes.items()},
            {
                "kernel_calls_host": "compile",
                "host_calls_device": "compile",
                "kernel_calls_device": "pass",
            },
        )
        self.assertIn("__host__ function", json.dumps(outcomes["kernel_calls_host"]))
        self.assertIn("__device__ function", json.dumps(outcomes["host_calls_device"]))

    def test_refuses_answers_that_no_kernel_made_of_the_inputs(self) -> None:
        zeros = candidate().replace("2 * x[i]", "0 * threadIdx.x")
        task = TASK.replace("x.flip(1) * 2", "x.flip(1) * 0")
        made = "y = ext.run(x)\n        "
        outcomes = self.eval(
            {
                "reads": candidate().replace("2 * x[i]", "0 * x[i]"),
                "constant": zeros,
                "filled": zeros.replace("return ext.run(x)", f"{made}return y.zero_()"),
                "by_the_host": zeros.replace(
                    "return ext.run(x)", f"{made}return y.copy_(torch.zeros(y.shape))"
                ),
                "copy": zeros.replace("return ext.run(x)", f"{made}return ext.run(x).clone()"),
            },
            task=task,
        )
        self.assertEqual(outcomes["reads"]["kind"], "pass", outcomes["reads"])
        rules = {
            name: outcome["findings"][0]["rule"]
            for name, outcome in outcomes.items()
            if outcome["kind"] == "illegal"
        }
        expected = {
            "constant": "run.constant_answer",
            "filled": "run.host_output",
            "by_the_host": "run.host_output",
            "copy": "run.constant_answer",
        }
        self.assertEqual(rules, expected)

    def test_operators_of_pytorch_compute_on_the_device(self) -> None:
        layers = {
            "right": "torch.softmax(self.cell(self.linear(x))[0], 1)",
            "wrong": "torch.softmax(self.cell(self.linear(x))[0], 0)",
        }
        outcomes = self.eval(
            {
                name: candidate()
                .replace("class ModelNew(torch.nn.Module):", LAYERS.replace("Model", "ModelNew"))
                .replace("return ext.run(x)", f"return ext.run({layers[name]})")
                for name in layers
            },
            *("--policy", "kernelbench"),
            task=f"import torch\n{LAYERS}\n    def forward(self, x):\n"
            f"        return {layers['right']}.flip(1) * 2\n"
            "def get_inputs(): return [torch.randn(5, 32)]\n"
            "def get_init_inputs(): return []\n",
        )
        kinds = {name: outcome["kind"] for name, outcome in outcomes.items()}
        self.assertEqual(kinds, {"right": "pass", "wrong": "wrong"})

    def test_depthwise_convolutions_of_pytorch_compute_on_the_device(self) -> None:
        layers = """class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = torch.nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=4)
        self.deep = torch.nn.Conv3d(8, 8, (1, 4, 2), groups=8, bias=False)
"""
        made = "self.deep(self.flat(x).unsqueeze(2)).flatten(1)"
        model = layers.replace("Model", "ModelNew")
        source = (
            candidate()
            .replace("class ModelNew(torch.nn.Module):", model)
            .replace("return ext.run(x)", f"return ext.run({made})")
        )
        (outcome,) = self.eval(
            {"depthwise": source},
            *("--policy", "kernelbench"),
            task=f"import torch\n{layers}\n    def forward(self, x):\n"
            f"        return {made}.flip(1) * 2\n"
            "def get_inputs(): return [torch.randn(2, 4, 9, 9)]\n"
            "def get_init_inputs(): return []\n",
        ).values()
        self.assertEqual(outcome["kind"], "pass", outcome)

    def test_a_library_that_needs_a_gpu_is_lacking_and_no_fault(self) -> None:
        first = "#include <torch/extension.h>"
        source = candidate().replace(first, f"{first}\n#include <cudnn.h>")
        source = source.replace('functions=["run"]', 'functions=["run"], extra_ldflags=["-lcudnn"]')
        calls = {
            "checked": "TORCH_CHECK(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);",
            # The library computes nothing, and nobody looks at its status.
            "unchecked": "cudnnCreate(&handle); return torch::zeros_like(x);",
            "unused": "cudnnCreate(&handle);",
        }
        sources = {
            name: source.replace("  auto y =", f"  cudnnHandle_t handle; {call}\n  auto y =")
            for name, call in calls.items()
        }
        outcomes = self.eval(sources, "--policy", "kernelbench")
        self.assertEqual(outcomes.pop("unused")["kind"], "pass")
        for outcome in outcomes.values():
            self.assertEqual(outcome["kind"], "unsupported", outcome)
            self.assertIn("cudnnCreate", json.dumps(outcome))

    def test_has_warps_of_128_threads_for_musa(self) -> None:
        call = "__shfl_xor_sync(0xffffffff, x[i], warpSize / 2)"
        outcomes = self.eval(
            {
                "right": MUSA,
                "does_not_compile": MUSA.replace(call, "__shfl_xor_sync(0xffffffff)"),
                "first_32_alone": MUSA.replace(call, f"threadIdx.x < 32 ? {call} : 0"),
            },
            *("--dialect", "musa", "--musa-arch", "mp_21"),
            task=MUSA_TASK,
        )
        self.assertEqual(
            {name: outcome["kind"] for name, outcome in outcomes.items()},
            {"right": "pass", "does_not_compile": "compile", "first_32_alone": "runtime"},
        )
        message = json.dumps(outcomes["does_not_compile"]["diagnostics"])
        self.assertIn("__shfl_xor_sync", message)
        self.assertNotIn("mcshfl", message)
        (found,) = outcomes["first_32_alone"]["findings"]
        self.assertEqual(found["kind"], "deadlock")
        self.assertIn("__shfl_xor_sync", found["location"]["excerpt"])


if __name__ == "__main__":
    unittest.main()
