# SPDX-License-Identifier: Apache-2.0
"""The forms that tasks come in, judged against their own program as the candidate."""

from __future__ import annotations

import os
import re
import unittest
from typing import Any

import torch

from harness.candidate.process import CandidateProcess
from harness.judge import cost
from harness.judge.judge import Judge
from harness.worker.wire import Question, Refusal

HEAD = "import torch\nimport torch.nn as nn\n"
NAMES = re.compile(r"^class (\w+)", re.MULTILINE)


def task(body: str, inputs: str = "[torch.rand(4, 4, 4, 4)]", init: str = "[[], {}]") -> str:
    makers = f"def get_inputs():\n    return {inputs}\ndef get_init_inputs():\n    return {init}\n"
    return f"{HEAD}{body}\n{makers}"


def model(forward: str, name: str = "Model", init: str = "", names: str = "x") -> str:
    head = f"class {name}(nn.Module):\n"
    if init:
        head += f"    def __init__(self, {init}\n"
    return head + f"    def forward(self, {names}):\n        {forward}\n"


def checks_of(source: str, candidate: str, **options: Any) -> list[dict[str, Any]]:
    """The judge's answer for each trial, with the distribution."""
    judge, one = Judge(), CandidateProcess()
    judge.answer(Question({"op": "open", "source": source, "options": options}))
    plan = judge.answer(Question({"op": "begin", "seed": 5})).body["plan"]
    policy = {"name": "", "device_allowed": ["*"], "host_allowed": ["*"], "init_allowed": []}
    load = {"source": candidate, "artifacts": {}, "policy": policy, "schedule_seed": 0}
    compile_before = torch.compile
    one.answer(Question({"op": "load", **load}))
    torch.compile = compile_before
    found = []
    for trial in plan["trials"]:
        shape = trial["shape"]
        init = judge.answer(Question({"op": "init", "shape": shape}))
        one.answer(Question({"op": "build", "shape": shape, **init.body}, [*init.descriptors]))
        os.close(init.descriptors[0])
        given = judge.answer(Question({"op": "trial", "index": trial["index"]}))
        run = {"inputs": given.body["inputs"], "written": given.body["written"]}
        ran = one.answer(Question({"op": "run", "shape": shape, **run}, [*given.descriptors]))
        returned = {name: ran.body[name] for name in ("outputs", "buffers")}
        question = Question(
            {"op": "check", "index": trial["index"], **returned}, [*ran.descriptors]
        )
        found.append({**trial, **judge.answer(question).body})
        os.close(ran.descriptors[0])
    return found


def failed(source: str, candidate: str, **options: Any) -> set[str]:
    """The distributions under which a candidate fails."""
    checks = checks_of(source, candidate, **options)
    return {check["distribution"] for check in checks if not check["passed"]}


def passed(source: str, candidate: str) -> set[str]:
    checks = checks_of(source, candidate)
    return {check["distribution"] for check in checks if check["passed"]}


def as_candidate(source: str, name: str = "Model") -> str:
    return re.sub(rf"\b{name}\b", "ModelNew", source)


def setUpModule() -> None:
    cost.warm_up()  # Like in a zygote: PyTorch's imports must precede the stand-ins for CUDA.


