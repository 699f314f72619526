# SPDX-License-Identifier: Apache-2.0
"""Modules of other projects as tasks: texts by python/harness/importer, and trials in the
sandbox.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.importer import arguments, closure, definitions, problems, sources
from harness.importer.arguments import Examples
from harness.importer.attempt import find_arguments
from harness.importer.graph import graph_of
from harness.importer.inputs import Search, names_in
from harness.importer.overlap import Suite
from harness.importer.signature import Proposal, Signature, configs_of
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
MODELS = """
from dataclasses import dataclass
import torch
from torch import nn


@dataclass
class Config:
    width: int = 64
    heads: int = 4


class Gate(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.project = nn.Linear(config.width, config.width)

    def forward(self, x):
        return torch.sigmoid(self.project(x)) * x


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


class Stack(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x, scale):
        for layer in self.layers:
            x = layer(x) * scale
        return x.cumsum(1)


class Whole(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.stack = Stack([FeedForward(options.width, options.hidden)])

    def forward(self, x):
        return self.stack(x, 0.5).exp()


class Idle(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.convolution = nn.Conv2d(width, width, 3)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return self.norm(self.convolution(x))


class Nothing(nn.Module):
    def forward(self, x):
        return x * 0.0
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
        text = closure.self_contained([self.folder], self.file, "Gate").text
        names = {getattr(node, "name", "") for node in ast.parse(text).body}
        self.assertTrue({"twice", "scale", "Gate"} <= names, text)
        self.assertNotIn("Unused", text)
        self.assertNotIn("secret_package", text)
        self.assertLess(text.index("WIDTH = 8"), text.index("class Gate"))
        self.assertIn("return scale(torch.sigmoid(self.linear(x)))", text)

    def test_refuses_what_needs_another_package_when_it_is_defined(self) -> None:
        text = "from away import Base, late\nclass Net(Base):\n    pass\n"
        text += "class Other:\n    def f(self):\n        return late()\n"
        with tempfile.TemporaryDirectory() as directory:
            folder = folder_of(directory, net=text)
            file = folder.files[Path("net.py")]
            with self.assertRaisesRegex(Refused, "needs the package away"):
                closure.self_contained([folder], file, "Net")
            other = closure.self_contained([folder], file, "Other")
        self.assertNotIn("import", other.text)
        self.assertIn("late = None  # away defines it", other.defined())
        why = other.why_undefined("not run: NameError: name 'late' is not defined")
        self.assertEqual(why, "not self-contained: needs the package away")
        self.assertIsNone(other.why_undefined("NameError: name 'early' is not defined"))

    def test_puts_what_a_decorator_uses_before_the_class(self) -> None:
        text = "def noted(one):\n    known.add(one)\n    return one\nknown = set()\n"
        text += "@noted\nclass Net:\n    pass\n"
        with tempfile.TemporaryDirectory() as directory:
            folder = folder_of(directory, net=text)
            text = closure.self_contained([folder], folder.files[Path("net.py")], "Net").text
        exec(text, {})

    def test_gives_another_name_to_a_second_thing_of_one_name(self) -> None:
        one = "from two import scale as grow\ndef scale(x, n=2):\n    return grow(x) * n\n"
        one += "class Net:\n    def f(self, grow):\n        return scale(grow)\n"
        two = "from math import sqrt\ndef scale(x):\n    return [sqrt(scale) for scale in x]\n"
        with tempfile.TemporaryDirectory() as directory:
            folder = folder_of(directory, one=one, two=two)
            text = closure.self_contained([folder], folder.files[Path("one.py")], "Net").text
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        self.assertEqual(namespace["Net"]().f([4.0, 9.0]), [2.0, 3.0, 2.0, 3.0], text)

    def test_finds_the_modules_of_a_folder(self) -> None:
        found = [node.name for _, node in sources.modules_of(self.folder)]
        self.assertEqual(found, ["Gate", "Unused"])

    def test_prefers_the_examples_of_the_file(self) -> None:
        examples = Examples([self.file])
        first = next(arguments.proposals("Gate", self.file.tree, self.file, examples))
        self.assertEqual((first.init, first.inputs), (("48",), ("torch.randn(2, 48)",)))

    def test_makes_sizes_constants_that_constructor_and_inputs_share(self) -> None:
        text = closure.self_contained([self.folder], self.file, "Gate").text
        task = task_text(text, "Gate", Arguments(["48"], {}, ["torch.randn(2, 48)"]))
        self.assertIn("size_48 = 48", task)
        self.assertIn("return [torch.randn(batch_size, size_48)]", task)
        self.assertIn("return [[size_48], {}]", task)
        self.assertTrue(task.endswith("Model = Gate\n"))

    def test_names_the_batch_of_every_random_input(self) -> None:
        """A kernel may rely on inputs that have as many rows as each other."""
        text = closure.self_contained([self.folder], self.file, "Gate").text
        inputs = ["torch.rand(4, 48)", "torch.randint(0, 2, (4, 48))", "torch.randn((4, 48))"]
        task = task_text(text, "Gate", Arguments(["48"], {}, inputs))
        self.assertIn("torch.rand(batch_size, size_48)", task)
        self.assertIn("torch.randint(0, size_2, (batch_size, size_48))", task)
        self.assertIn("torch.randn((batch_size, size_48))", task)

    def test_names_the_batch_only_where_all_random_inputs_have_it(self) -> None:
        text = closure.self_contained([self.folder], self.file, "Gate").text
        task = task_text(
            text, "Gate", Arguments(["48"], {}, ["torch.rand(4, 48)", "torch.rand(9, 48)"])
        )
        self.assertIn("[torch.rand(size_4, size_48), torch.rand(size_9, size_48)]", task)

    def test_wraps_arguments_that_the_judge_cannot_pass_on(self) -> None:
        found = Arguments(["Config(width=64)"], {"act": "nn.ReLU()"}, ["torch.rand(4, 64)"], False)
        task = task_text("class Gate(nn.Module):\n    pass\n", "Gate", found)
        self.assertIn("class Model(Gate):\n    def __init__(self, size_64):\n", task)
        self.assertIn("super().__init__(Config(width=size_64), act=nn.ReLU())", task)
        self.assertIn("    return [size_64]\n", task)

    def test_gives_another_name_to_a_class_that_is_called_model_already(self) -> None:
        text = "class Model(nn.Module):\n    def f(self):\n        super(Model, self).Model()\n"
        task = task_text(text, "Model", Arguments(["nn.ReLU()"], {}, ["torch.rand(4, 64)"], False))
        self.assertIn("class Base(nn.Module):\n    def f(self):\n", task)
        self.assertIn("super(Base, self).Model()", task)
        self.assertIn("class Model(Base):", task)


class Definitions(unittest.TestCase):
    """The schema of flashinfer-trace and SOL-ExecBench."""

    BODY: dict[str, Any] = {
        "name": "scale.h8",
        "axes": {
            "B": {"type": "var"},
            "H": {"type": "const", "value": 8},
            "half": {"type": "expr", "expression": "H // 2"},
        },
        "inputs": {
            "x": {"shape": ["B", "H"], "dtype": "float16"},
            "ids": {"shape": ["half"], "dtype": "int32"},
            "eps": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"y": {"shape": ["B", "H"], "dtype": "float16"}},
        "reference": "def run(x, ids, eps):\n    return x + ids.sum() * eps\n",
    }
    INPUTS = {"x": {"type": "random"}, "ids": {"type": "random"},
              "eps": {"type": "scalar", "value": 1e-6}}  # fmt: skip

    def text(self, given: Any = None, sizes: tuple[int, ...] = (3, 64, 5), **changed: Any) -> str:
        workloads = [{"axes": {"B": size}, "inputs": given or self.INPUTS} for size in sizes]
        body = {**self.BODY, **changed}
        return definitions.task_of(definitions.Definition(Path("d.json"), body, workloads))

    def test_a_definition_is_a_task_at_the_median_of_its_workloads(self) -> None:
        namespace: dict[str, Any] = {}
        text = self.text()
        exec(text, namespace)
        x, ids = namespace["get_inputs"]()
        self.assertEqual((x.shape, x.dtype, ids.shape), ((5, 8), torch.float16, (4,)), text)
        self.assertTrue(torch.equal(namespace["Model"]()(x, ids), x + ids.sum() * 1e-6))
        self.assertIn("\nB = 5\n", text)
        with self.assertRaises(AssertionError):  # The definition fixes this size.
            namespace["Model"]()(x[:, :4], ids)

    def test_custom_inputs_are_made_by_the_definition_and_fp8_is_cast(self) -> None:
        namespace: dict[str, Any] = {}
        make = "def make(sizes, device):\n    return {'ids': torch.arange(sizes['half'])}\n\n"
        text = self.text(
            {**self.INPUTS, "ids": {"type": "custom"}},
            custom_inputs_entrypoint="make",
            reference=make + self.BODY["reference"],
            inputs={**self.BODY["inputs"], "x": {"shape": [], "dtype": "float8_e4m3fn"}},
        )
        exec(text, namespace)
        x, ids = namespace["get_inputs"]()
        self.assertEqual((x.shape, x.dtype), ((), torch.float8_e4m3fn))
        self.assertEqual(ids.tolist(), [0, 1, 2, 3])

    def test_a_constant_does_not_hide_a_name_of_the_reference(self) -> None:
        text = self.text(reference="B = 2\n\ndef run(x, ids, eps):\n    return x * B\n")
        self.assertIn("\nSIZE_B = 5\n", text)

    def test_what_cannot_be_a_task_is_refused_with_its_name(self) -> None:
        axes, inputs = self.BODY["axes"], self.BODY["inputs"]
        for words, changed in (
            ("x is in a file (safetensors)", {"given": {"x": {"type": "safetensors"}}}),
            ("no workload", {"sizes": ()}),
            ("defines no run", {"reference": "def go(): pass"}),
            ("not Python 3", {"reference": "def run(:"}),
            ("more than arithmetic", {"axes": {**axes, "half": {
                "type": "expr", "expression": "__import__('os')"}}}),
            ("no whole number", {"sizes": (-1,)}),
            ("an axis is not declared", {"axes": {**axes, "half": {
                "type": "expr", "expression": "half"}}}),
        ):  # fmt: skip
            with self.subTest(words), self.assertRaisesRegex(Refused, re.escape(words)):
                self.text(**changed)
        fp4 = {**inputs, "x": {"shape": ["B"], "dtype": "float4_e2m1fn_x2"}}
        body = {**self.BODY, "inputs": fp4}
        workload = {"axes": {"B": 2}, "inputs": self.INPUTS}
        with self.assertRaisesRegex(Refused, "x is of the type float4_e2m1fn_x2"):
            definitions.task_of(definitions.Definition(Path(), body, [workload]))

    def test_both_layouts_of_folders_are_found(self) -> None:
        workload = {"axes": {"B": 2}, "inputs": self.INPUTS}
        files = {
            "sol/definition.json": self.BODY,
            "sol/workload.jsonl": workload,
            "trace/definitions/add/other.json": {**self.BODY, "name": "other"},
            "trace/workloads/add/other.jsonl": {"definition": "other", "workload": workload},
            "trace/definitions/alone.json": {**self.BODY, "name": "alone"},
            "package.json": {"name": "x"},
        }
        with tempfile.TemporaryDirectory() as directory:
            for name, body in files.items():
                path = Path(directory) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(body) + "\n")
            found = list(definitions.definitions_of(Path(directory)))
        rows = [one.origin for one in found if isinstance(one, sources.Row)]
        self.assertEqual(rows, ["scale_h8:sol/definition.json",
                                "other:trace/definitions/add/other.json"])  # fmt: skip
        refused = [one for one in found if not isinstance(one, sources.Row)]
        self.assertEqual(refused[0][0], "alone:trace/definitions/alone.json")


REFERENCE = """
from utils import make_match_reference, DeterministicContext
import torch
from task import input_t, output_t


def ref_kernel(data: input_t) -> output_t:
    with DeterministicContext():
        a, output = data
        output[...] = a * 2
        return output


def generate_input(size: int, kind: str, seed: int) -> input_t:
    gen = torch.Generator(device='cuda')
    gen.manual_seed(seed)
    a = torch.randn(size, 4, device="cuda", generator=gen)
    return a, torch.empty_like(a)


check_implementation = make_match_reference(ref_kernel)
"""
TASK_YML = """lang: "py"
tests:
  - {"size": 3, "kind": "plain", "seed": 1}
  # A comment.
  - {"size": 5, "kind": "plain", "seed": 2}

benchmarks:
  - {"size": 90, "kind": "plain", "seed": 3}
"""
FUNCTION = """
import torch

class AutogradFunction(torch.autograd.Function):
    pass

def forward_fn(x, weight):
    return x @ weight

class Model(torch.nn.Module):
    def __init__(self, features: int = 7):
        super(Model, self).__init__()
        self.unused = torch.nn.Parameter(torch.ones(1))
        self.weight = torch.nn.Parameter(torch.randn(features, 2))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight)

def get_inputs(batch_size: int = 16, features: int = 7):
    return [torch.randn(batch_size, features, requires_grad=True)]

input_names = ["x"]
"""
SETTINGS = {
    "single_input_configs": [{"batch_size": 6}],
    "single_init_configs": [{}],
    "single_shared_configs": [{"features": 3}],
}


class Problems(unittest.TestCase):
    """Problems of robust-kbench and reference-kernels."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "set/one"
        self.folder.mkdir(parents=True)

    def tasks(self, **files: str) -> list[tuple[str, Any]]:
        for name, text in files.items():
            (self.folder / name.replace("_dot_", ".")).write_text(text)
        found = list(problems.problems_of(self.folder.parent))
        return [(one.origin, one.text) if isinstance(one, sources.Row) else one for one in found]

    def reference(self, old: str = "", new: str = "") -> tuple[str, Any]:
        texts = (REFERENCE.replace(old, new), TASK_YML.replace(old, new))
        (found,) = self.tasks(reference_dot_py=texts[0], task_dot_yml=texts[1])
        return found

    def test_a_reference_is_a_task_whose_buffer_is_its_own(self) -> None:
        origin, text = self.reference()
        self.assertEqual(origin, "set_one:one/reference.py")
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        a, output = namespace["get_inputs"]()
        self.assertEqual((namespace["SIZE"], a.shape), (5, (5, 4)))
        self.assertFalse(torch.equal(a, namespace["get_inputs"]()[0]))
        before = output.clone()
        self.assertTrue(torch.equal(namespace["Model"]()(a, output), a * 2))
        self.assertTrue(torch.equal(before, output))
        self.assertEqual(problems.problem_folders(self.folder.parent), {self.folder})

    def test_what_one_device_and_a_comparison_cannot_judge_is_refused(self) -> None:
        checked = "def check_implementation(data, output):\n    return True, ''\n"
        for old, new, why in (
            ('lang: "py"', "multi_gpu: true", "several GPUs"),
            ("import torch\n", "import torch\nimport aiter\n", "the package aiter"),
            ("torch.randn", "torch.float4_e2m1fn_x2", "4-bit floats"),
            ("check_implementation = make_match_reference(ref_kernel)", checked, "a property"),
            ("def ref_kernel", "def forward", "no ref_kernel"),
            ("  - {", "  # {", "no test in one line"),
        ):
            with self.subTest(why):
                self.assertIn(why, self.reference(old, new)[1])

    def test_a_forward_pass_has_its_settings_as_constants(self) -> None:
        ((_, text),) = self.tasks(
            func_forward_dot_py=FUNCTION, config_forward_dot_json=json.dumps(SETTINGS)
        )
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        (x,) = namespace["get_inputs"]()
        positional, named = namespace["get_init_inputs"]()
        self.assertEqual((x.shape, positional, named), ((6, 3), [], {"features": 3}))
        self.assertEqual(namespace["Model"](**named)(x).shape, (6, 2))
        self.assertNotIn("AutogradFunction", text)

    def test_a_backward_pass_returns_the_gradients(self) -> None:
        ((origin, text),) = self.tasks(
            func_backward_dot_py=FUNCTION, config_backward_dot_json=json.dumps(SETTINGS)
        )
        self.assertEqual(origin, "set_one_backward:one/func_backward.py")
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        x, gradient = namespace["get_inputs"]()
        model = namespace["Model"](**namespace["get_init_inputs"]()[1])
        of_x, of_weight = model(x, gradient)
        self.assertTrue(torch.allclose(of_x, gradient @ model.weight.detach().T))
        self.assertTrue(torch.allclose(of_weight, x.T @ gradient))

    def test_settings_that_are_missing_are_named(self) -> None:
        ((_, why),) = self.tasks(func_backward_dot_py=FUNCTION)
        self.assertEqual(why, "no config_backward.json beside it")


class Signatures(unittest.TestCase):
    """The proposed constructor arguments if there is no example."""

    def first(self, body: str, parameters: str, more: str = "") -> dict[str, str]:
        text = f"""
{more}
class Block(nn.Module):
    def __init__(self, {parameters}):
        super().__init__()
        {body}
"""
        tree = ast.parse(text)
        file = sources.SourceFile(Path(), Path("block.py"), text, tree)
        return next(Signature(tree, "Block", configs_of(file.tree)).proposals()).named

    def test_takes_widths_for_numbers(self) -> None:
        for name in (
            "d_model",
            "model_dim",
            "encoder_dim",
            "n_embd",
            "block_channels",
            "layer_size",
        ):
            with self.subTest(name):
                found = self.first(f"self.up = nn.Linear({name}, 4 * {name})", name)
                self.assertEqual(found, {name: "64"})

    def test_reads_from_the_uses_what_a_parameter_is(self) -> None:
        for parameter, body, value in (
            ("norm_layer", "self.norm = norm_layer(8)", "nn.LayerNorm"),
            ("act", "self.act = act()", "nn.ReLU"),
            ("cfg", "self.up = nn.Linear(cfg.width, cfg.width)", "settings()"),
            ("options", "self.inner = Inner(options)", "settings()"),
            ("cfg", "self.up = nn.Linear(cfg['width'], 8)", "mapping()"),
            ("mode", "self.is_max = mode == 'max'", "'max'"),
            ("widths", "self.ups = [nn.Linear(n, n) for n in widths]", "[64, 64]"),
            ("resolution", "self.h, self.w = resolution", "(8, 8)"),
            ("dims", "self.up = nn.Linear(dims[0], dims[2])", "[64, 64, 64]"),
            ("drop", "self.drop = nn.Dropout(drop)", "0.0"),
        ):
            with self.subTest(parameter):
                inner = "class Inner:\n    def __init__(self, one):\n        self.n = one.width\n"
                self.assertEqual(self.first(body, parameter, inner), {parameter: value})

    def test_takes_the_dataclass_of_the_file_for_settings(self) -> None:
        for config in (
            "class Config(NamedTuple):\n    width: int = 32\n",
            "class Config:\n    def __init__(self, width=32):\n        self.width = width\n",
        ):
            found = self.first("self.up = nn.Linear(config.width, 8)", "config", config)
            self.assertEqual(found["config"], "Config(width=32)")
        config = (
            "@dataclass\nclass Config:\n    width: int = 32\n    heads: int = 4\n    rate: float\n"
        )
        for parameter in ("config", "config: Config", "config: 'Config'"):
            with self.subTest(parameter):
                found = self.first("self.up = nn.Linear(config.width, 8)", parameter, config)
                self.assertEqual(found["config"], "Config(width=32, rate=64)")

    def test_reads_the_functions_that_build_a_class(self) -> None:
        text = """
class Net(nn.Module):
    def __init__(self, block, sizes):
        super().__init__()
def net18(width=16):
    return Net(Block, [width, 2])
def test():
    net = net18()
    y = net(torch.randn(1, 3, 32, 32))
"""
        file = sources.SourceFile(Path(), Path("net.py"), "class Block: pass" + text,
                                  ast.parse("class Block: pass" + text))  # fmt: skip
        first = next(Examples([file]).of("Net", file))
        self.assertEqual(first.init, ("Block", "[16, 2]"))
        self.assertEqual(first.inputs, ("torch.randn(1, 3, 32, 32)",))
        self.assertEqual(first.names(), {"Block"})

    def test_fills_what_a_call_does_not_show(self) -> None:
        text = """
class Net(nn.Module):
    def __init__(self, index, norm, size, depth, act=None):
        self.norm = norm(8)
        self.height, self.width = size
def build(norm, act, sizes):
    for i in range(3):
        Net(i, norm, self.resolution, sizes[i], act=act)
"""
        file = sources.SourceFile(Path(), Path("net.py"), text, ast.parse(text))
        first = next(arguments.proposals("Net", file.tree, file, Examples([file])))
        self.assertEqual(first.init, ("0", "nn.LayerNorm", "[32, 32]", "64"))
        self.assertEqual(first.named, {"act": "None"})

    def test_keeps_the_names_that_an_expression_binds_itself(self) -> None:
        text = "class Net: pass\ndef net(n):\n    sizes = [m * 2 for m in (1, n)]\n    Net(sizes)\n"
        file = sources.SourceFile(Path(), Path("net.py"), text, ast.parse(text))
        first = next(Examples([file]).of("Net", file))
        self.assertEqual(first.init, ("[m * 2 for m in (1, 64)]",))

    def test_takes_settings_from_the_options_of_command_lines(self) -> None:
        script = "parser.add_argument('-n', '--num-heads', type=int, default=6)"
        file = sources.SourceFile(Path(), Path("run.py"), script, ast.parse(script))
        self.assertEqual(Examples([file]).settings, {"num_heads": "6"})

    def test_tells_classes_of_one_name_apart(self) -> None:
        texts = {"one.py": "class Block: pass\nBlock(1)", "two.py": "class Block: pass\nBlock(2)",
                 "use.py": "from two import Block\nBlock(3)"}  # fmt: skip
        files = {name: sources.SourceFile(Path(), Path(name), text, ast.parse(text))
                 for name, text in texts.items()}  # fmt: skip
        examples = Examples(files.values())
        found = {one.init for one in examples.of("Block", files["two.py"])}
        self.assertEqual(found, {("2",), ("3",)})


class Trials(unittest.TestCase):
    """The sandbox's results for a text and proposals."""

    def found(self, text: str, *proposals: Proposal, settings: dict[str, str] = {}) -> Any:
        head = "import torch\nfrom torch import nn\n"
        rows = [{"init": list(one.init), "named": one.named, "inputs": one.inputs}
                for one in proposals]  # fmt: skip
        asked = {"text": head + text, "name": "Block", "proposals": rows, "settings": settings}
        return find_arguments(asked)

    def test_writes_a_namespace_with_the_members_that_were_read(self) -> None:
        text = """
class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.up = nn.Linear(cfg.d_model, cfg.seq_len)
    def forward(self, x):
        x = self.up(x)
        return x if self.cfg.task == "long" else x.relu()
"""
        proposal = Proposal(named={"cfg": "settings()"})
        found = self.found(text, proposal, settings={"seq_len": "24"})
        self.assertEqual(
            found["named"], {"cfg": "SimpleNamespace(d_model=64, seq_len=24, task='long')"}
        )
        self.assertTrue(found["is_plain"])

    def test_makes_namespaces_in_namespaces_and_dicts(self) -> None:
        text = """
class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.up = nn.Linear({width}, 8)
    def forward(self, x):
        return self.up(x)
"""
        for given, width, wanted in (
            (
                "settings()",
                "cfg.model.d_model",
                "SimpleNamespace(model=SimpleNamespace(d_model=64))",
            ),
            ("mapping()", "cfg['d_model']", "{'d_model': 64}"),
        ):
            with self.subTest(given):
                found = self.found(text.format(width=width), Proposal((given,)))
                self.assertEqual(found["init"], [wanted])
                self.assertTrue(found["is_plain"])

    def test_notes_how_inner_modules_are_built_and_called(self) -> None:
        text = """
class Inner(nn.Module):
    def __init__(self, act, width=8, **more):
        super().__init__()
        self.act = act
    def forward(self, x, mask=None, scale=1.0):
        return self.act(x) * scale
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = Inner(nn.GELU(), width=width, name="a")
    def forward(self, x):
        return self.inner(x.mean(1), scale=2.0)
"""
        found = self.found(text, Proposal(("16",), inputs=("torch.rand(2, 4, 16)",)))
        self.assertEqual(
            found["seen"]["Inner"],
            {
                "init": ["nn.GELU('none')", "16"],
                "named": {"name": "'a'"},
                "inputs": ["torch.rand(2, 16)", "None", "2.0"],
            },
        )

    def test_reports_the_reason_of_the_likeliest_proposal_that_came_furthest(self) -> None:
        text = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(64 // width, 4)
    def forward(self, x):
        raise ValueError(self.up.in_features)
"""
        tried = "(called with torch.rand(4, 64, 32)) (built with 2)"
        found = self.found(text, Proposal(("0",)), Proposal(("2",)), Proposal(("4",)))
        self.assertEqual(found, {"error": f"no inputs found: ValueError: 32 {tried}"})


class Inputs(unittest.TestCase):
    def found(self, forward: str, *layers: nn.Module) -> list[str] | None:
        """Inputs of a module whose forward is this text; `self.l` are its layers."""
        text = f"class Block(nn.Module):\n    def forward(self, {forward}\n"
        namespace = {"nn": nn, "torch": torch}
        exec(text, namespace)
        model = namespace["Block"]()  # type: ignore[operator]
        model.l = nn.ModuleList(layers)
        return Search(model, names_in(ast.parse(text), "Block")).find()

    def test_takes_from_errors_how_many_dimensions_are_wanted(self) -> None:
        found = self.found("q, k, mask):\n        b, n, h, e = q.shape\n        return q + k")
        self.assertEqual(found, ["torch.rand(4, 64, 32, 32)"] * 2 + ["None"])

    def test_takes_from_errors_which_sizes_are_wanted(self) -> None:
        layer = nn.Linear(48, 4)
        found = self.found("x):\n        return self.l[0](x.transpose(1, 2))", layer)
        self.assertEqual(found, ["torch.rand(4, 48, 48)"])
        check = "assert x.shape[2] == 20, f'size {x.shape[2]} is not 20'"
        found = self.found(f"x):\n        {check}\n        return x")
        self.assertIn("20", str(found))

    def test_takes_from_errors_how_long_a_side_is(self) -> None:
        body = "        b, n, c = x.shape\n        side = int((n - 1) ** 0.5)\n"
        body += "        return x[:, 1:].reshape(b, side, side, c)"
        found = self.found(f"x):\n{body}", nn.Linear(16, 4))
        self.assertEqual(found, ["torch.rand(4, 50, 16)"])
        found = self.found("x, size):\n        h, w = size\n        return x.view(4, h, w, 16)",
                           nn.Linear(16, 4))  # fmt: skip
        self.assertEqual(found, ["torch.rand(4, 64, 16)", "(8, 8)"])

    def test_finds_sequences_modes_and_indices(self) -> None:
        found = self.found("xs):\n        return torch.cat(xs, 1)", nn.Conv2d(8, 8, 1))
        self.assertEqual(found, ["[torch.rand(4, 8, 32, 32), torch.rand(4, 8, 32, 32)]"])
        body = "        if mode == 'norm':\n            return x * 2.0\n        raise KeyError"
        found = self.found(f"x, mode):\n{body}", nn.Linear(8, 8))
        self.assertEqual(found, ["torch.rand(4, 64, 8)", "'norm'"])
        found = self.found("words):\n        return self.l[0](words)", nn.Embedding(50, 8))
        self.assertEqual(found, ["torch.randint(0, 50, (4, 64,))"])


class Results(unittest.TestCase):
    """The sandbox's result is untrusted data."""

    def test_refuses_malformed_results(self) -> None:
        hostile: list[object] = [
            None,
            3,
            [],
            {"init": 1},
            {"init": ["f("], "named": {}, "inputs": []},
            {"init": [], "named": {"a=1, b": "2"}, "inputs": []},
            {"init": ["-" * 100_000 + "1"], "named": {}, "inputs": []},
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

    def test_refuses_tasks_of_the_suite(self) -> None:
        text = TASK.format(forward="torch.relu(self.linear(x)).sum(1)", rows=4)
        suite = Suite()
        suite.add("2/1", graph_of(text), "")
        equal = graph_of(TASK.format(forward="self.linear(x).relu().sum(1)", rows=7))
        other = graph_of(TASK.format(forward="self.linear(x).tanh().cumsum(1)", rows=7))
        self.assertEqual(suite.why_too_near(equal, ""), "overlap: the structure of 2/1")
        self.assertIsNone(suite.why_too_near(other, ""))

    def test_refuses_tasks_that_differ_in_one_operator(self) -> None:
        suite = Suite()
        known = "x.exp().tanh().relu().sum(1).sigmoid()"
        suite.add("2/2", graph_of(TASK.format(forward=known, rows=4)), "")
        near = graph_of(TASK.format(forward="x.exp().tanh().abs().sum(1).sigmoid()", rows=4))
        self.assertIn("one operator away", str(suite.why_too_near(near, "")))


class Imports(unittest.TestCase):
    """The whole import, with the sandbox."""

    @unittest.skipUnless("MC_SANDBOX_LIB" in os.environ, "needs MC_SANDBOX_LIB")
    def test_takes_good_modules_and_gives_reasons_for_the_others(self) -> None:
        from harness.importer.importing import Importer, Options
        from harness.importer.sandboxed import Sandbox
        from harness.judge import cost

        cost.warm_up()  # A sandbox lacks the files of these imports.
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
            empty = Path(directory, "empty")
            empty.mkdir()
            with self.assertRaisesRegex(Refused, "nothing to import in .*empty"):
                Importer(sandbox, Options(out)).run([empty])
            # A path without a module is reported, and the others are imported.
            with contextlib.redirect_stderr(io.StringIO()) as printed:
                self.assertEqual(Importer(sandbox, Options(out)).run([data, empty, repository]), 0)
            self.assertIn(f"{empty} holds no module", printed.getvalue())
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

    @unittest.skipUnless("MC_SANDBOX_LIB" in os.environ, "needs MC_SANDBOX_LIB")
    def test_a_data_set_of_which_nothing_is_taken_ends_with_a_reason(self) -> None:
        from harness.importer.importing import NOTHING_TAKEN, Importer, Options
        from harness.importer.sandboxed import Sandbox

        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory, "out")
            importer = Importer(Sandbox(os.environ["MC_SANDBOX_LIB"], jobs=1), Options(out))
            for text in (b'{"text": "x"}\n', b"\xff\xfe\x00\n\x80\n"):
                data = Path(directory, "rows.jsonl")
                data.write_bytes(text)
                with contextlib.redirect_stderr(io.StringIO()) as printed:
                    self.assertEqual(importer.run([data]), NOTHING_TAKEN)
                self.assertIn(f"nothing was taken: {out / 'import.jsonl'}", printed.getvalue())
            row = json.loads((out / "import.jsonl").read_text().splitlines()[0])
        self.assertIn("no text in python_code", row["why"])

    @unittest.skipUnless("MC_SANDBOX_LIB" in os.environ, "needs MC_SANDBOX_LIB")
    def test_finds_arguments_and_leaves_the_decision_to_the_grade(self) -> None:
        from harness.importer.importing import Importer, Options
        from harness.importer.sandboxed import Sandbox
        from harness.judge import cost

        cost.warm_up()
        with tempfile.TemporaryDirectory() as directory:
            repository, out = Path(directory, "repository"), Path(directory, "out")
            repository.mkdir()
            script = "parser.add_argument('--hidden', default=48)\n"
            folder_of(str(repository), models=MODELS, run=script)
            Importer(Sandbox(os.environ["MC_SANDBOX_LIB"], jobs=2), Options(out)).run([repository])
            lines = (out / "import.jsonl").read_text(encoding="utf-8").splitlines()
            found = {row["class"]: row for row in map(json.loads, lines)}
            texts = {one.stem: one.read_text() for one in (out / "tasks").iterdir()}
        self.assertEqual({name: row["grade"] for name, row in found.items()},
                         {"Gate": "good", "FeedForward": "good", "Stack": "good", "Whole": "good",
                          "Idle": "good", "Nothing": "trivial"})  # fmt: skip
        self.assertRegex(found["Nothing"]["why"], "^trivial: every trial is passed by")
        self.assertIn("super().__init__(config=Config(width=size_64))", texts["Gate"])
        self.assertIn("return [[size_64, 48], {}]", texts["FeedForward"])
        self.assertIn("super().__init__([FeedForward(size_32, size_48", texts["Stack"])
        self.assertIn("SimpleNamespace(width=size_32, hidden=48)", texts["Whole"])


if __name__ == "__main__":
    unittest.main()
