# SPDX-License-Identifier: Apache-2.0
"""Sequential sums: their rounding changes, and no other result does."""

from __future__ import annotations

import unittest
from collections.abc import Callable

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from harness.judge.rounding import SequentialSumMode

CPU = torch.device("cpu")


def in_sequence(terms: torch.Tensor) -> torch.Tensor:
    """The sum along the last dimension, step by step in fp32."""
    total = torch.zeros(terms.shape[:-1])
    for number in range(terms.shape[-1]):
        total += terms[..., number]
    return total


def in_other_order(program: Callable[[], torch.Tensor], seed: int = 0) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.MATH), SequentialSumMode(seed, CPU):
        return program()


class SumsTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(7)

    def test_a_sum_has_the_error_of_a_loop(self) -> None:
        for terms in (torch.rand(16, 16384), torch.randn(16, 16384)):
            exact = terms.double().sum(-1)
            error = (in_sequence(terms) - exact).square().mean().sqrt()
            found = (in_other_order(lambda: terms.sum(-1)) - exact).square().mean().sqrt()
            self.assertTrue(error / 2 < found < error * 2, (error, found))

    def test_repeated_terms_have_errors_of_equal_sign(self) -> None:
        terms = torch.where(torch.rand(16, 16384) < 0.25, torch.rand(16, 16384), 0.1234567)
        exact = terms.double().sum(-1)
        found = in_other_order(lambda: terms.sum(-1))
        loop = in_sequence(terms)
        self.assertGreater(float((loop - exact).abs().max() / exact.max()), 4e-6)
        self.assertLess(float((loop - found).abs().max()), 0.2 * float((loop - exact).abs().max()))

    def test_a_scan_errs_more_and_more(self) -> None:
        terms = torch.full((1, 16384), 0.1)
        exact = terms.double().cumsum(-1)
        error = (in_other_order(lambda: terms.cumsum(-1)) - exact).abs()
        self.assertGreater(float(error[0, -1]), 100 * float(error[0, 100]))

    def test_products_of_any_sign_are_off_as_much_as_loops(self) -> None:
        for shift in (0.0, 0.5):
            x, w = torch.rand(8, 4096) - shift, torch.rand(8, 4096) - shift
            exact = x.double() @ w.double().T
            loop = (in_sequence(x[:, None] * w[None]) - exact).abs()
            found = (in_other_order(lambda: x @ w.T) - exact).abs()
            self.assertLess(float(loop.max()), 4 * float(found.median()))
            self.assertLess(float(found.max()), 10 * float(loop.max()))

    def test_logarithms_that_nearly_cancel_are_off_by_their_terms(self) -> None:
        x = torch.full((1, 16), -7.0)
        x[0, 3] = 8.0
        for program in (lambda: x.log_softmax(1)[0, 3], lambda: x.logsumexp(1)[0] - 8.0):
            off = abs(float(in_other_order(program) - program()))
            self.assertGreater(off, 2.0**-23)
            self.assertLess(off, 2.0**-19)

    def test_a_seed_gives_the_same_bits(self) -> None:
        x = torch.randn(64, 64)
        one, same, other = (in_other_order(lambda: x @ x, seed) for seed in (1, 1, 2))
        self.assertTrue(torch.equal(one, same))
        self.assertFalse(torch.equal(one, other))

    def test_the_global_generator_is_not_touched(self) -> None:
        x = torch.randn(8, 8)
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        in_other_order(lambda: x @ x)
        self.assertEqual(torch.rand(1), expected)


class OperatorsTest(unittest.TestCase):
    def test_results_change_only_by_rounding(self) -> None:
        torch.manual_seed(7)
        x, w, c = torch.randn(4, 6, 5, 8), torch.randn(6), torch.randn(8, 3, 3, 3)
        three, batch = x[0], torch.randn(4, 6)
        programs: dict[str, Callable[[], torch.Tensor]] = {
            "sum": lambda: x.sum(),
            "sum of some": lambda: x.sum((1, -1)),
            "sum kept": lambda: x.sum((0, 2), keepdim=True),
            "sum of one": lambda: x[0, 0, 0, 0].sum(),
            "mean": lambda: x.mean(),
            "mean of some": lambda: x.mean((2, 3), keepdim=True),
            "linear": lambda: F.linear(batch, torch.ones(3, 6), torch.ones(3)),
            "matmul": lambda: three @ three.transpose(1, 2),
            "baddbmm": lambda: torch.baddbmm(three, three @ three.mT, three, alpha=2, beta=-3),
            "mv": lambda: batch @ w,
            "dot": lambda: w @ w,
            "convolution": lambda: F.conv2d(x, c, groups=2, padding=1),
            "transposed": lambda: F.conv_transpose2d(x, c.reshape(6, 4, 3, 3), groups=2, stride=2),
            "softmax": lambda: x.softmax(1),
            "log_softmax": lambda: x.log_softmax(-1),
            "logsumexp": lambda: x.logsumexp((1, 2), keepdim=True),
            "logsumexp of one": lambda: x.logsumexp(1),
            "var": lambda: x.var(),
            "var of some": lambda: x.var((0, 2), correction=0),
            "std": lambda: x.std(1, keepdim=True),
            "var_mean": lambda: torch.stack(torch.var_mean(x, 2)),
            "norm": lambda: x.norm(),
            "norm of some": lambda: F.normalize(x, dim=1),
            "other norm": lambda: torch.linalg.vector_norm(x, 1, 1),
            "cumsum": lambda: x.cumsum(1),
            "layer_norm": lambda: F.layer_norm(x, (5, 8), x[0, 0], x[0, 1]),
            "group_norm": lambda: F.group_norm(x, 3, w, w),
            "batch_norm": lambda: F.batch_norm(x, w.clone(), w.square(), w, w, training=True),
            "in evaluation": lambda: F.batch_norm(x, w.clone(), w.square(), w, w),
            "instance_norm": lambda: F.instance_norm(x),
            "attention": lambda: F.scaled_dot_product_attention(x, x, x),
        }
        for name, program in programs.items():
            with self.subTest(name):
                expected, found = program(), in_other_order(program)
                self.assertEqual(expected.shape, found.shape)
                error = float((expected - found).abs().max() / expected.abs().max())
                self.assertLess(error, 1e-5)

    def test_buffers_are_updated_as_usual(self) -> None:
        x, ours, theirs = torch.randn(8, 3), torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
        ours(x)
        in_other_order(lambda: theirs(x))
        for one, other in zip(ours.buffers(), theirs.buffers()):
            self.assertTrue(torch.equal(one, other))

    def test_other_dtypes_stay_as_they_are(self) -> None:
        for dtype in (torch.float64, torch.bfloat16, torch.int64):
            x = torch.randn(8, 8).to(dtype)
            self.assertTrue(torch.equal(in_other_order(lambda: x.sum(1)), x.sum(1)))


if __name__ == "__main__":
    unittest.main()
