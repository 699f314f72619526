# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.candidate import extensions

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import ZygoteTest, empty_region  # noqa: E402

MODEL = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""


def inline(*args: Any, **kwargs: Any) -> Any:
    return extensions.normal_form_inline(args, kwargs)


class NormalFormTest(unittest.TestCase):
    def test_all_ways_to_say_the_same_have_one_key(self) -> None:
        forms = [
            inline("e", "c", "k", functions="f"),
            inline("e", ["c"], ["k"], None, ["f"]),
            inline(name="e", cuda_sources=("k",), cpp_sources="c", functions={"f": "f"}),
            inline("another_name", "c", "k", functions=["f"], verbose=True, build_directory="/x"),
        ]
        self.assertEqual(len({form["key"] for form in forms}), 1)

    def test_whatever_is_compiled_changes_the_key(self) -> None:
        base: dict[str, Any] = {"cpp_sources": "c", "cuda_sources": "k", "functions": ["f"]}
        changes: list[dict[str, Any]] = [
            {}, {"cpp_sources": "d"}, {"cuda_sources": "l"}, {"cuda_sources": ["k", ""]},
            {"functions": ["g"]}, {"functions": {"f": "doc"}}, {"functions": None},
            {"extra_cflags": ["-DX"]}, {"extra_cuda_cflags": ["-DX"]}, {"extra_ldflags": ["-lx"]},
        ]  # fmt: skip
        keys = {inline("e", **{**base, **change})["key"] for change in changes}
        self.assertEqual(len(keys), len(changes))

    def test_wrong_arguments_are_type_errors(self) -> None:
        for kwargs in ({}, {"name": "e"}, {"name": "e", "cpp_sources": 3}, {"nam": "e"}):
            with self.subTest(str(kwargs)):
                self.assertRaises(TypeError, inline, **kwargs)

    def test_half_of_a_surrogate_pair_cannot_be_written(self) -> None:
        self.assertRaises(UnicodeEncodeError, inline, "e", "c", "// \ud800\n")

    def test_headers_in_folders_of_includes_are_read(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a.h").write_text("int a;\n")
            form = inline("e", "c", '#include "a.h"\n', extra_include_paths=[folder])
        self.assertEqual(form["files"], [{"name": "a.h", "text": "int a;\n"}])

    def test_load_reads_its_files_and_their_headers(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "inc").mkdir()
            (root / "main.cpp").write_text('#include "a.h"\n#include <vector>\n')
            (root / "k.cu").write_text('#include "a.h"\n#include "../secret.h"\n')
            (root / "a.h").write_text('#  include "inc/b.h"\n#include <inc/c.h>\n')
            (root / "inc/c.h").write_text("int c;\n")
            (root / "inc/b.h").write_text("int b;\n")
            paths = [str(root / "main.cpp"), root / "k.cu"]
            form = extensions.normal_form_load(("e", paths), {})
            other = extensions.normal_form_load((), {"name": "e", "sources": paths})
        self.assertEqual(form["key"], other["key"])
        self.assertEqual(len(form["cpp_sources"]), 1)
        self.assertEqual(len(form["cuda_sources"]), 1)
        self.assertEqual([file["name"] for file in form["files"]], ["a.h", "inc/b.h"])

    def test_headers_are_found_as_a_compiler_finds_them(self) -> None:
        tree = {
            "src/op.cu": '#include "k/affine.cuh"\n#include <api/all.h>\n#include "../top.h"\n',
            "src/k/affine.cuh": '#include "common.cuh"\n#include "deep/../../config.h"\n',
            "src/k/deep/unused.h": "",
            "src/k/common.cuh": '#include "../config.h"\n#include "k/common.cuh"\n',
            "src/k/k/common.cuh": "int other;\n",
            "src/config.h": "#define N 1\n",
            "top.h": "int top;\n",
            "include/api/all.h": '#include "detail.h"\n',
            "include/api/detail.h": "#include <k/other.h>\n",
            "more/k/other.h": "int more;\n",
        }
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in tree.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            flags = ["-I", str(root / "include"), f"-I{root}/more"]
            form = extensions.normal_form_load(
                ("e", root / "src/op.cu"), {"extra_cuda_cflags": flags}
            )
            text = f'#include "{root}/src/k/affine.cuh"\n'
            absolute = inline("e", "c", text)
            moved = inline("e", "c", '#include "k/affine.cuh"', extra_include_paths=[root / "src"])
        self.assertEqual(form["cuda_sources"], [tree["src/op.cu"].replace("../top", "top")])
        files = {file["name"]: file["text"] for file in form["files"]}
        inner = tree["src/k/common.cuh"]
        self.assertEqual(files["k/common.cuh"], inner)
        self.assertEqual(files["k/affine.cuh"], '#include "common.cuh"\n#include "../config.h"\n')
        self.assertEqual(files["k/k/common.cuh"], "int other;\n")
        self.assertEqual(files["top.h"], "int top;\n")
        self.assertEqual(files["api/detail.h"], tree["include/api/detail.h"])
        self.assertEqual(files["k/other.h"], "int more;\n")
        # No folder's name reaches the key.
        self.assertEqual(absolute["cuda_sources"], ['#include "affine.cuh"\n'])
        self.assertEqual(len(absolute["files"]), len(moved["files"]))
        self.assertNotIn(folder, str([absolute, moved, form["files"], form["cuda_sources"]]))

    def test_two_headers_of_one_name_are_two(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in ("one", "two"):
                (root / name).mkdir()
                (root / name / "k.cu").write_text('#include "u.h"\n')
                (root / name / "u.h").write_text(f"int {name};\n")
            paths = [root / "one/k.cu", root / "two/k.cu"]
            form = extensions.normal_form_load(("e", paths), {})
        self.assertEqual(form["cuda_sources"], ['#include "u.h"\n', '#include "1/u.h"\n'])
        self.assertEqual([file["text"] for file in form["files"]], ["int two;\n", "int one;\n"])

    def test_a_library_of_operators_is_another_extension_than_a_module(self) -> None:
        module = inline("e", "c", "k", functions=["f"])
        library = inline("e", "c", "k", functions=["f"], is_python_module=False)
        self.assertNotEqual(module["key"], library["key"])
        self.assertIsNone(library["functions"])
        with self.assertRaises(RuntimeError):
            extensions.normal_form_load(("e", []), {"is_standalone": True})

    def test_a_namespace_is_named_as_the_extension_is(self) -> None:
        text = "TORCH_LIBRARY_IMPL( TORCH_EXTENSION_NAME, CUDA, m) {} int TORCH_EXTENSION_NAME;"
        one, other = inline("one", "", text), inline("other", "", text)
        self.assertNotEqual(one["key"], other["key"])
        expected = "TORCH_LIBRARY_IMPL( one, CUDA, m) {} int TORCH_EXTENSION_NAME;"
        self.assertEqual(one["cuda_sources"], [expected])

    def test_every_alias_is_replaced(self) -> None:
        module = ModuleType("m")
        seen: list[Any] = []
        extensions.replace_builders(module, seen.append)
        module.load_inline("e", "c")
        self.assertEqual(seen[0]["cpp_sources"], ["c"])
        self.assertRaises(RuntimeError, module.CUDAExtension, "e", [])


class RecorderTest(ZygoteTest):
    def record(self, source: str) -> Any:
        _, descriptor = empty_region()
        nothing = {
            "t": "list",
            "items": [{"t": "list", "items": []}, {"t": "dict", "items": []}],
        }
        with self.zygote.spawn("recorder") as child:
            question = {"op": "record", "source": source, "initials": [nothing]}
            answer, _ = child.ask(question, descriptor)
            return answer

    def names(self, source: str) -> list[str]:
        answer = self.record(source)
        self.assertTrue(answer["ok"], str(answer))
        return [extension["name"] for extension in answer["extensions"]]

    def test_extensions_are_found_wherever_they_are_built(self) -> None:
        cases = {
            "alias": "import torch\nfrom torch.utils import cpp_extension as ce\n"
            "e = ce.load_inline('e', 'c', functions=['f'])" + MODEL,
            "function": "import torch\nfrom torch.utils.cpp_extension import load_inline as li\n"
            "def build():\n    return li(cpp_sources='c', name='e')\ne = build()" + MODEL,
            "dotted": "import torch, torch.utils.cpp_extension\n"
            "torch.utils.cpp_extension.load_inline('e', 'c')" + MODEL,
            "imported late": "import torch\n"
            "ce = __import__('importlib').import_module('torch.utils.cpp_extension')\n"
            "ce.load_inline('e', 'c')" + MODEL,
            "constructor": "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
            "class ModelNew(torch.nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        self.e = load_inline('e', 'c')\n",
            "called at once": "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
            "e = load_inline('e', 'c')\ne.warm_up()\n" + MODEL,
            "file": "import torch, tempfile, os\nfrom torch.utils.cpp_extension import load\n"
            "d = tempfile.mkdtemp()\np = os.path.join(d, 'x.cu')\nopen(p, 'w').write('k')\n"
            "e = load('e', [p])" + MODEL,
            "operator at once": "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
            "load_inline('e', 'c', is_python_module=False)\n"
            "f = torch.ops.test_no_such.f.default\n"
            "torch.library.register_fake('test_no_such::f', lambda x: x)\n" + MODEL,
            "first forward": "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
            "class ModelNew(torch.nn.Module):\n    def forward(self, x, w, bias=None):\n"
            "        n, m = x.shape\n        assert x.is_cuda and n * m > 0 and x.dim() == 2\n"
            "        y = torch.empty_like(x)\n"
            "        return load_inline('e', 'c').f(x, w, y)\n",
            "cuda tensors": "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
            "x = torch.zeros(3, device='cuda')\ne = load_inline('e', 'c')" + MODEL,
        }
        for name, source in cases.items():
            with self.subTest(name):
                self.assertEqual(self.names(source), ["e"])

    def test_two_extensions_are_two(self) -> None:
        source = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
        source += "a = load_inline('a', 'x')\nb = load_inline('b', 'y')\n" + MODEL
        self.assertEqual(self.names(source), ["a", "b"])

    def test_a_module_without_native_source_records_nothing(self) -> None:
        self.assertEqual(self.names("import torch" + MODEL), [])

    def test_a_forward_that_does_not_end_is_left(self) -> None:
        source = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        source += "        while x.numel() > 1:\n            x = x[0]\n"
        self.assertEqual(self.names(source), [])

    def test_an_exception_is_reported_with_its_line(self) -> None:
        answer = self.record("import torch\n\nraise ValueError('no')\n")
        self.assertEqual(answer["error"]["type"], "ValueError")
        self.assertEqual(answer["error"]["frames"][-1]["line"], 3)
        self.assertEqual(answer["error"]["stage"], "load")

    def test_leaving_the_interpreter_is_an_exception_too(self) -> None:
        self.assertEqual(self.record("import sys\nsys.exit(0)")["error"]["type"], "SystemExit")


if __name__ == "__main__":
    unittest.main()
