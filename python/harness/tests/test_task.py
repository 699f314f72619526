# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import torch

from harness.judge import distributions
from harness.judge.cost import estimate
from harness.judge.shapes import Options, ShapePlanner, prime_below
from harness.judge.task import Task
from harness.worker.wire import Refusal

HEAD = "import torch\nimport torch.nn as nn\n"


def task(constants: str, forward: str, inputs: str, init: str = "", fields: str = "") -> Task:
    arguments = f", {init}" if init else ""
    return Task(f"""{HEAD}
{constants}
class Model(nn.Module):
    def __init__(self{arguments}):
        super().__init__()
        {fields or "pass"}
    def forward(self, *x):
        return {forward}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return [{init}]
""")


class SiteTest(unittest.TestCase):
    def values(self, text: str) -> dict[str, int]:
        return {site.name: site.value for site in Task(HEAD + text).sites}

    def test_it_may_ask_for_general_kernels(self) -> None:
        for text, asks in (
            ("require_general = True", True),
            ("require_general = False", False),
            ("general = True", False),
            ("", False),
        ):
            with self.subTest(text):
                self.assertEqual(Task(text).needs_general, asks)

    def test_sizes_are_found_in_every_form(self) -> None:
        text = """
A = 3
B = 1024 * 8
C, D = 5, 6
E = F = 7
G = (8, 9)
H = [10] * 4
I: int = 11
J = A * 2
K = 1.5
L = "16"
M = 1 << 4
N = -1
def get_inputs():
    return [torch.rand(A, 3, 224)]
"""
        expected = {"A": 3, "B": 8192, "C": 5, "D": 6, "E": 7, "F": 7, "G[0]": 8, "G[1]": 9,
                    "H[0]": 10, "I": 11, "M": 16, "get_inputs:17:30": 224}  # fmt: skip
        self.assertEqual(self.values(text), expected)

    def test_derived_values_follow(self) -> None:
        text = "A = 4\nB = A * 2\nS = (A, 3)\nclass Model: pass\n"
        text += "def get_inputs(): return [B, S]\ndef get_init_inputs(): return []\n"
        module = Task(text).run({"A": 5, "S[1]": 7})
        self.assertEqual(module.get_inputs(), [10, (5, 7)])

    def test_the_task_itself_stays_as_it_is(self) -> None:
        text = "A = B = 4\nclass Model: pass\ndef get_inputs(): return [A, B]\n"
        one = Task(text + "def get_init_inputs(): return []\n")
        self.assertEqual(one.run({"A": 1, "B": 1}).get_inputs(), [1, 1])
        self.assertEqual(one.run({}).get_inputs(), [4, 4])

    def test_uses_are_found_by_scope(self) -> None:
        text = """
A = 20
B = 30
C = 40
D = A
class Model:
    def __init__(self, B):
        self.b = B + C
def get_inputs():
    return [D]
def get_init_inputs():
    return [B, 50]
"""
        used = {site.name: set(site.used_by) for site in Task(text).sites}
        self.assertEqual(used["A"], {"get_inputs"})
        self.assertEqual(used["B"], {"get_init_inputs"})
        self.assertEqual(used["C"], {"Model"})
        self.assertEqual(used["get_init_inputs:12:16"], {"get_init_inputs"})

    def test_a_task_must_be_whole(self) -> None:
        for missing in ("Model", "get_inputs", "get_init_inputs"):
            text = "class Model: pass\ndef get_inputs(): pass\ndef get_init_inputs(): pass\n"
            broken = Task(text.replace(missing, "other"))
            with self.assertRaisesRegex(Refusal, f"does not define {missing}$"):
                broken.run({})


