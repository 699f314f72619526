# SPDX-License-Identifier: Apache-2.0
"""`musacoder eval --stream`: a question a line, a reply a line, wrong questions included."""

from __future__ import annotations

import json
import subprocess
import unittest
from typing import Any

from program import MUSACODER, ROOT, honest, run

TASK = "reduction/row_sum"
HONEST = honest(TASK)


RELU = """import torch
import torch.nn as nn

require_general = True
N = 300


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
"""
IN_THE_FORGES_FORM = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
__global__ void k(const float* x, float* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) o[i] = fmaxf(x[i], 0.0f);
}
torch::Tensor f(torch::Tensor x) {
  auto o = torch::empty_like(x);
  int n = x.numel();
  k<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), o.data_ptr<float>(), n);
  return o;
}
"""
head = "torch::Tensor f(torch::Tensor x);"
ext = load_inline(name="e", cpp_sources=head, cuda_sources=src, functions=["f"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
'''


CPU = ("--backend", "cpu", "--jobs", "2")


def ask(*lines: str, options: tuple[str, ...] = CPU) -> list[dict[str, Any]]:
    asked = "".join(line + "\n" for line in lines)
    done = run("eval", "--stream", "--seed", "1", *options, input=asked)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Stream(unittest.TestCase):
    def test_each_line_gets_one_reply(self) -> None:
        code = (ROOT / "tasks" / f"{TASK}.py").read_text()
        questions: list[dict[str, Any]] = [
            {"id": "by name", "task": TASK, "answer": HONEST},
            {"id": "with code", "task": {"id": "mine", "code": code}, "answer": "I cannot."},
            {"id": "no answer", "task": TASK},
            {"id": "no task", "task": "no/such", "answer": HONEST},
            {"id": "no Model", "task": {"code": "import torch"}, "answer": HONEST},
        ]
        questions.append({"id": "half a pair", "task": TASK, "answer": "\ud800"})
        replies = ask(*map(json.dumps, questions), "", "no JSON")
        by_id = {reply["id"]: reply for reply in replies}
        self.assertEqual(len(replies), 7)
        self.assertEqual(set(by_id), {question["id"] for question in questions} | {""})
        self.assertEqual(by_id["by name"]["reward"], 1.0)
        self.assertEqual(by_id["by name"]["verdict"]["outcome"]["kind"], "pass")
        self.assertIn("correct", by_id["by name"]["feedback"])
        self.assertEqual(by_id["with code"]["reward"], -1.0)
        self.assertEqual(by_id["with code"]["verdict"]["task"], "mine")
        for wrong, words in (
            ("no answer", '"answer"'),
            ("no task", "no/such"),
            ("no Model", "no class Model"),
            ("half a pair", "lone surrogate"),
            ("", "JSON object"),
        ):
            self.assertEqual(set(by_id[wrong]), {"id", "error"})
            self.assertIn(words, by_id[wrong]["error"])

    def test_in_bulk_each_answer_has_its_own_outcome(self) -> None:
        right = IN_THE_FORGES_FORM
        answers = {
            "right": right,
            "with a macro": right.replace("__global__", "#define fminf fmaxf\n__global__", 1),
            "wrong": right.replace("fmaxf", "2.0f * fmaxf"),
            "undeclared": right.replace("0.0f", "zero"),
            "by PyTorch": right.replace("ext.f(x)", "torch.relu(x)"),
            "by the host": right.replace("ext.f(x)", "ext.f(torch.relu(x.cpu()).to(x.device))"),
            "another form": right.replace('r"""', '"""'),
            "no code": "I cannot.",
        }
        self.assertEqual(len(set(answers.values())), len(answers))
        task = {"id": "relu", "code": RELU}
        questions = [{"id": name, "task": task, "answer": one} for name, one in answers.items()]
        own = {"id": "own sizes", "code": RELU.replace("require_general = True\n", "")}
        questions.append({"id": "own sizes", "task": own, "answer": right})
        questions.append({"id": "p", "verb": "prepare", "task": task, "answer": right})
        # The one worker compiles together what comes while it is busy with the first.
        options = ("--bulk", "--allow-unsandboxed", "--no-diagnosis", "--jobs", "1")
        asked = ask(*map(json.dumps, questions), options=options)
        replies = {one["id"]: one for one in asked}
        self.assertIn("--bulk", replies.pop("p")["error"])
        kinds = {name: one["verdict"]["outcome"]["kind"] for name, one in replies.items()}
        self.assertEqual(kinds, {
            "right": "pass", "wrong": "wrong", "undeclared": "compile", "with a macro": "pass",
            "own sizes": "pass", "by PyTorch": "illegal", "by the host": "illegal",
            "another form": "extraction", "no code": "extraction",
        })  # fmt: skip
        self.assertIn("zero", replies["undeclared"]["feedback"])
        self.assertIn("relu is not available", replies["by the host"]["feedback"])
        wrong = replies["wrong"]["verdict"]["outcome"]["trials"][0]["checks"][0]
        self.assertEqual(wrong["diagnosis"], "")

    def test_a_request_goes_in_two_halves_and_can_be_ended(self) -> None:
        call = "        return row_sum_ext"
        endless = HONEST.replace(call, "        while True: pass\n" + call)
        self.assertNotEqual(endless, HONEST)
        command = [MUSACODER, "eval", "--stream", "--backend", "cpu", "--timeout", "600"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdin and child.stdout
            replies = child.stdout

            def send(**request: Any) -> None:
                print(json.dumps(request), file=child.stdin, flush=True)

            def reply() -> Any:
                return json.loads(replies.readline())

            send(id="p", verb="prepare", task=TASK, answer=HONEST)
            prepared = reply()
            send(id="m", verb="measure", prepared=prepared["prepared"])
            self.assertEqual(reply()["reward"], 1.0)
            send(id="late", task=TASK, answer=endless, deadline_s=1)
            self.assertEqual(reply()["kind"], "late")
            send(id="c", task=TASK, answer=endless)
            send(id="c", verb="cancel")
            self.assertEqual(reply()["kind"], "cancelled")
            send(id="next", task=TASK, answer=HONEST)
            self.assertEqual(reply()["reward"], 1.0)
            child.stdin.close()
            self.assertEqual(child.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main()
