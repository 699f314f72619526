# SPDX-License-Identifier: Apache-2.0
"""Tests of the answers that musa_answers.py rewrites, and of the rules that it names.

usage: python3 -m unittest discover -s lab/answers -p '*_test.py'
"""

from __future__ import annotations

import ast
import unittest

from musa_answers import rewritten, rule_of

ANSWER = """import torch
from kernelbench.musa_extension import load_inline

source = "void twice();"

ext = load_inline(
    name="twice",
    cpp_sources=source,
    functions=[
        "twice",
    ],
    verbose=True,
)
"""


class RewrittenTest(unittest.TestCase):
    def test_the_source_is_one_for_mcc_with_bindings(self) -> None:
        module = rewritten(ANSWER)
        self.assertEqual(module.count("\n"), ANSWER.count("\n"))
        self.assertIn("from torch_musa.utils.musa_extension import load_inline", module)
        (call,) = (node for node in ast.walk(ast.parse(module)) if isinstance(node, ast.Call))
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        self.assertEqual(given["cpp_sources"], "''")
        self.assertIn('m.def("twice", &twice, "twice");', given["musa_sources"])
        self.assertNotIn("functions", given)


class RuleTest(unittest.TestCase):
    def test_rules_are_named(self) -> None:
        mutated = {"kind": "wrong", "trials": [{"inputs_mutated": "input[0]"}]}
        computed = {"kind": "illegal", "findings": [{"rule": "link.torch_compute"}]}
        wrong = {"kind": "wrong", "trials": [{"inputs_mutated": ""}]}
        self.assertEqual(rule_of(mutated), "writes to its inputs")
        self.assertEqual(rule_of(computed), "PyTorch computes")
        self.assertEqual(rule_of(wrong), "")


if __name__ == "__main__":
    unittest.main()