class Forms(unittest.TestCase):
    def passes(self, source: str, name: str = "Model") -> None:
        self.assertEqual(failed(source, as_candidate(source, name)), set())

    def test_arguments_by_place_and_by_name(self) -> None:
        scaled = model("return x * self.a + self.b", init="a=1, b=0):\n        super().__init__()\n"
                       "        self.a, self.b = a, b")  # fmt: skip
        for init in ('[[], {"a": 3, "b": 2}]', '[[3], {"b": 2}]', "[[3, 2], {}]", "[3, 2]",
                     '{"a": 3, "b": 2}', "(3, 2)"):  # fmt: skip
            with self.subTest(init):
                self.passes(task(scaled, init=init))

    def test_a_list_and_a_dict_may_be_two_arguments(self) -> None:
        body = model("return x * self.sizes[1] + self.how['b']",
                     init="sizes, how):\n        super().__init__()\n"
                     "        self.sizes, self.how = sizes, how")  # fmt: skip
        self.passes(task(body, init='[[4, 8], {"b": 2}]'))

    def test_a_model_of_another_name_beside_its_layers(self) -> None:
        layer = model("return torch.tanh(x)", "Layer")
        net = model("return self.layer(x) * 2", "Net", "scale=1):\n        super().__init__()\n"
                    "        self.layer = Layer()")  # fmt: skip
        base = "class Base(nn.Module):\n    pass\n"
        self.passes(task(base + layer + net), "Net")
        self.passes(task(net + layer), "Net")

    def test_the_model_that_accepts_the_arguments_is_chosen(self) -> None:
        other = model("return x + y", "Other", names="x, y")
        self.passes(task(other + model("return x.exp()", "Net")), "Net")

    def test_two_matching_models_are_reported(self) -> None:
        both = task(model("return x", "One") + model("return x + 1", "Two"))
        with self.assertRaisesRegex(Refusal, "One, Two: --entry-point") as caught:
            checks_of(both, "")
        self.assertEqual(caught.exception.kind, "task")
        named = both + "\nModel = Two\n"
        self.assertEqual(failed(named, HEAD + model("return x + 1", "ModelNew")), set())

    def test_inputs_alone_by_name_and_nested(self) -> None:
        self.passes(task(model("return x * 2"), "torch.rand(37, 65)"))
        self.passes(task(model("return x * 2 + y", names="x, y"),
                         '{"y": torch.rand(8, 9), "x": torch.rand(8, 9)}'))  # fmt: skip
        self.passes(task(model("return x['a'] * x['b']"),
                         '[{"a": torch.rand(8, 9), "b": torch.rand(8, 9)}]'))  # fmt: skip
        self.passes(task(model("return x['a'] * x['b']"),
                         '{"a": torch.rand(8, 9), "b": torch.rand(8, 9)}'))  # fmt: skip

    def test_settings_with_attributes(self) -> None:
        body = model("return x * self.scale", init="config):\n        super().__init__()\n"
                     "        self.scale = config.scale")  # fmt: skip
        helpers = "from _paritybench_helpers import _mock_config\n"
        self.passes(helpers + task(body, init='[[], {"config": _mock_config(scale=3)}]'))
        names = "from types import SimpleNamespace\n"
        self.passes(names + task(body, init="[SimpleNamespace(scale=3)]"))

    def test_cuda_in_a_task_without_a_device(self) -> None:
        for inputs in ("[torch.rand(37, 65).cuda()]", '[torch.rand(37, 65, device="cuda")]',
                       '[torch.rand(37, 65, device="cuda:0", generator='
                       'torch.Generator(device="cuda").manual_seed(3))]'):  # fmt: skip
            with self.subTest(inputs):
                source = task(model("assert x.is_cuda\n        return x * 2"), inputs)
                self.assertEqual(failed(source, HEAD + model("return x * 2", "ModelNew")), set())
        default = HEAD + 'torch.set_default_device("cuda")\n'
        source = default + task(model("return x * 2"), "[torch.rand(64, 65)]")
        self.assertEqual(failed(source, HEAD + model("return x * 2", "ModelNew")), set())
        self.assertEqual(torch.empty(1).device.type, "cpu")
        self.assertFalse(torch.cuda.is_available())

    def test_small_floats(self) -> None:
        for dtype in ("float8_e4m3fn", "float8_e5m2"):
            with self.subTest(dtype):
                self.passes(task(model("return x.float() * 2 + 1"),
                                 f"[torch.randn(64, 96).to(torch.{dtype})]"))  # fmt: skip
                self.passes(task(model(f"return (x * 2).to(torch.{dtype})"),
                                 "[torch.randn(64, 96)]"))  # fmt: skip

    def test_numbers_and_nothing_as_outputs(self) -> None:
        number = task(model("return (x * 2 + 1).sum().item()"), "[torch.rand(7, 5)]")
        self.passes(number)
        wrong = as_candidate(number.replace("* 2", "* 3"))
        self.assertIn("native", failed(number, wrong))
        self.passes(task(model("return x * 2, None, 3")))

    def test_an_output_in_an_argument(self) -> None:
        source = task(model("out.copy_(a + b)", names="a, b, out"),
                      "[torch.randn(8, 96), torch.randn(8, 96), torch.empty(8, 96)]")  # fmt: skip
        self.passes(source)
        for other in ("pass", "out.copy_(a - b)", "out.zero_()", "return out.copy_(a + b)"):
            candidate = as_candidate(source.replace("out.copy_(a + b)", other))
            self.assertIn("native", failed(source, candidate), other)

    def test_a_task_that_cannot_be_judged_says_why(self) -> None:
        cases = {
            ("unsupported", "sparse_csr"): task(
                model("return x.to_dense()"), "[torch.rand(16, 16).relu().to_sparse_csr()]"
            ),
            ("task", "it needs the package no_such"): "import no_such\n" + task(model("return x")),
            ("task", "ZeroDivisionError: .*"): task(model("return 1 // 0")),
            ("task", "SyntaxError"): task(model("return (")),
            ("unsupported", "what forward returns: a value of type set"): task(model("return {x}")),
        }
        for (kind, why), source in cases.items():
            with self.subTest(why), self.assertRaisesRegex(Refusal, why) as caught:
                checks_of(source, "")
            self.assertEqual(caught.exception.kind, kind)

    def test_buffers_that_the_reference_changes(self) -> None:
        norm = "x):\n        super().__init__()\n        self.bn = nn.BatchNorm1d(x)"
        source = task(model("return self.bn(x)", init=norm), "[torch.randn(64, 10)]", "[10]")
        self.passes(source)
        still = source.replace(
            "self.bn(x)",
            "nn.functional.batch_norm(x, None, None, self.bn.weight, self.bn.bias, True)",
        )
        self.assertEqual(passed(source, as_candidate(still)), set())
        held = still.replace("nn.BatchNorm1d(x)", "nn.BatchNorm1d(x, track_running_stats=False)")
        checks = checks_of(source, as_candidate(held))
        self.assertEqual(passed(source, as_candidate(held)), set())
        self.assertEqual(
            {found["path"] for found in checks[0]["checks"]},
            {"buffer bn.running_mean", "buffer bn.running_var"},
        )

    def test_parameters_that_a_call_changes(self) -> None:
        linear = "x):\n        super().__init__()\n        self.linear = nn.Linear(x, x)"
        source = task(model("return self.linear(x)", init=linear), "[torch.randn(64, 10)]", "[10]")
        doubles = source.replace(
            "return self.linear(x)",
            "y = self.linear(x)\n        self.linear.weight.data.mul_(2)\n        return y",
        )
        checks = checks_of(source, as_candidate(doubles))
        self.assertLessEqual(passed(source, as_candidate(doubles)), {"nan"})
        self.assertEqual(
            {found["path"] for found in checks[0]["checks"]}, {"linear.weight after the call"}
        )

    def test_parameters_that_the_reference_changes_are_free(self) -> None:
        linear = "x):\n        super().__init__()\n        self.linear = nn.Linear(x, x)"
        clamps = "self.linear.weight.data.clamp_(-0.1, 0.1)\n        return self.linear(x)"
        source = task(model(clamps, init=linear), "[torch.randn(64, 10)]", "[10]")
        self.passes(source)


