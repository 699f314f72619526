# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import unittest

from harness.judge.inspect_source import FINDINGS_MAX, inspect_source

RULES = {
    "forbidden_imports": ["ctypes", "torch.jit", "triton"],
    "forbidden_names": ["eval", "exec", "__import__"],
    "forbidden_calls": ["torch", "numpy"],
    "unsupported_languages": ["torch.cuda._compile_kernel", "triton"],
    "allowed": ["torch.utils.cpp_extension.load_inline", "torch.jit.is_scripting"],
    "operators": ["empty_like", "view"],
    "parameter_containers": ["torch.nn.Linear", "torch.nn.Identity"],
}
HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline
"""


def rules_of(source: str) -> list[str]:
    return [item["rule"] for item in inspect_source(source, RULES)["findings"]]


def forward(body: str, init: str = "pass", extra: str = "") -> str:
    return f"""{HEAD}
{extra}
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        {init}
    def helper(self, x):
        return x.view(-1)
    def forward(self, x):
        {body}
"""


class SyntaxTest(unittest.TestCase):
    def test_what_does_not_parse_is_located(self) -> None:
        error = inspect_source("x = 1\nif x\n  pass\n", {})["syntax_error"]
        self.assertEqual(error["line"], 2)
        self.assertEqual(error["text"], "if x")

    def test_a_class_may_get_its_name_by_assignment(self) -> None:
        found = inspect_source("class A:\n    pass\nModelNew = A\n", {})
        self.assertEqual(found["classes"], ["A", "ModelNew"])
        self.assertNotIn("ModelNew", inspect_source("ModelNew = 3\n", {})["classes"])

    def test_hostile_texts_are_syntax_errors(self) -> None:
        for name, text in {
            "nesting": "(" * 5000,
            "unary": "x = " + "-" * 100000 + "1",
            "attributes": "x" + ".a" * 100000,
            "sum": "x = " + "+".join(["1"] * 200000),
            "nul": "x = 1\0",
            "size": "#" * (1 << 21),
            "surrogate": "x = '\udc80'",
            "indents": "".join(" " * i + "if 1:\n" for i in range(200)),
        }.items():
            with self.subTest(name):
                self.assertIn("syntax_error", inspect_source(text, RULES))


class InterfaceTest(unittest.TestCase):
    def test_definitions_are_found_where_they_may_stand(self) -> None:
        source = """
if True:
    class ModelNew(Base): pass
else:
    class Other: pass
try:
    def get_inputs(): pass
except Exception:
    def fallback():
        class Inner: pass
class Base:
    def forward(self, x): return x
