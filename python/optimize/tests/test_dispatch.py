# SPDX-License-Identifier: Apache-2.0
"""Tests when an optimized module runs its kernels, and when the original.

There is no GPU here: tensors report that they are on a GPU, and the "kernels" are PyTorch operators
that count their calls.
"""

from __future__ import annotations

import copy
import sys
import unittest
import warnings
from types import ModuleType
from typing import Any
from unittest import mock

import torch

from optimize.module_text import module_text, quoted

TASK = """\
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, width, factor=2.0):
        super(Scale, self).__init__()
        self.factor = factor
        self.inner = nn.Linear(width, width)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x, times=1):
        return self.inner(x) * self.factor * times


rows = 6
width = 8
depth = 3


def get_inputs():
    return [torch.randn(rows, depth, width)]


def get_init_inputs():
    return [width]
"""
KERNELS = '''\
from __future__ import annotations
import dataclasses
import torch


@dataclasses.dataclass
class Launch:
    threads: int


calls = []


class ModelNew(torch.nn.Module):
    """Its own buffer has no counterpart."""

    def __init__(self, width, factor=2.0):
        super().__init__()
        self.factor = factor
        self.inner = torch.nn.Linear(width, width)
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(3))

    def forward(self, x):
        calls.append(x)
        self.seen = self.seen + 1
        return self.inner(x) * self.factor
'''


# The depth is the same in all trials.
SIZES = {
    "native": {"rows": 6, "width": 8, "depth": 3},
    "ragged": {"rows": 5, "width": 7, "depth": 3, "get_inputs:9:30": 17},
}


def verdict(**changes: Any) -> dict[str, Any]:
    shapes = changes.get("shapes", ["native", "ragged"])
    return {
        "protocol": {"mode": changes.get("mode", "eval")},
        "outcome": {
            "generality": changes.get("generality", 1),
            "trials": [
                {"shape": shape, "passed": True, "constants": SIZES[shape]} for shape in shapes
            ],
        },
        "telemetry": {"reduction": {"reason": changes.get("reason", "")}},
    }