class Values(unittest.TestCase):
    def test_zero_is_among_the_values(self) -> None:
        source = task(model("return x * torch.sigmoid(x)"), "[torch.randn(32, 100)]")
        wrong = source.replace("return x *", "x = torch.where(x == 0, 9.0, x)\n        return x *")
        # One of the last three is drawn; all of them hold zeros.
        self.assertEqual(len(failed(source, as_candidate(wrong))), 4)

    def test_a_reference_that_zero_breaks_gets_none(self) -> None:
        source = task(model("return 1 / x"), "[torch.rand(32, 100) + 0.1]")
        checks = checks_of(source, as_candidate(source))
        self.assertTrue(all(check["passed"] for check in checks))
        self.assertTrue(any("without zeros" in check["distribution"] for check in checks))

    def test_indices_of_extrema_stay_defined(self) -> None:
        source = task(model("return x.argmax(1)"), "[torch.rand(32, 100)]")
        last = "return x.shape[1] - 1 - x.flip(1).argmax(1)"
        candidate = as_candidate(source.replace("return x.argmax(1)", last))
        self.assertEqual(failed(source, candidate), set())

    def test_sorted_inputs_stay_sorted(self) -> None:
        source = task(
            model("return torch.searchsorted(s, v)", names="s, v"),
            "[torch.sort(torch.randn(513))[0], torch.randn(300)]",
        )
        by_count = "return (s[None, :] < v[:, None]).sum(1)"
        by_halves = (
            "low, n = torch.zeros(v.shape, dtype=torch.long), s.numel()\n"
            "        for step in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1):\n"
            "            there = low + step\n"
            "            fits = (there <= n) & (s[there.clamp(max=n) - 1] < v)\n"
            "            low = torch.where(fits, there, low)\n"
            "        return low"
        )
        for forward in (by_count, by_halves):
            candidate = source.replace("return torch.searchsorted(s, v)", forward)
            self.assertEqual(failed(source, as_candidate(candidate)), set())

    def test_a_maximum_passes_nan_on(self) -> None:
        source = task(model("return x.amax(1)"), "[torch.randn(32, 100)]")
        self.assertEqual(failed(source, as_candidate(source)), set())
        drops = source.replace("x.amax(1)", "x.nan_to_num(-1e30, 1e30, -1e30).amax(1)")
        self.assertEqual(failed(source, as_candidate(drops)), {"nonfinite"})

    def test_a_sum_passes_nan_on(self) -> None:
        source = task(model("return (x * 3).sum(1)"), "[torch.randn(32, 100)]")
        self.assertEqual(failed(source, as_candidate(source)), set())
        drops = source.replace("x * 3", "x.nan_to_num(0.0) * 3")
        self.assertEqual(failed(source, as_candidate(drops)), {"nan"})
        spreads = source.replace("return (x", "x = x + 0 * x.sum()\n        return (x")
        self.assertEqual(failed(source, as_candidate(spreads)), set())

    def test_a_clamp_and_a_running_maximum_may_drop_nan(self) -> None:
        for forward in ("x.relu()", "x.sum(1).clamp(0, 6)", "x.sigmoid()", "x.softmax(1)"):
            source = task(model(f"return {forward}"), "[torch.randn(32, 100)]")
            names = {check["distribution"] for check in checks_of(source, as_candidate(source))}
            self.assertFalse(names & {"nan", "nonfinite"}, forward)


if __name__ == "__main__":
    unittest.main()