"""
        found = inspect_source(source, {})
        self.assertEqual(sorted(found["classes"]), ["Base", "ModelNew", "Other"])
        self.assertIn("ModelNew.forward", found["functions"])
        self.assertIn("get_inputs", found["functions"])
        self.assertIn("fallback", found["functions"])
        self.assertNotIn("Inner", found["classes"])

    def test_bases_may_go_in_a_circle(self) -> None:
        source = "class A(B): pass\nclass B(A):\n  def f(self): pass\n"
        self.assertIn("A.f", inspect_source(source, {})["functions"])

    def test_words_in_strings_and_comments_define_nothing(self) -> None:
        found = inspect_source('"""class ModelNew: pass"""\n# class ModelNew\n', {})
        self.assertEqual(found["classes"], [])


class RuleTest(unittest.TestCase):
    def test_each_rule_is_broken_by_its_cases(self) -> None:
        cases = {
            "python.forbidden_import": [
                "import ctypes\nctypes.CDLL('libm.so')",
                "import ctypes.util as u\nf = u",
                "from ctypes import CDLL\nCDLL('libm.so')",
                "from ctypes import *",
                "from torch import jit\n@jit.script\ndef f(x): return x",
                "def f():\n    import triton.language as tl\n    tl.load(0)",
            ],
            "python.forbidden_name": ["eval('1')", "f = exec", "__import__('os')"],
            "python.forbidden_call": [
                forward("return torch.matmul(x, x)"),
                forward("return F.softmax(x, -1)"),
                forward("return nn.functional.gelu(x)"),
                forward("return getattr(torch, 'mat' + 'mul')(x, x)"),
                forward("return x @ x"),
                forward("return mm(x, x)", extra="mm = torch.mm"),
                forward("return mm(x, x)", extra="from torch import mm"),
                forward("return helper(x)", extra="def helper(x): return torch.relu(x)"),
                forward("return nn.Linear(3, 3)(x)"),
                forward("import numpy as np\n        return np.dot(x, x)"),
            ],
            "python.module_call": [
                forward("return self.fc(x)", init="self.fc = nn.Linear(2, 2)"),
            ],
        }
        for rule, sources in cases.items():
            for source in sources:
                with self.subTest(source):
                    self.assertIn(rule, rules_of(source))

    def test_honest_code_breaks_none(self) -> None:
        for source in [
            forward("return ext.f(x.contiguous())", extra="ext = load_inline('e', 'x')"),
            forward(
                "y = torch.empty_like(x)\n        return ext.softmax(y, self.fc.weight)",
                init="self.fc = nn.Linear(2, 2)",
            ),
            forward("return self.id(x)", init="self.id = nn.Identity()"),
            forward("return self.helper(x)"),
            forward("# torch.matmul(x, x)\n        return 'torch.matmul'"),
            forward("return x", init="self.w = torch.randn(3).exp()"),
            forward("return softmax(x)", extra="def softmax(x): return ext.f(x)"),
            forward("return x", extra="def unused(x): return torch.relu(x)"),
            forward("return math.sqrt(2)", extra="import math, os, tempfile"),
            forward("return torch.Tensor.view(torch.empty_like(x), -1)"),
            forward("return x if torch.jit.is_scripting() else ext.f(x)"),
            forward("return torch.ops.test_mine.swish(x)"),
            forward("return op(x)", extra="op = torch.ops.test_mine.swish.default"),
            forward("return f(x)", extra="@torch.library.custom_op('a::f')\ndef f(x): return x"),
            "import ctypes, triton.language as tl\nfrom torch import jit\n",
            "def build(exec=None):\n    return exec\n",
            "ctypes = 3\nprint(ctypes)\n",
        ]:
            with self.subTest(source):
                self.assertEqual(rules_of(source), [])

    def test_kernels_of_other_languages_are_unsupported_where_there_are_no_native_ones(
        self,
    ) -> None:
        kernel = "@triton.jit\ndef kernel(x): pass\ndef run(x): kernel[(1,)](x)"
        function = "class Run(torch.autograd.Function):\n    def forward(ctx, x): kernel[1](x)"
        jit = "@tj.jit(debug=True)\ndef kernel(x): pass"
        native = "ext = load_inline('e', 'x')"
        for source, is_unsupported in [
            (forward("return run(x)", extra=f"import triton\n{kernel}"), True),
            (forward("return Run.apply(x)", extra=f"import triton as tj\n{jit}\n{function}"), True),
            (forward("return torch.relu(x)", extra=f"import triton\n{kernel}"), False),
            (forward("return triton.cdiv(x, 2)", extra="import triton"), False),
            (forward("return run(x)", extra=f"import triton\n{native}\n{kernel}"), False),
            (forward("return k(x)", extra="k = torch.cuda._compile_kernel('s', 'k')"), True),
            (forward("return x", extra="k = torch.cuda._compile_kernel('s', 'k')"), False),
            (forward("return self.k(x)", init="self.k = torch.cuda._compile_kernel('s')"), True),
        ]:
            with self.subTest(source):
                found = inspect_source(source, RULES)["unsupported"]
                rules = ["python.unsupported_language"] if is_unsupported else []
                self.assertEqual([item["rule"] for item in found], rules)

    def test_a_language_that_is_judged_is_no_finding(self) -> None:
        rules = {**RULES, "judged_languages": ["triton"]}
        kernel = "@triton.jit\ndef run(x):\n    pass"
        source = forward("return run[(1,)](x)", extra=f"import triton\n{kernel}")
        found = inspect_source(source, rules)
        self.assertEqual((found["languages"], found["native"]), (["triton"], False))
        self.assertEqual(found["findings"] + found["unsupported"], [])
        found = inspect_source(f"ext = load_inline('e', 'x')\n{source}", rules)
        self.assertEqual((found["languages"], found["native"]), (["triton"], True))
        found = inspect_source(forward("return x", extra=f"import triton\n{kernel}"), rules)
        self.assertEqual(found["languages"], [], "no kernel of ModelNew's")

    def test_a_finding_has_its_place(self) -> None:
        source = forward("return torch.matmul(x, x)")
        [found] = inspect_source(source, RULES)["findings"]
        self.assertEqual(source.splitlines()[found["line"] - 1].strip(), found["text"])
        self.assertEqual(found["column"], 16)

    def test_findings_are_bounded(self) -> None:
        found = inspect_source("eval('1')\n" * 1000, RULES)["findings"]
        self.assertEqual(len(found), FINDINGS_MAX)


if __name__ == "__main__":
    unittest.main()
