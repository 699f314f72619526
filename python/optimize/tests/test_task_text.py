# SPDX-License-Identifier: Apache-2.0
"""The task that is made of a user's file."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from optimize.task_text import BadModule, Wanted, task_text

HEAD = "import torch\nfrom torch import nn\n"
NORM = HEAD + "class Norm(nn.Module):\n    def __init__(self, width, eps=1e-5): pass\n"
PLAIN = HEAD + "class Plain(nn.Module):\n    pass\n"


class TaskText(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "mine.py"

    def made(self, source: str, **wanted: str) -> tuple[str, str]:
        self.path.write_text(source)
        text, name = task_text(self.path, Wanted(**wanted))
        self.assertTrue(text.startswith(source), "the user's text changed")
        compile(text, "task", "exec")
        return text.removeprefix(source), name

    def refused(self, words: str, source: str, **wanted: str) -> None:
        self.path.write_text(source)
        with self.assertRaisesRegex(BadModule, words):
            task_text(self.path, Wanted(**wanted))

    def test_a_whole_task_stays_as_it_is(self) -> None:
        source = HEAD + "class Model(nn.Module): pass\n"
        source += "def get_inputs(): return []\ndef get_init_inputs(): return []\n"
        self.assertEqual(self.made(source), ("", "Model"))

    def test_sizes_become_constants_that_inputs_and_constructor_share(self) -> None:
        added, name = self.made(NORM, inputs="f32[4,640], bf16[640]", init="640, eps=1e-6")
        self.assertEqual(name, "Norm")
        self.assertIn("size_4 = 4\nsize_640 = 640\n", added)
        self.assertIn("torch.randn((size_4, size_640, ), dtype=torch.float32)", added)
        self.assertIn("torch.randn((size_640, ), dtype=torch.bfloat16)", added)
        self.assertIn("return [[size_640], {'eps': 1e-06}]", added)
        self.assertTrue(added.endswith("Model = Norm\n"))

    def test_forms_of_inputs(self) -> None:
        forms = {
            "i64[64]<1000": "torch.randint(0, 1000, (size_64, ), dtype=torch.int64)",
            "i32[1,8]": "torch.randint(-128, 128, (1, size_8, ), dtype=torch.int32)",
            "bool[8]": "torch.randint(0, 2, (size_8, ), dtype=torch.bool)",
            "f64": "torch.randn((), dtype=torch.float64)",
            "2": "return [2]",
            "-1.5": "return [-1.5]",
            "'mean'": "return ['mean']",
        }
        for form, text in forms.items():
            with self.subTest(form):
                self.assertIn(text, self.made(PLAIN, inputs=form)[0])

    def test_a_named_input(self) -> None:
        added, _ = self.made(PLAIN, inputs="f32[8], mask=bool[8]")
        self.assertIn("], {'mask': torch.randint(", added)

    def test_a_constant_takes_no_name_of_the_file(self) -> None:
        added, _ = self.made(PLAIN + "size_8 = 3\n", inputs="f32[8]")
        self.assertIn("size_8_ = 8", added)

    def test_an_example_call_makes_new_inputs_each_time(self) -> None:
        source = PLAIN + "example_inputs = (torch.randn(4, 8).sum(1), True)\n"
        added, _ = self.made(source)
        self.assertIn("size_4 = 4\nsize_8 = 8\n", added)
        self.assertIn("return (torch.randn(size_4, size_8).sum(1), True)", added)
        source = PLAIN + "example_inputs = torch.randn(4, 8)\n"
        self.assertIn("return [torch.randn(size_4, size_8)]", self.made(source)[0])

    def test_an_option_goes_before_what_the_file_defines(self) -> None:
        source = PLAIN + "def get_inputs(): return [torch.randn(3)]\n"
        self.assertEqual(self.made(source, inputs="f32[8]")[0].count("def get_inputs"), 1)

    def test_which_class(self) -> None:
        two = PLAIN + "class Other(Plain): pass\n"
        self.refused("several modules, Plain, Other: --class", two, inputs="f32[8]")
        self.assertEqual(self.made(two, inputs="f32[8]", class_name="Other")[1], "Other")
        self.refused("--class None_: the file has Plain", PLAIN, class_name="None_")
        self.refused("no class of the file derives from nn.Module", HEAD)

    def test_what_is_missing(self) -> None:
        self.refused("no inputs: give --inputs", PLAIN)
        self.refused("Norm needs width: give --init", NORM, inputs="f32[8]")

    def test_what_users_get_wrong(self) -> None:
        wrong = {
            "f32[64": "expected arguments as in a call",
            "f33[64]": "no dtype f33",
            "f32[n]": "expected a positive number, got n",
            "f32[0]": "expected a positive number, got 0",
            "f32[8]<4": "an upper bound is for integers",
            "print('x')": "is no literal of Python",
            "**x": "expected arguments as in a call",
        }
        for form, words in wrong.items():
            with self.subTest(form):
                self.refused(words, PLAIN, inputs=form)
        self.refused("open.* is no literal", NORM, inputs="f32[8]", init="open('x')")
        self.refused("line 1: ", "class")

    def test_other_files_of_the_user(self) -> None:
        (self.path.parent / "helpers.py").write_text("")
        (self.path.parent / "layers").mkdir()
        (self.path.parent / "layers" / "__init__.py").write_text("")
        for line in ("import helpers", "from layers.norm import Norm", "from . import helpers"):
            with self.subTest(line):
                self.refused("put what it needs into the file", f"{line}\n{PLAIN}", inputs="f32[8]")


if __name__ == "__main__":
    unittest.main()
