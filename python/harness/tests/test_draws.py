# SPDX-License-Identifier: Apache-2.0
"""Large weights come from the device's generator, wherever the tensors are; here the device is the
CPU with its own generator.
"""

from __future__ import annotations

import unittest
from typing import Any
from unittest import mock

import torch

from harness.worker import draws
from harness.worker.draws import skipped_draws, large_draws, made_on

CPU = torch.device("cpu")


class Both(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.small = torch.nn.Linear(4, 4)
        self.large = torch.nn.Linear(64, 64)
        self.table = torch.nn.Embedding(40, 40)
        self.own = torch.nn.Parameter(torch.randn(50, 50))


def state_under(mode: Any, make: Any = Both, seed: int = 3) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    with mode:
        model: torch.nn.Module = make()
    return model.state_dict()


@mock.patch.object(draws, "LARGE_MIN", 1000)
class Draws(unittest.TestCase):
    def test_large_ones_are_the_same_on_the_device_and_on_the_host(self) -> None:
        on_device = state_under(large_draws(CPU))
        on_host = state_under(large_draws(CPU, stay_on_host=True))
        for name, tensor in on_device.items():
            self.assertTrue(torch.equal(tensor, on_host[name]), name)

    def test_small_ones_are_those_that_pytorch_draws(self) -> None:
        torch.manual_seed(3)
        plain = torch.nn.Linear(4, 4)
        found = state_under(large_draws(CPU))
        self.assertTrue(torch.equal(found["small.weight"], plain.weight))

    def test_large_ones_leave_the_hosts_generator_as_it_is(self) -> None:
        for stays in (False, True):
            torch.manual_seed(5)
            with large_draws(CPU, stay_on_host=stays):
                torch.nn.init.kaiming_uniform_(torch.empty(50, 50))
                torch.nn.init.normal_(torch.Tensor(50, 50))
                torch.randn(50, 50)
                found = torch.rand(3)
            torch.manual_seed(5)
            self.assertTrue(torch.equal(found, torch.rand(3)))

    def test_they_follow_from_the_seed(self) -> None:
        first, again = state_under(large_draws(CPU)), state_under(large_draws(CPU))
        other = state_under(large_draws(CPU), seed=4)
        self.assertTrue(torch.equal(first["large.weight"], again["large.weight"]))
        self.assertFalse(torch.equal(first["large.weight"], other["large.weight"]))
        self.assertAlmostEqual(float(first["own"].std()), 1, delta=0.1)
        self.assertLessEqual(float(first["large.weight"].abs().max()), 1 / 8)

    def test_a_tensor_that_names_its_device_or_generator_is_left_alone(self) -> None:
        torch.manual_seed(5)
        plain = torch.randn(2000), torch.randn(2000, generator=torch.Generator().manual_seed(1))
        torch.manual_seed(5)
        with large_draws(CPU) as mode:
            named = torch.randn(2000, device="cpu")
            own = torch.randn(2000, generator=torch.Generator().manual_seed(1))
        self.assertTrue(torch.equal(plain[0], named) and torch.equal(plain[1], own))
        self.assertFalse(mode.was_used)

    def test_a_model_of_which_only_sources_matter_draws_nothing_large(self) -> None:
        torch.manual_seed(5)
        with skipped_draws():
            self.assertEqual(torch.randn(50, 50).shape, (50, 50))
            self.assertEqual(torch.rand((2000,), dtype=torch.float64).dtype, torch.float64)
            torch.nn.init.kaiming_uniform_(torch.empty(50, 50))
            next_small = torch.rand(3)
        torch.manual_seed(5)
        self.assertTrue(torch.equal(torch.rand(3), next_small))


class MadeOn(unittest.TestCase):
    """On the device "meta", which has no values."""

    META = torch.device("meta")

    def test_a_constructor_that_mixes_devices_runs_again_on_the_host(self) -> None:
        modes = []

        def make() -> torch.nn.Module:
            modes.append(torch.empty(2000).device.type)
            if modes[-1] == "meta":
                raise RuntimeError("two devices")
            return torch.nn.Linear(2, 2)

        with mock.patch.object(draws, "LARGE_MIN", 1000):
            model = made_on(self.META, make)
        self.assertEqual(modes, ["meta", "cpu"])
        self.assertEqual(next(model.parameters()).device.type, "meta")

    def test_a_constructor_without_large_tensors_runs_once(self) -> None:
        calls = []

        def make() -> torch.nn.Module:
            calls.append(1)
            raise ValueError("its own fault")

        self.assertRaises(ValueError, made_on, self.META, make)
        self.assertEqual(len(calls), 1)

    def test_the_host_makes_all_on_the_host(self) -> None:
        with mock.patch.object(draws, "large_draws", side_effect=AssertionError):
            made_on(CPU, lambda: torch.nn.Linear(2000, 2))


if __name__ == "__main__":
    unittest.main()
