# SPDX-License-Identifier: Apache-2.0
"""Modules of others as tasks: texts by harness/importer, and trials in the sandbox."""

from __future__ import annotations

import ast
import json
import os
import tempfile
import unittest
from pathlib import Path

from harness.importer import arguments, closure, sources
from harness.importer.graph import graph_of
from harness.importer.overlap import Suite
from harness.importer.task_text import Arguments, task_text
from harness.importer.sources import Refused

LAYERS = """
import torch
from torch import nn
from .tools import scale as times, helper

WIDTH = 8


class Gate(nn.Module):
    def __init__(self, dim, factor=WIDTH, dropout=0.1):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        return times(torch.sigmoid(self.linear(x)))


class Unused(nn.Module):
    def forward(self, x):
        return helper(x)


if __name__ == "__main__":
    x = torch.randn(2, 48)
    gate = Gate(48)
    print(gate(x).shape)
"""
TOOLS = """
import secret_package
from functools import partial

def twice(x):
    return x + x

def scale(x):
    return twice(x)

def helper(x):
    return secret_package.run(x)
"""
TASK = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 32)
    def forward(self, x):
        return {forward}
def get_inputs():
    return [torch.rand({rows}, 64)]
def get_init_inputs():
    return []
"""


def folder_of(directory: str, **files: str) -> sources.Folder:
    for name, text in files.items():
        Path(directory, f"{name}.py").write_text(text, encoding="utf-8")
    return sources.folder_of(Path(directory))


class Closures(unittest.TestCase):
    def setUp(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.folder = folder_of(self._directory.name, layers=LAYERS, tools=TOOLS)
        self.file = self.folder.files[Path("layers.py")]

    def tearDown(self) -> None:
        self._directory.cleanup()

    def test_copies_what_a_class_uses_and_no_more(self) -> None:
        text = closure.self_contained([self.folder], self.file, "Gate")
        names = {getattr(node, "name", "") for node in ast.parse(text).body}
        self.assertTrue({"twice", "scale", "Gate"} <= names, text)
        self.assertNotIn("Unused", text)
        self.assertNotIn("secret_package", text)
        self.assertLess(text.index("WIDTH = 8"), text.index("class Gate"))
        self.assertIn("times = scale", text)

    def test_refuses_what_needs_another_package(self) -> None:
        with self.assertRaisesRegex(Refused, "needs the package secret_package"):
            closure.self_contained([self.folder], self.file, "Unused")

    def test_finds_the_modules_of_a_folder(self) -> None:
        found = [node.name for _, node in sources.modules_of(self.folder)]
        self.assertEqual(found, ["Gate", "Unused"])

    def test_prefers_the_examples_of_the_file(self) -> None:
        node = next(n for n in self.file.tree.body if getattr(n, "name", "") == "Gate")
        assert isinstance(node, ast.ClassDef)
        first = next(arguments.proposals(node, [self.file.tree]))
        self.assertEqual((first.init, first.inputs), (("48",), ("torch.randn(2, 48)",)))

    def test_makes_sizes_constants_that_constructor_and_inputs_share(self) -> None:
        text = closure.self_contained([self.folder], self.file, "Gate")
        task = task_text(text, "Gate", Arguments(["48"], {}, ["torch.randn(2, 48)"]))
        self.assertIn("size_48 = 48", task)
        self.assertIn("return [torch.randn(batch_size, size_48)]", task)
        self.assertIn("return [[size_48], {}]", task)
        self.assertTrue(task.endswith("Model = Gate\n"))

    def test_names_the_batch_of_every_random_input(self) -> None:
        """A kernel may rely on inputs that have as many rows as each other."""
        text = closure.self_contained([self.folder], self.file, "Gate")
        inputs = ["torch.rand(4, 48)", "torch.randint(0, 2, (4, 48))", "torch.randn((4, 48))"]
        task = task_text(text, "Gate", Arguments(["48"], {}, inputs))
        self.assertIn("torch.rand(batch_size, size_48)", task)
        self.assertIn("torch.randint(0, size_2, (batch_size, size_48))", task)
        self.assertIn("torch.randn((batch_size, size_48))", task)


class Results(unittest.TestCase):
    """What comes out of the sandbox is data from a process that nobody trusts."""

    def test_refuses_what_is_no_result(self) -> None:
        hostile: list[object] = [
            None,
            3,
            [],
            {"init": 1},
            {"init": ["f("], "named": {}, "inputs": []},
        ]
        for found in hostile:
            with self.assertRaises(Refused):
                Arguments.of(found)

    def test_reports_why_nothing_was_found(self) -> None:
        with self.assertRaisesRegex(Refused, "not constructed"):
            Arguments.of({"error": "not constructed: TypeError: x"})


class Graphs(unittest.TestCase):
    def test_does_not_depend_on_sizes_and_spelling(self) -> None:
        one = graph_of(TASK.format(forward="torch.relu(self.linear(x)).sum(1)", rows=4))
        other = graph_of(TASK.format(forward="torch.sum(self.linear(x).relu(), dim=1)", rows=9))
        self.assertEqual(one.structure, other.structure)
        self.assertEqual(one.operators, ["mm", "relu", "sum"])
        self.assertEqual(one.families(), {"matmul": 1, "elementwise": 1, "reduction": 1})

    def test_depends_on_the_connections(self) -> None:
        one = graph_of(TASK.format(forward="x.relu() + x.relu().tanh()", rows=4))
        other = graph_of(TASK.format(forward="x.relu() + x.tanh().relu()", rows=4))
        self.assertEqual(sorted(one.operators), sorted(other.operators))
        self.assertNotEqual(one.structure, other.structure)

    def test_keeps_out_what_a_suite_has(self) -> None:
        text = TASK.format(forward="torch.relu(self.linear(x)).sum(1)", rows=4)
        suite = Suite()
        suite.add("2/1", graph_of(text), "")
        equal = graph_of(TASK.format(forward="self.linear(x).relu().sum(1)", rows=7))
        other = graph_of(TASK.format(forward="self.linear(x).tanh().cumsum(1)", rows=7))
        self.assertEqual(suite.why_too_near(equal, ""), "overlap: the structure of 2/1")
        self.assertIsNone(suite.why_too_near(other, ""))

    def test_keeps_out_what_is_one_operator_away(self) -> None:
        suite = Suite()
        known = "x.exp().tanh().relu().sum(1).sigmoid()"
        suite.add("2/2", graph_of(TASK.format(forward=known, rows=4)), "")
        near = graph_of(TASK.format(forward="x.exp().tanh().abs().sum(1).sigmoid()", rows=4))
        self.assertIn("one operator away", str(suite.why_too_near(near, "")))


class Imports(unittest.TestCase):
    """The whole way, in the sandbox."""

    @unittest.skipUnless("MC_SANDBOX_LIB" in os.environ, "needs MC_SANDBOX_LIB")
    def test_takes_good_modules_and_gives_reasons_for_the_others(self) -> None:
        from harness.importer.importing import Importer, Options
        from harness.importer.sandboxed import Sandbox

        hostile = TASK.format(forward="x", rows=4) + "\nimport os\nos._exit(0)\n"
        leak = "open('/etc/passwd').read() and x.relu() * 3.0"
        rows = [
            {"python_code": TASK.format(forward="self.linear(x).tanh() * 3.0", rows=4)},
            {"python_code": TASK.format(forward=leak, rows=4), "entry_point": "Model"},
            {"python_code": "def f(:", "entry_point": "Model"},
            {"python_code": TASK.format(forward="x", rows=4), "entry_point": "Nothing"},
            {"python_code": hostile},
        ]
        with tempfile.TemporaryDirectory() as directory:
            data = Path(directory, "rows.jsonl")
            data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            repository = Path(directory, "repository")
            repository.mkdir()
            folder_of(str(repository), layers=LAYERS, tools=TOOLS)
            out = Path(directory, "out")
            sandbox = Sandbox(os.environ["MC_SANDBOX_LIB"], jobs=2)
            self.assertEqual(Importer(sandbox, Options(out)).run([data, repository]), 0)
            lines = (out / "import.jsonl").read_text(encoding="utf-8").splitlines()
            found = [json.loads(line) for line in lines]
            why = [row["why"] for row in found]
            self.assertEqual(why[0], "")
            self.assertIn("FileNotFoundError", why[1])
            self.assertEqual(why[2], "not Python 3: SyntaxError")
            self.assertEqual(why[3], "not read: it defines no class Nothing")
            self.assertEqual(why[4], "not judged: its process ended")
            self.assertEqual([why[5], found[5]["class"]], ["", "Gate"])
            self.assertIn("secret_package", why[6])
            self.assertEqual(len(list((out / "tasks").iterdir())), 2)


if __name__ == "__main__":
    unittest.main()