class Dispatch(unittest.TestCase):
    def setUp(self) -> None:
        stream = object()
        for owner, name, value in (
            (torch.Tensor, "is_cuda", property(lambda tensor: True)),
            (torch.cuda, "is_available", lambda: True),
            (torch.cuda, "current_device", lambda: None),
            (torch.cuda, "current_stream", lambda: stream),
            (torch.cuda, "default_stream", lambda: stream),
        ):
            patch = mock.patch.object(owner, name, value, create=True)
            patch.start()
            self.addCleanup(patch.stop)
        no_grad = torch.no_grad()
        no_grad.__enter__()
        self.addCleanup(no_grad.__exit__, None, None, None)
        self.module = self.made()
        self.model = self.module.Scale(8).eval()
        self.x = torch.randn(6, 3, 8)

    def made(self, kernels: str = KERNELS, **changes: Any) -> Any:
        """The optimized module, imported."""
        text = module_text(TASK, "Scale", kernels, verdict(**changes))
        module = ModuleType("scale_optimized")
        sys.modules[module.__name__] = module
        for name in (module.__name__, f"{module.__name__}_kernels"):
            self.addCleanup(sys.modules.pop, name, None)
        exec(compile(text, "scale_optimized.py", "exec"), module.__dict__)
        return module

    def why(self, *args: Any, model: Any = None, **kwargs: Any) -> str:
        model = self.model if model is None else model
        why: str = sys.modules["scale_optimized"].__dict__["why_original"](model, *args, **kwargs)
        expected = type(model).forward.__wrapped__(model, *args, **kwargs)
        self.assertTrue(torch.equal(model(*args, **kwargs), expected))
        return why

    def test_kernels_run_verified_calls(self) -> None:
        self.assertEqual(self.why(self.x), "")
        self.assertEqual(self.why(x=self.x), "")
        self.assertEqual(self.model.seen.item(), 2, "a buffer that the kernels replace is lost")

    def test_they_see_each_change_of_the_state(self) -> None:
        self.assertEqual(self.why(self.x), "")
        state = {name: value + 1 for name, value in self.model.state_dict().items()}
        self.model.load_state_dict(state)
        self.assertEqual(self.why(self.x), "")
        self.model.load_state_dict(state, assign=True)
        self.assertEqual(self.why(self.x), "")
        self.model.inner = torch.nn.Linear(8, 8)
        self.assertEqual(self.why(self.x), "")
        twin = copy.deepcopy(self.model)
        torch.nn.init.ones_(twin.inner.weight)
        self.assertEqual(self.why(self.x, model=twin), "")

    def test_the_original_runs_all_other_calls(self) -> None:
        with torch.enable_grad():
            self.assertEqual(self.why(self.x), "gradients are needed")
            for parameter in self.model.parameters():
                parameter.requires_grad_(False)
            self.assertEqual(self.why(self.x), "")
        self.assertIn("not contiguous", self.why(torch.randn(8, 3, 6).transpose(0, 2)))
        self.assertIn("not contiguous", self.why(torch.randn(145)[1:].view(6, 3, 8)))
        self.assertIn("number of dimensions", self.why(torch.randn(6, 8)))
        self.assertIn("number of dimensions", self.why(torch.randn(0, 3, 8)))
        self.assertIn("other arguments", self.why(self.x, 3))
        self.assertIn("other arguments", self.why(self.x, times=3))
        self.assertIn("call .eval()", self.why(self.x, model=self.module.Scale(8)))
        self.model.double()
        self.assertIn("another dtype", self.why(self.x.double()))

    def test_parameters_of_another_dtype(self) -> None:
        self.model.inner.half()
        reason = self.module.why_original(self.model, self.x)
        self.assertIn("weight has another dtype", reason)

    def test_constants_stay_as_they_are(self) -> None:
        self.why(self.x)
        self.assertEqual((self.module.rows, self.module.width), (6, 8))

    def test_other_sizes_need_general_kernels(self) -> None:
        wide, y = self.module.Scale(12).eval(), torch.randn(9, 3, 12)
        self.assertEqual(self.why(y, model=wide), "")
        deep = torch.randn(6, 4, 8)
        self.assertIn("another shape", self.why(deep), "a size that was never varied")
        for changes in ({"generality": 0.5}, {"shapes": ["native"]}):
            with self.subTest(**changes):
                module = self.made(**changes)
                self.assertEqual(self.why(self.x, model=module.Scale(8).eval()), "")
                self.assertIn(
                    "another shape", self.why(torch.randn(5, 3, 8), model=module.Scale(8).eval())
                )
                self.assertIn("constructor", self.why(y, model=module.Scale(12).eval()))

    def test_other_constructor_arguments_than_sizes(self) -> None:
        self.assertIn("constructor", self.why(self.x, model=self.module.Scale(8, 3.0).eval()))
        self.assertEqual(self.why(self.x, model=self.module.Scale(8, factor=2.0).eval()), "")

    def test_reduced_sizes_only(self) -> None:
        module = self.made(reason="too large", generality=0.5)
        self.assertIn("reduced sizes", self.why(self.x, model=module.Scale(8).eval()))
        module = self.made(reason="too large")
        self.assertEqual(self.why(self.x, model=module.Scale(8).eval()), "")

    def test_a_class_that_derives(self) -> None:
        derived = type("Derived", (self.module.Scale,), {})
        self.assertIn("derives", self.why(self.x, model=derived(8).eval()))

    def test_parameters_that_were_added(self) -> None:
        model = self.module.Scale(8)
        model = copy.deepcopy(model).eval()
        model.extra = torch.nn.Parameter(torch.ones(1))
        self.assertIn("other parameters", self.why(self.x, model=model))

    def test_another_stream(self) -> None:
        with mock.patch.object(torch.cuda, "current_stream", object):
            self.assertIn("default stream", self.why(self.x))
            module = self.made(KERNELS + "# at::cuda::getCurrentCUDAStream()\n")
            self.assertEqual(self.why(self.x, model=module.Scale(8).eval()), "")

    def test_kernels_that_do_not_compile_are_one_warning(self) -> None:
        module = self.made("raise RuntimeError('no nvcc')\n")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            models = [module.Scale(8).eval() for _ in range(2)]
        self.assertEqual(len(seen), 1)
        self.assertIn("no nvcc", str(seen[0].message))
        for model in models:
            self.assertIn("no nvcc", self.why(self.x, model=model))

    def test_random_numbers_are_those_of_the_original(self) -> None:
        torch.manual_seed(3)
        ours = self.module.Scale(8).inner.weight, torch.rand(1)
        torch.manual_seed(3)
        plain: dict[str, Any] = {"__name__": "plain"}
        exec(TASK, plain)
        theirs = plain["Scale"](8).inner.weight, torch.rand(1)
        for one, other in zip(ours, theirs):
            self.assertTrue(torch.equal(one, other))


class Quoted(unittest.TestCase):
    def test_a_text_comes_back_whatever_it_holds(self) -> None:
        for text in (
            "x", "", "'''", '"""', "'''\"\"\"", "a\\", "a\\n\n", "'", '"', "\r\n", "\\'''", "é\0",
        ):  # fmt: skip
            with self.subTest(repr(text)):
                self.assertEqual(eval(quoted(text)), text)


if __name__ == "__main__":
    unittest.main()
