# SPDX-License-Identifier: Apache-2.0
"""Constants are disturbed while a model is constructed, and nothing else is."""

from __future__ import annotations

import copy
import unittest
from collections.abc import Callable
from typing import Any

import torch

from harness.worker import region
from harness.worker.perturb import Constants
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
    """A parameter, and the value that its recipient reads."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = torch.nn.Parameter(torch.ones(1))
        tree, descriptor = region.pack(self.sent)
        self.read = region.unpack(tree, region.Snapshot(descriptor, 1 << 20))


class Own(torch.nn.Module):
    """The parameters of a LayerNorm, without the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.ones(4))
        self.beta = torch.nn.Parameter(torch.zeros(4))


class Columns(torch.nn.Module):
    """The same with axes of length 1, as a bias of channels has them."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.ones(4, 1, 1))
        self.beta = torch.nn.Parameter(torch.zeros(1, 4))


class Norm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)


class Scale(torch.nn.Module):
    """A parameter of one element, which stays constant, and a copy of it."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(1.5))
        self.again = torch.nn.Parameter(self.scale.data.clone())


def state(model: Callable[[], torch.nn.Module], seed: int) -> dict[str, Any]:
    """A model's state and its constructor's other results, as lists."""
    made = construct(model, [[], {}], seed)
    values = {name: tensor.tolist() for name, tensor in made.state_dict().items()}
    values["random"] = torch.rand(1).item()
    if isinstance(made, Renamed):
        values["folded"] = made.folded.tolist()
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

    def test_other_values_are_unchanged(self) -> None:
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

    def test_own_parameters_get_what_a_layer_gets(self) -> None:
        norm = state(Norm, 5)
        own = state(Own, 5)
        self.assertEqual(own["gamma"], norm["norm.weight"])
        self.assertEqual(own["beta"], norm["norm.bias"])

    def test_axes_of_length_1_do_not_matter(self) -> None:
        norm = state(Norm, 5)
        columns = construct(Columns, [[], {}], 5).state_dict()
        self.assertEqual(columns["gamma"].flatten().tolist(), norm["norm.weight"])
        self.assertEqual(columns["beta"].flatten().tolist(), norm["norm.bias"])

    def test_what_the_reference_does_not_have_is_left_alone(self) -> None:
        reference, both = Constants(), type("Both", (Own,), {})
        construct(Scale, [[], {}], 5, reference)
        candidate = construct(both, [[], {}], 5, Constants(reference.noted)).state_dict()
        self.assertEqual(candidate["gamma"].tolist(), [1.0] * 4)
        same = construct(Scale, [[], {}], 5, Constants(reference.noted)).state_dict()
        self.assertNotEqual(same["scale"].item(), 1.5)

    def test_what_is_copied_is_disturbed_once(self) -> None:
        made = construct(Scale, [[], {}], 5)
        scale, again = made.state_dict().values()
        self.assertNotEqual(scale.item(), 1.5)
        self.assertEqual(again.item(), scale.item())
        self.assertEqual(copy.deepcopy(made).double().state_dict()["scale"].item(), scale.item())
        self.assertEqual(torch.nn.Parameter(torch.ones(1)).item(), 1.0)
        self.assertEqual(torch.nn.LayerNorm(2).weight.tolist(), [1.0, 1.0])

    def test_a_parameter_is_read_as_it_was_sent(self) -> None:
        found = state(Sent, 5)
        self.assertNotEqual(found["sent"], [1.0])
        self.assertEqual(found["read"], found["sent"])

    def test_the_global_generator_is_not_touched(self) -> None:
        torch.manual_seed(9)
        expected = torch.rand(1).item()
        self.assertEqual(state(Norm, 9)["random"], expected)


if __name__ == "__main__":
    unittest.main()
