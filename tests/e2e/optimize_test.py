# SPDX-License-Identifier: Apache-2.0
"""`musacoder optimize` as a user sees it: modules, a scripted model, the module that is written."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from program import BAD_INPUT, MUSACODER, InFolder, Server, completion, honest, run

NONE_CORRECT = 3

SOFTMAX = """\
import torch
from torch import nn


class RowSoftmax(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
"""
RMS_NORM = """\
import torch


class RmsNorm(torch.nn.Module):
    def __init__(self, features: int, eps: float) -> None:
        super(RmsNorm, self).__init__()
        self.eps = eps
        self.gain = torch.nn.Parameter(torch.ones(features))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.gain


example_inputs = (torch.randn(24, 96),)
"""
BLOCK = """\
import torch
import torch.nn.functional as F
from torch import nn


class Gate(nn.Module):
    def forward(self, x):
        return F.gelu(x)


class Block(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.gate = Gate()

    def forward(self, x):
        return x + self.gate(self.linear(x))
"""
ROW_SUM = """\
import torch
from torch import nn

rows, columns = 37, 130


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1)


def get_inputs():
    return [torch.randn(rows, columns)]
"""
BIAS_ADD = """\
import torch
from torch import nn


class BiasAdd(nn.Module):
    def forward(self, x, bias, times: int):
        return x + times * bias
"""
BIAS_ADD_KERNEL = '''\
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void add(const float* x, const float* bias, float* out, int size, int columns,
                    int times) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = x[i] + times * bias[i % columns];
}

torch::Tensor bias_add(torch::Tensor x, torch::Tensor bias, int64_t times) {
  auto out = torch::empty_like(x);
  const int size = x.numel();
  add<<<(size + 127) / 128, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(),
                                   out.data_ptr<float>(), size, bias.numel(), times);
  return out;
}
"""
_extension = None


def extension():
    global _extension
    if _extension is None:
        _extension = load_inline(
            name="bias_add",
            cpp_sources="torch::Tensor bias_add(torch::Tensor x, torch::Tensor bias, int64_t n);",
            cuda_sources=source,
            functions=["bias_add"],
        )
    return _extension


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        extension()

    def forward(self, x, bias, times):
        return extension().bias_add(x, bias, times)
'''


# The module's text, its class, options, a right kernel, and a change that makes it wrong.
CASES: dict[str, tuple[str, str, list[str], str, tuple[str, str]]] = {
    "row_softmax": (
        SOFTMAX, "RowSoftmax", ["--inputs", "f32[18,130]"], honest("softmax/softmax_rows"),
        ("expf(in[i] - p.max) * inverse", "expf(in[i] - p.max)"),
    ),
    "rms_norm": (
        RMS_NORM, "RmsNorm", ["--init", "96, eps=1e-5"], honest("normalisation/rms_norm"),
        ("squares / features + eps", "squares + eps"),
    ),
    "block": (
        BLOCK, "Block", ["--class", "Block", "--init", "40", "--inputs", "f32[20,40]"],
        honest("fusion/linear_gelu_residual"), ("gelu_exact(sum + bias[n])", "gelu_exact(sum)"),
    ),
    "row_sum": (
        ROW_SUM, "Model", [], honest("reduction/row_sum"), ("class ModelNew", "class ModelOld"),
    ),
    "bias_add": (
        BIAS_ADD, "BiasAdd", ["--inputs", "f32[30,70], f32[70], 3"], BIAS_ADD_KERNEL,
        ("times * bias[", "bias["),
    ),
}  # fmt: skip


def model(reply: Callable[[list[dict[str, str]]], str]) -> Server:
    """A model that answers by a function of all messages."""
    return Server(lambda number, request: completion(reply(request["messages"])))


class Optimize(InFolder):
    def serve(self, answers: list[str]) -> Server:
        """A model whose answers follow one another in a conversation; the last one stays."""

        def reply(messages: list[dict[str, str]]) -> str:
            turn = sum(message["role"] == "assistant" for message in messages)
            return f"```python\n{answers[min(turn, len(answers) - 1)]}```"

        server = model(reply)
        self.addCleanup(server.stop)
        return server

    def module(self, name: str, text: str) -> Path:
        return self.write(f"{name}.py", text)

    def run_it(self, *arguments: object, backend: str = "cpu") -> subprocess.CompletedProcess[str]:
        return run("optimize", *arguments, "--backend", backend, cwd=self.folder)

    def optimize(self, name: str, server: Server, *more: object) -> Path:
        """Optimizes a case; returns the module that is written."""
        text, _, options, _, _ = CASES[name]
        done = self.run_it(
            self.module(name, text), *options, "--endpoint", server.url, "--model-name", "m",
            "--samples", 1, *more,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("was not measured", done.stdout)
        return self.folder / "optimized" / name / f"{name}_optimized.py"

    def python(self, text: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=False,
            cwd=self.folder,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


# A right kernel that does its work six times.
SLOW = """


class _Once(ModelNew):
    pass


class ModelNew(_Once):
    def forward(self, *inputs):
        for _ in range(5):
            super().forward(*inputs)
        return super().forward(*inputs)
"""


@unittest.skipUnless(shutil.which("nvidia-smi"), "needs a GPU")
class Timed(Optimize):
    """On a device the fastest right answer is kept, and the module that is written runs there."""

    def test_the_third_answer_is_kept(self) -> None:
        with ThreadPoolExecutor(len(CASES)) as pool:  # Each compiles for a minute in the end.
            for name, problem in zip(CASES, pool.map(self.problem_of, CASES)):
                with self.subTest(name):
                    self.assertEqual(problem, "")

    def problem_of(self, name: str) -> str:
        text, class_name, options, kernel, (before, after) = CASES[name]
        server = self.serve([kernel.replace(before, after), kernel + SLOW, kernel])
        done = self.run_it(
            self.module(name, text), *options, "--endpoint", server.url, "--model-name", "m",
            "--samples", 1, "--turns", 3, backend="cuda",
        )  # fmt: skip
        if done.returncode != 0:
            return done.stderr
        written = self.folder / "optimized" / name / f"{name}_optimized.py"
        verdict = json.loads(written.with_suffix(".json").read_text())
        if verdict["candidate"] != f"{name}#0.2":
            return f"kept: {verdict['candidate']}\n{done.stdout}"
        return self.python(f"""
import sys, torch
sys.path[:0] = [{str(written.parent)!r}, {str(self.folder)!r}]
import {name} as plain, {name}_optimized as optimized
init = optimized.get_init_inputs()
args, kwargs = init if init and isinstance(init[-1], dict) else (init, {{}})
old, new = (one.{class_name}(*args, **kwargs).cuda().eval() for one in (plain, optimized))
new.load_state_dict(old.state_dict())
inputs = [x.cuda() if isinstance(x, torch.Tensor) else x for x in optimized.get_inputs()]
with torch.no_grad():
    print(optimized.why_original(new, *inputs) or "", end="")
    torch.testing.assert_close(new(*inputs), old(*inputs), rtol=1e-4, atol=1e-4)
""")


class Winners(Optimize):
    def case(self, name: str) -> None:
        _, class_name, _, kernel, (before, after) = CASES[name]
        self.assertEqual(kernel.count(before), 1)
        server = self.serve([kernel.replace(before, after), kernel, kernel + "# Faster.\n"])
        written = self.optimize(name, server)
        verdict = json.loads(written.with_suffix(".json").read_text())
        self.assertEqual(verdict["outcome"]["kind"], "pass")
        self.assertEqual(verdict["candidate"], f"{name}#0.1", "the first correct one is kept")
        self.assertEqual([len(messages) for messages in server.asked], [1, 3])
        self.assertIn("Write the whole answer again", server.asked[1][2]["content"])
        self.agrees_with_the_original(name, class_name, written)
        self.is_right_as_a_candidate(class_name, written)

    def agrees_with_the_original(self, name: str, class_name: str, written: Path) -> None:
        """On the CPU, where the original answers, with the same state, arguments and gradients."""
        self.python(f"""
import sys, inspect, torch
sys.path[:0] = [{str(written.parent)!r}, {str(self.folder)!r}]
import {name} as plain, {name}_optimized as optimized
init = optimized.get_init_inputs()
args, kwargs = init if init and isinstance(init[-1], dict) else (init, {{}})
old, new = (one.{class_name}(*args, **kwargs) for one in (plain, optimized))
new.load_state_dict(old.state_dict())
assert list(new.state_dict()) == list(old.state_dict())
assert inspect.signature(optimized.{class_name}) == inspect.signature(plain.{class_name})
inputs = optimized.get_inputs()
for tensor in inputs:
    if isinstance(tensor, torch.Tensor):
        tensor.requires_grad_()
expected, got = old(*inputs), new(*inputs)
assert torch.equal(expected, got) and got.requires_grad
assert optimized.why_original(new, *inputs) == "gradients are needed"
with torch.no_grad():
    assert optimized.why_original(new.eval(), *inputs) == "an input is not on the GPU"
    assert torch.equal(new(*inputs), expected)
assert not any(name.startswith("musacoder") for name in sys.modules)
""")

    def is_right_as_a_candidate(self, class_name: str, written: Path) -> None:
        """The whole class, kernels and decision, is judged on the emulated GPU.

        It runs its kernels from a text, which static rules forbid to candidates.
        """
        text = written.read_text()
        candidate = self.write("candidate.py", text + f"\n\nModelNew = {class_name}\n")
        task = self.write("task.py", text)
        done = run("eval", "--task", task, "-c", candidate, "--backend", "cpu", "--mode", "eval",
                   "--no-static-rules", "--json")  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        outcome = json.loads(done.stdout)["verdict"]["outcome"]
        self.assertEqual((outcome["kind"], outcome.get("generality")), ("pass", 1), done.stdout)

    def test_softmax(self) -> None:
        self.case("row_softmax")

    def test_rms_norm(self) -> None:
        self.case("rms_norm")

    def test_linear_and_gelu(self) -> None:
        self.case("block")

    def test_reduction(self) -> None:
        self.case("row_sum")

    def test_two_inputs_and_an_integer(self) -> None:
        self.case("bias_add")


class Runs(Optimize):
    def settle(self, name: str, server: Server, *more: object) -> list[object]:
        text, _, options, _, _ = CASES[name]
        return [self.module(name, text), *options, "--endpoint", server.url, "--model-name", "m",
                "--concurrency", 1, *more]  # fmt: skip

    def test_a_killed_run_goes_on_with_the_same_command(self) -> None:
        name = "bias_add"
        kernel = CASES[name][3]
        is_killed = threading.Event()

        def reply(messages: list[dict[str, str]]) -> str:
            if len(messages) == 3:  # The second turn: the first verdict is stored.
                if not is_killed.is_set():
                    process.send_signal(signal.SIGKILL)
                    is_killed.set()
                return f"```python\n{kernel}```"
            return "I cannot do this."

        server = model(reply)
        self.addCleanup(server.stop)
        arguments = [*self.settle(name, server, "--samples", 1), "--backend", "cpu"]
        command = [MUSACODER, "optimize", *map(str, arguments)]
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=self.folder, stdout=nowhere, stderr=nowhere)
        process.wait(timeout=600)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        done = self.run_it(*arguments[:-2])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("turn 1 of 4  extraction", done.stderr, "the stored verdict is not shown")
        self.assertEqual([len(messages) for messages in server.asked], [1, 3, 3])
        again = self.run_it(*arguments[:-2], "--json")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn(done.stdout, again.stderr)
        (end,) = map(json.loads, again.stdout.splitlines())
        self.assertEqual((end["event"], end["winner"]), ("end", f"{name}#0.1"))
        self.assertTrue((self.folder / end["module"]).is_file())
        self.assertEqual(len(server.asked), 3, "a run that had enough asked again")
        document = self.folder / "document.json"
        out = self.folder / "optimized" / name
        self.assertEqual(run("report", out, "--json", document).returncode, 0)
        (stored,) = json.loads(document.read_text())["runs"]
        self.assertEqual(stored["outcomes"], {"extraction": 1, "pass": 1})
        self.module(name, CASES[name][0] + "# Other.\n")
        other = self.run_it(*arguments[:-2])
        self.assertEqual(other.returncode, BAD_INPUT)
        self.assertIn("other settings (module", other.stderr)

    def test_no_correct_answer(self) -> None:
        server = self.serve(["pass\n"])
        given = self.settle("row_softmax", server, "--samples", 2, "--turns", 2, "--json")
        done = self.run_it(*given)
        self.assertEqual(done.returncode, NONE_CORRECT, done.stderr)
        self.assertIn("No answer is correct (4 extraction)", done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([one["event"] for one in events], ["sample"] * 4 + ["end"])
        self.assertEqual({one.get("outcome") for one in events[:4]}, {"extraction"})
        self.assertIsNone(events[4]["winner"])
        self.assertEqual(len(server.asked), 4)

    def test_a_budget_that_is_spent(self) -> None:
        def reply(messages: list[dict[str, str]]) -> str:
            time.sleep(0.5)
            return "Wait."

        server = model(reply)
        self.addCleanup(server.stop)
        given = self.settle("row_softmax", server, "--turns", 100, "--budget", 1)
        self.assertEqual(self.run_it(*given).returncode, NONE_CORRECT)
        self.assertLess(len(server.asked), 10)

    def test_what_users_get_wrong(self) -> None:
        server = self.serve(["pass\n"])
        given = self.settle("row_softmax", server)
        self.module("helpers", "")
        broken = self.module("broken", "import torch\nx = torch.nothing\n" + SOFTMAX)
        local = self.module("local", "import helpers\n" + SOFTMAX)
        constant = self.module("constant", SOFTMAX.replace("torch.softmax(x, dim=-1)", "x * 0"))
        for words, arguments in (
            ("helpers is a file beside it", [local, *given[1:]]),
            ("no inputs: give --inputs", [given[0], *given[3:]]),
            ("give one of --model and --endpoint", given[:3]),
            ("a candidate's file needs --watch", [given[0], local, *given[1:]]),
            ("no attribute 'nothing'", [broken, *given[1:]]),
            ("no test can tell a right kernel from a wrong one", [constant, *given[1:]]),
        ):
            with self.subTest(words):
                done = self.run_it(*arguments)
                errors = [line for line in done.stderr.splitlines() if "musacoder: " in line]
                self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
                self.assertIn(words, errors[-1])
        self.assertEqual(server.asked, [])


class Watch(Optimize):
    def test_one_look_has_an_exit_code(self) -> None:
        text, _, options, kernel, (before, after) = CASES["bias_add"]
        module = self.module("bias_add", text)
        for source, code in ((kernel, 0), (kernel.replace(before, after), 3)):
            candidate = self.module("kernel", source)
            more = ("--watch", "--exit-code", "--patch", self.folder / "p.patch")
            done = self.run_it(module, candidate, *options, *more)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            if code == 0:
                written = self.folder / "optimized/bias_add/bias_add_optimized.py"
                self.assertIn("Written: optimized/bias_add/bias_add_optimized.py", done.stdout)
                self.assertIn("class ModelNew", written.read_text())
        subprocess.run(["git", "apply", "p.patch"], cwd=self.folder, check=True)
        self.assertEqual(module.read_text(), written.read_text())
        self.assertIn("  wrong  ", done.stdout)
        self.assertNotIn("Written", done.stdout)
        self.assertIn("expected", done.stdout, "the feedback is missing")

    def test_the_prompt_is_printed_for_a_model_that_is_asked_by_hand(self) -> None:
        text, _, options, _, _ = CASES["bias_add"]
        module = self.module("bias_add", text)
        done = self.run_it(module, *options, "--print-prompt")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Answer with one complete Python module", done.stdout)
        self.assertIn("def get_inputs", done.stdout)
        self.assertFalse((self.folder / "optimized").exists())

    def test_each_change_is_judged(self) -> None:
        text, _, options, kernel, _ = CASES["bias_add"]
        module, candidate = self.module("bias_add", text), self.module("kernel", "class ModelNew")
        command = [MUSACODER, "optimize", str(module), str(candidate), *options, "--watch",
                   "--backend", "cpu"]  # fmt: skip
        watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        assert watch.stdout is not None
        self.addCleanup(watch.stdout.close)
        for outcome, source in (("extraction", kernel), ("pass", "")):
            line = next(line for line in watch.stdout if line[:2].isdigit())
            self.assertEqual(line.split()[1], outcome)
            candidate.write_text(source)


if __name__ == "__main__":
    unittest.main()
