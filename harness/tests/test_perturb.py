# SPDX-License-Identifier: Apache-2.0
"""Each check runs in a child of a zygote, since `perturb.install` patches torch for good."""

from __future__ import annotations

import multiprocessing
import unittest
from collections.abc import Callable
from typing import Any

import torch

from harness.worker import perturb, region
from harness.worker.program import construct


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.one = torch.nn.BatchNorm2d(4)
        self.two = torch.nn.BatchNorm2d(4)
        self.norm = torch.nn.LayerNorm(4)
        self.attention = torch.nn.MultiheadAttention(4, 2)
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.large = torch.nn.Parameter(torch.full((3,), 1e9))
        self.count = torch.nn.Parameter(torch.ones(3, dtype=torch.int64), requires_grad=False)
        self.register_buffer("mask", torch.ones(3))


class Renamed(torch.nn.Module):
    """The same layers under other names, with a weight repacked in the constructor."""

    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(4, 4)
        self.b = torch.nn.BatchNorm2d(4)
        self.c = torch.nn.BatchNorm2d(4)
        variance = self.get_buffer("c.running_var")
        self.folded = self.c.weight.detach() / (variance + 1e-5).sqrt()


class Sent(torch.nn.Module):
    """A parameter, and what is read where it was sent to."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = torch.nn.Parameter(torch.ones(1))
        tree, descriptor = region.pack(self.sent)
        self.read = region.unpack(tree, region.Snapshot(descriptor, 1 << 20))


def state(model: Callable[[], torch.nn.Module], seed: int) -> dict[str, Any]:
    """A model's state as lists, made in a process of its own."""
    mine, theirs = multiprocessing.Pipe(False)

    def run() -> None:
        perturb.install(seed)
        made = construct(model, [], seed)
        values = {name: tensor.tolist() for name, tensor in made.state_dict().items()}
        values["random"] = torch.rand(1).item()
        if isinstance(made, Renamed):
            values["folded"] = made.folded.tolist()
        theirs.send(values)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    theirs.close()
    values: dict[str, Any] = mine.recv()
    process.join()
    return values


class PerturbTest(unittest.TestCase):
    def test_two_processes_agree_bit_for_bit(self) -> None:
        self.assertEqual(state(Net, 5), state(Net, 5))
        self.assertNotEqual(state(Net, 5)["one.weight"], state(Net, 6)["one.weight"])

    def test_constants_are_no_longer_constant(self) -> None:
        found = state(Net, 5)
        for name in (
            "one.weight",
            "one.bias",
            "one.running_mean",
            "one.running_var",
            "norm.weight",
            "norm.bias",
            "attention.in_proj_bias",
            "attention.out_proj.bias",
            "scale",
        ):
            with self.subTest(name):
                self.assertEqual(len(set(found[name])), len(found[name]))
        self.assertGreater(min(found["one.running_var"]), 0.5)
        self.assertNotEqual(found["one.weight"], found["two.weight"])

    def test_other_things_stay(self) -> None:
        found = state(Net, 5)
        self.assertEqual(found["mask"], [1.0] * 3)
        self.assertEqual(found["count"], [1] * 3)
        self.assertEqual(found["large"], [1e9] * 3)
        self.assertEqual(found["one.num_batches_tracked"], 0)

    def test_names_do_not_matter(self) -> None:
        one, two = state(Net, 5), state(Renamed, 5)
        self.assertEqual(one["linear.weight"], two["a.weight"])
        self.assertEqual(one["two.running_var"], two["c.running_var"])
        pairs = zip(one["two.weight"], one["two.running_var"])
        folded = [weight / (variance + 1e-5) ** 0.5 for weight, variance in pairs]
        for expected, got in zip(folded, two["folded"]):
            self.assertAlmostEqual(expected, got, places=5)

    def test_a_parameter_is_read_as_it_was_sent(self) -> None:
        found = state(Sent, 5)
        self.assertNotEqual(found["sent"], [1.0])
        self.assertEqual(found["read"], found["sent"])

    def test_the_global_generator_is_not_touched(self) -> None:
        class Plain(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.norm = torch.nn.LayerNorm(4)

        torch.manual_seed(9)
        expected = torch.rand(1).item()
        self.assertEqual(state(Plain, 9)["random"], expected)


if __name__ == "__main__":
    unittest.main()
