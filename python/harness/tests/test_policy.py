# SPDX-License-Identifier: Apache-2.0
"""The operators of data/policy/musacoder.json against those of PyTorch."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import unittest
from pathlib import Path
from typing import Any

import torch

from harness.candidate.guard import OperatorGuard
from harness.tests.test_guard import build_guard

ROOT = Path(__file__).resolve().parents[3]
POLICY = json.loads((ROOT / "data/policy/musacoder.json").read_text())
OPERATORS, OVERLOADS = set(POLICY["operators"]), set(POLICY["overloads"])

# Calls that honest candidates write, on a matrix `x` of 2 x 3.
CALLS = """
torch.empty(2, 3) torch.empty_like(x) torch.empty_strided((2, 3), (1, 2)) x.new_empty((2,))
torch.empty_permuted((2, 3), (1, 0)) x.new_empty_strided((2,), (1,)) torch.zeros(2)
torch.zeros_like(x) x.new_zeros(2) torch.ones(2) torch.ones_like(x) x.new_ones(2)
torch.full((2,), 1.5) torch.full_like(x, 2) x.new_full((2,), 3) x.clone().fill_(1)
x.clone().fill_(x[0,0]) x.clone().zero_() torch.scalar_tensor(1.0) torch.tensor([1.0, 2.0])
x.new_tensor([1.0]) torch.as_tensor([1, 2]) torch.arange(5) torch.arange(1.0, 3, 0.5) torch.eye(3)
torch.eye(2, 3) torch.linspace(0, 1, 5) torch.rand(2) torch.rand_like(x) torch.randn(2)
torch.randn_like(x) torch.randint(0, 9, (3,)) torch.randint_like(x, 5) torch.randperm(4)
x.clone().normal_() x.clone().uniform_() x.clone().random_() x.half() x.double() x.to(torch.int32)
x.to("cpu") x.to(x) x.cpu() x.float() x.bfloat16() x.long() x.type(torch.half) x.type_as(x.half())
x.clone() x.t().contiguous() x.contiguous() x.clone().copy_(x) x.detach() x.clone().detach_()
x.clone().set_(x) x.clone().resize_(3) x.clone().resize_as_(x) x[0,0].item() float(x[0,0])
bool(x[0,0]) int(x[0,0]) x.tolist() x.view(-1) x.view(torch.int32) x.view_as(x) x.reshape(3, 2)
x.t().reshape(-1) x.reshape_as(x) x[:1].expand(4, 3) x[:1].expand_as(x)
torch.broadcast_to(x, (1, 2, 3)) torch.broadcast_tensors(x, x[:1])
torch.meshgrid(x[0], x[1], indexing="ij") x.t() x.T x.mT x.H x.mH x.adjoint() x.transpose(0, 1)
x.clone().transpose_(0, 1) x.clone().t_() x.permute(1, 0) x.movedim(0, 1) x.moveaxis(0, 1)
x.swapaxes(0, 1) x.swapdims(0, 1) x[None].squeeze() x[None].squeeze(0) x[None].clone().squeeze_(0)
x.unsqueeze(0) x.clone().unsqueeze_(0) x.flatten() x.unflatten(1, (3, 1)) x.ravel() x.select(0, 1)
x[0] x[..., 1] x[:, 1:] x[None, :, -1] x.narrow(1, 0, 2) x.chunk(2) x.split(1) x.split([1, 2], 1)
torch.split_with_sizes(x, [1, 1]) torch.unsafe_chunk(x, 2) torch.unsafe_split(x, 1) x.hsplit(3)
x.vsplit(2) x[None,None].dsplit(2) x.tensor_split(2) x.unbind() x.diagonal() x.unfold(1, 2, 1)
x.as_strided((2,), (1,)) x.clone().as_strided_((2,), (1,)) torch.atleast_3d(x)
torch.view_as_complex(x[:, :2].contiguous()) x.real torch.linalg.diagonal(x) x.positive()
torch.view_as_complex(x[:, :2].contiguous()).imag
torch.view_as_real(torch.view_as_complex(x[:, :2].contiguous())) x.size(0) x.stride() x.numel()
x.dim() x.is_contiguous() x.is_floating_point() x.is_complex() x.is_signed() x.is_set_to(x)
x.is_pinned() x.is_same_size(x) torch.result_type(x, 1) x.clone().requires_grad_()
x.__setitem__((0,0),2.0) x.__setitem__(slice(0,1),x[1:]) x.conj() x.resolve_conj() x.resolve_neg()
[*x] torch.nn.Parameter(x) x.data.clone() torch.empty(0).new_empty(0)
""".replace("\n", " ")


def _calls() -> list[str]:
    """CALLS, split at blanks outside brackets."""
    calls, depth = [""], 0
    for c in CALLS:
        depth += (c in "([") - (c in ")]")
        if c == " " and depth == 0:
            calls.append("")
        else:
            calls[-1] += c
    return [call for call in calls if call]


def _with_these_alone(library: str, results: Any) -> None:
    guard = OperatorGuard(ctypes.PyDLL(library, mode=ctypes.RTLD_GLOBAL))
    x = torch.randn(2, 3)
    guard.remove("CPU", sorted(OPERATORS), "musacoder")
    errors = {}
    for call in _calls():
        try:
            eval(call, {"torch": torch, "x": x.detach()})
        except RuntimeError as error:
            errors[call] = str(error)
    results.put(errors)


def _may_link(entry: str) -> bool:
    """The answer of src/legality/symbols.cc for at::_ops::ENTRY::call."""
    if entry in OPERATORS:
        return True
    cuts = [i for i, c in enumerate(entry) if c == "_"]
    return any(entry[:i] in OPERATORS and entry[i + 1 :] in OVERLOADS for i in cuts)


class PolicyTest(unittest.TestCase):
    def test_its_operators_are_pytorchs(self) -> None:
        schemas = torch._C._jit_get_all_schemas()
        self.assertLessEqual(OPERATORS, {schema.name.removeprefix("aten::") for schema in schemas})

    def test_a_library_may_link_to_these_operators_and_to_no_other(self) -> None:
        for schema in torch._C._jit_get_all_schemas():
            namespace, _, name = schema.name.partition("::")
            if namespace != "aten":
                continue
            entry = name + ("_" if schema.overload_name else "") + schema.overload_name
            self.assertEqual(_may_link(entry), name in OPERATORS, entry)

    def test_allowed_operators_call_only_allowed_operators(self) -> None:
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        process = context.Process(target=_with_these_alone, args=(build_guard(), results))
        process.start()
        errors = results.get(timeout=120)
        process.join()
        self.assertEqual(errors, {})


if __name__ == "__main__":
    unittest.main()