class CostTest(unittest.TestCase):
    def test_a_matrix_product_costs_its_operations(self) -> None:
        one = task("M = 30\nN = 40", "x[0] @ x[1]", "torch.rand(M, N), torch.rand(N, 50)")
        cost = estimate(one, {})
        self.assertEqual(cost.work, 2 * 30 * 40 * 50)
        self.assertEqual(cost.bytes_io, 4 * (30 * 40 + 40 * 50 + 30 * 50))
        self.assertEqual(estimate(one, {"M": 3}).shapes, ((3, 40), (40, 50)))

    def test_nothing_is_allocated(self) -> None:
        one = task("N = 1 << 40", "x[0] + 1", "torch.rand(N, 1024)")
        self.assertGreater(estimate(one, {}).bytes_io, 1 << 50)

    def test_recurrent_layers_by_formula(self) -> None:
        for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            one = task("T = 999", "self.r(x[0])[0]", "torch.rand(T, 2, 8)",
                       fields=f"self.r = nn.{kind}(8, 16, bidirectional=True)")  # fmt: skip
            weights = 2 * gates * 16 * (8 + 16 + 2)
            least = 2 * 999 * 2 * weights
            work = estimate(one, {}).work
            self.assertTrue(least <= work < 1.5 * least, f"{kind} {least} {work}")


_WARM_UP = """
import json, sys, torch
from harness.judge import cost
cost.warm_up()
after_warm_up = "torch._dynamo" in sys.modules
torch._refs.hypot(torch.ones(2), torch.ones(2))
after_another_operator = "torch._dynamo" in sys.modules
import torch._dynamo
torch._refs.true_divide(torch.ones(2), 2)
function = torch._refs.true_divide.__wrapped__.__closure__[0].cell_contents
is_hidden = getattr(getattr(function, "__dynamo_disable"), "_torchdynamo_disable", False)
print(json.dumps([after_warm_up, after_another_operator, is_hidden]))
"""


class WarmUpTest(unittest.TestCase):
    after_warm_up: bool
    after_another_operator: bool
    is_hidden: bool

    @classmethod
    def setUpClass(cls) -> None:
        root = Path(__file__).resolve().parents[3]
        output = subprocess.check_output([sys.executable, "-c", _WARM_UP], cwd=root / "python")
        cls.after_warm_up, cls.after_another_operator, cls.is_hidden = json.loads(output)

    def test_torch_dynamo_is_not_imported(self) -> None:
        self.assertFalse(self.after_warm_up)

    def test_an_operator_that_was_not_called_before_does_not_import_it(self) -> None:
        self.assertFalse(self.after_another_operator)

    def test_functions_are_hidden_from_torch_compile_once_it_is_imported(self) -> None:
        self.assertTrue(self.is_hidden)


class PlanTest(unittest.TestCase):
    def test_it_may_ask_for_general_kernels(self) -> None:
        for text, asks in (
            ("require_general = True", True),
            ("require_general = False", False),
            ("general = True", False),
            ("", False),
        ):
            with self.subTest(text):
                self.assertEqual(Task(text).needs_general, asks)

    def plan(self, one: Task, **options: Any) -> dict[str, dict[str, int]]:
        planner = ShapePlanner(one, Options(**options))
        main = planner.main()
        found = {main.label: dict(main.constants)}
        for shape in planner.variants(main):
            found.setdefault(shape.label, dict(shape.constants))
        return found

    def test_a_task_that_fits_stays_native(self) -> None:
        found = self.plan(task("BATCH = 8\nN = 100", "x[0] * 2", "torch.rand(BATCH, N)"))
        self.assertEqual(found["native"], {"BATCH": 8, "N": 100})
        self.assertEqual(found["ragged"], {"BATCH": 7, "N": 97})
        self.assertEqual(found["small"], {"BATCH": 1, "N": 3})

    def test_the_largest_is_halved_first(self) -> None:
        one = task("BATCH = 64\nN = 1 << 20", "x[0] * 2", "torch.rand(BATCH, N)")
        reduced = self.plan(one)["reduced"]
        self.assertEqual(reduced["BATCH"], 64)
        self.assertLessEqual(64 * reduced["N"] * 8, 8 << 20)

    def test_partners_are_reduced_together(self) -> None:
        one = task(
            "M = 1 << 14\nN = 1 << 14", "x[0] * x[1]", "torch.rand(M, 3000), torch.rand(N, 1)"
        )
        reduced = self.plan(one)["reduced"]
        self.assertEqual(reduced["M"], reduced["N"])

    def test_divisibility_is_kept(self) -> None:
        one = task("DIM = 4096\nHEADS = 12\nT = 4096",
                   "self.a(*[x[0]] * 3)[0]", "torch.rand(T, DIM * 12)", "DIM, HEADS",
                   "self.a = nn.MultiheadAttention(DIM * 12, HEADS)")  # fmt: skip
        found = self.plan(one)
        self.assertEqual(found["reduced"]["HEADS"], 12)

    def test_ratios_that_the_model_divides_by_are_kept(self) -> None:
        def norm(channels: int, groups: int, batch: int) -> dict[str, int]:
            sizes = f"BATCH = {batch}\nC = {channels}\nGROUPS = {groups}"
            layers = "self.f, self.n = nn.Linear(C, C), nn.GroupNorm(GROUPS, C)"
            inputs = "torch.rand(BATCH, C)"
            return self.plan(task(sizes, "self.n(self.f(x[0]))", inputs, "C, GROUPS", layers))[
                "reduced"
            ]

        many = norm(8192, 512, 1024)
        self.assertEqual((many["C"], many["C"] // many["GROUPS"]), (1024, 16))
        few = norm(4096, 8, 4096)
        self.assertTrue(few["GROUPS"] >= 4 and few["C"] // few["GROUPS"] >= 16, few)
        tiny = norm(4096, 1024, 4096)
        self.assertEqual(tiny["C"] // tiny["GROUPS"], 4)

    def test_smaller_sizes_for_what_is_slow(self) -> None:
        one = task("BATCH = 64\nN = 1 << 20", "x[0] * 2", "torch.rand(BATCH, N)")
        planner = ShapePlanner(one, Options())
        main, sizes = planner.main(), []
        for label in ("1/512", "1/64", "1/8"):
            shape = planner.other(label)
            assert shape is not None and shape.cost is not None and main.cost is not None
            self.assertEqual(shape.label, label)
            ratio = main.cost.bytes_io / shape.cost.bytes_io
            divisor = int(label.removeprefix("1/"))
            self.assertTrue(divisor <= ratio <= 4 * divisor, f"{label} {ratio}")
            sizes.append(shape.cost.bytes_io)
        self.assertEqual(sizes, sorted(sizes))
        fixed = task("", "x[0] * 2", "torch.rand(4, 3)")
        self.assertIsNone(ShapePlanner(fixed, Options()).other("1/8"))

    def test_named_sizes_stay_where_that_can_be_tried(self) -> None:
        one = task("B = 1 << 16\nM = 1 << 11", "x[0] @ x[1]", "torch.rand(B, M), torch.rand(M, M)")
        planner = ShapePlanner(one, Options())
        self.assertIsNone(planner.other("native"))
        shape = planner.other("named", [1 << 11])
        assert shape is not None
        self.assertEqual((shape.label, shape.constants["M"]), ("named", 1 << 11))
        self.assertLess(shape.constants["B"], 1 << 16)
        self.assertIsNone(planner.other("named", [1 << 11, 1 << 16]))
        self.assertIsNone(planner.other("named", []))

    def test_sizes_that_the_model_reads_are_not_changed(self) -> None:
        found = self.plan(task("N = 40\nK = 64", "x[0] * K", "torch.rand(N, 3)"))
        self.assertTrue(all(constants["K"] == 64 for constants in found.values()))

    def test_structural_constants_are_not_sizes(self) -> None:
        one = task("N = 40\nKERNEL_SIZE = 5\ndim = 1", "x[0].unfold(0, k, 1).sum(d)",
                   "torch.rand(N, 3)", "KERNEL_SIZE, dim")  # fmt: skip
        names = [site.name for site in ShapePlanner(one, Options())._sites]
        self.assertEqual(names, ["N"])

    def test_too_large_is_unsupported(self) -> None:
        one = task("K = 1 << 26", "x[0] * torch.ones(K, 1, device=x[0].device)", "torch.rand(1, 9)")
        with self.assertRaises(Refusal) as raised:
            self.plan(one)
        self.assertEqual(raised.exception.kind, "unsupported")

    def test_primes(self) -> None:
        for value in range(3, 500):
            prime = prime_below(value)
            between = [n for n in range(prime, value) if all(n % d for d in range(2, n))]
            self.assertEqual(between, [prime])


class DefaultDeviceTest(unittest.TestCase):
    def test_a_default_device_of_a_task_applies_only_to_its_own_code(self) -> None:
        given = task('torch.set_default_device("cuda")', "x[0] * 2", "torch.rand(37, 65)")
        cuda = torch.device("cuda")  # Nothing stands in for it, as on a GPU.
        for is_first in (True, False):
            with given.running(cuda):
                if is_first:
                    given.run({})
                context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context")
                self.assertEqual(context.device, cuda)
            self.assertEqual(torch.empty(1).device.type, "cpu")
            self.assertEqual(estimate(given, {}).bytes_io, 2 * 37 * 65 * 4)
        self.assertEqual(torch.empty(1).device.type, "cpu")


class DistributionTest(unittest.TestCase):
    def test_each_does_what_it_says(self) -> None:
        x = torch.randn(64, 64)
        changed = {name: distributions.apply(name, [x])[0] for name in distributions.TRANSFORMS}
        self.assertTrue(bool((changed["negative"] <= 0).all()))
        self.assertGreater(changed["large"].max(), 100)
        self.assertTrue(torch.equal(changed["integers"], changed["integers"].round()))
        self.assertTrue(0.6 < (changed["sparse"] == 0).float().mean() < 0.9)
        positive = torch.rand(64, 64)
        signed = distributions.apply("signed", [positive])[0]
        self.assertTrue(0.3 < (signed < 0).float().mean() < 0.7)

    def test_structure_in_the_values_stays(self) -> None:
        x = torch.randn(9, 9)
        x = (x + x.t()).tril() + (x + x.t()).tril(-1).t()
        for name in distributions.TRANSFORMS:
            y = distributions.apply(name, [x])[0]
            self.assertTrue(torch.equal(y, y.t()), name)

    def test_labels_masks_and_integers_are_left_alone(self) -> None:
        fixed = [torch.tensor([1.0, -1.0, 1.0, -1.0]), torch.arange(9), torch.ones(9) > 0,
                 torch.tensor([0.5, -torch.inf, 1.0, 2.0, 3.0])]  # fmt: skip
        self.assertFalse(distributions.can_change(fixed))
        for name in distributions.TRANSFORMS:
            for old, new in zip(fixed, distributions.apply(name, fixed)):
                self.assertTrue(torch.equal(old, new))

    def test_half_precision_stays_finite(self) -> None:
        x = torch.randn(4096, dtype=torch.float16) * 100
        for name in distributions.TRANSFORMS:
            self.assertTrue(bool(distributions.apply(name, [x])[0].isfinite().all()), name)

    def test_squares_of_half_precision_stay_finite(self) -> None:
        for dtype in (torch.float16, torch.bfloat16):
            x = torch.randn(1 << 16, dtype=dtype)
            for name in distributions.TRANSFORMS:
                changed = distributions.apply(name, [x])[0]
                self.assertTrue(bool(changed.half().square().isfinite().all()), name)
            # Without the maximum subtracted, fp32 cannot hold the exponentials.
            large = distributions.apply(distributions.LARGE, [x])[0]
            self.assertTrue(bool(large.float().exp().isinf().any()))
            # The task's own large values are not clamped.
            name = "negative" + distributions.WITHOUT_ZEROS
            far = distributions.apply(name, [100 * x])[0]
            self.assertEqual(far.min(), -(100 * x).abs().max())


if __name__ == "__main__":
    unittest.main()
