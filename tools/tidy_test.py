# SPDX-License-Identifier: Apache-2.0
"""Each rule of tidy.py finds its breach, and finds nothing in a file that keeps the rules.

usage: python3 -m unittest discover -s tools -p '*_test.py'
"""

import pathlib
import subprocess
import tempfile
import unittest

import tidy

CC = "// " + tidy.SPDX + "\n"
PY = "# " + tidy.SPDX + "\n"
GUARD = CC + "#ifndef MC_CORE_X_H_\n#define MC_CORE_X_H_\n"

# Path, text, and a part of the expected finding; "" if none.
TABLE = (
    ("src/core/x.cc", CC + '#include "core/x.h"\n', ""),
    ("src/core/x.cc", '#include "core/x.h"\n', "the first line is not"),
    ("tools/x.sh", "#!/bin/sh\n" + PY, ""),
    ("tools/x.sh", "#!/bin/sh\n", "the first line is not"),
    ("tests/corpus/a.py", "import torch\n", "the first line is not"),
    ("tests/corpus/a.md", "no licence in an answer  \r\n", ""),
    ("src/core/x.cc", CC + '#include "../x.h"\n', "would slip past"),
    ("src/core/x.cc", CC + "// TO" + "DO: later\n", "names no issue"),
    ("src/core/x.cc", CC + "// TO" + "DO(#12): later\n", ""),
    ("src/core/x.cc", CC + "x" * 101 + "\n", "101 columns"),
    ("src/core/x.cc", CC + "x \n", "white space"),
    ("src/core/x.cc", CC + "\tx\n", "a tab"),
    ("src/core/x.cc", CC + "if (one == task::Backend::kCuda) {\n", "a branch on the backend"),
    ("src/core/x.cc", CC + "return task::Backend::kCpu;\n", ""),
    ("src/eval/x.cc", CC + "return task::Backend::kCuda;\n", "a branch on the backend"),
    ("src/eval/cuda_backend.cc", CC + "return task::Backend::kCuda;\n", ""),
    ("src/execute/x.cc", CC + 'question["device"] = "cuda";\n', "a branch on the backend"),
    ("src/execute/x.cc", CC + '// The name is "cuda".\n', ""),
    ("src/execute/x_test.cc", CC + 'question["device"] = "cuda";\n', ""),
    ("src/legality/x.cc", CC + 'lists["cuda"] = flags;\n', ""),
    ("python/harness/x.py", PY + 'if device == "cuda":\n', "a branch on the backend"),
    ("python/harness/x.py", PY + "if device.type != 'cpu':\n", "a branch on the backend"),
    ("python/harness/x.py", PY + 'torch.empty(0, device="cuda:0")\n', "a branch on the backend"),
    ("python/harness/timing/x.py", PY + "torch.cuda.synchronize()\n", "a branch on the backend"),
    ("python/harness/judge/x.py", PY + "torch.backends.cudnn.enabled = 0\n", "a branch on the ba"),
    ("python/harness/worker/cuda_place.py", PY + "torch.cuda.synchronize()\n", ""),
    ("python/harness/candidate/cuda_on_cpu.py", PY + 'if device == "cuda":\n', ""),
    ("python/harness/tests/x.py", PY + 'mock.patch("torch.cuda.Event")\n', ""),
    ("x.md", "|a|\n|-|\n|b|\n", ""),
    ("x.md", "|a|\n|-|\n\n|b|\n", "begins without a header"),
    ("x.md", "```\n|b|\n```\n", ""),
    ("src/core/x.h", GUARD, ""),
    ("src/core/x.h", CC + "#pragma once\n", "the guard is not MC_CORE_X_H_"),
    ("src/core/x.h", GUARD + "#include <nlohmann/json.hpp>\n", "only a .cc may"),
    ("src/core/x.h", GUARD + "using namespace std;\n", "using namespace"),
)


# The beginning of a comment, and whether the rule for comments refuses it.
COMMENTS = (
    ("// Of the baseline.\n", True),
    ("// What waits.\n", True),
    ("// lower case.\n", True),
    ("int x;  // who waits\n", True),
    ("// The process that waits.\n", False),
    ("// The first line,\n// what goes on.\n", False),
    ("// mc_guard_remove starts it.\n", False),
    ("// clang-format off\n", False),
    ('}  // extern "C"\n', False),
    ("// ifndef MC_X_H_\n", False),
    ('auto x = "a  // what";\n', False),
    ("// Offsets are sorted.\n", False),
)


class Comments(unittest.TestCase):
    def test_a_comment_begins_with_a_noun_as_its_subject(self) -> None:
        for text, is_refused in COMMENTS:
            with self.subTest(text=text):
                found = tidy.comments_begin_with_a_noun(tidy.File("src/core/x.cc", CC + text))
                self.assertEqual(len([*found]), int(is_refused))


class Rules(unittest.TestCase):
    def test_each_rule_finds_its_breach_and_no_more(self) -> None:
        for path, text, expected in TABLE:
            with self.subTest(path=path, text=text):
                file = tidy.File(path, text)
                found = [what for rule in tidy.RULES for _, what in rule(file)]
                if expected:
                    self.assertEqual(len(found), 1, found)
                    self.assertIn(expected, found[0])
                else:
                    self.assertEqual(found, [])


NAME = "docs/" + "x.md"
A, B = "docs/" + "a.md", "docs/" + "b.md"


class Repository(unittest.TestCase):
    def setUp(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.root = pathlib.Path(self.directory.name)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)

    def write(self, path: str, text: str, is_tracked: bool = True) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, "utf-8")
        if is_tracked:
            subprocess.run(["git", "-C", str(self.root), "add", "--all"], check=True)

    def found(self) -> list[str]:
        return list(tidy.breaches(tidy.known_to_git(self.root), self.root))

    def test_finds_build_output(self) -> None:
        self.write("lib/x.so", "")
        self.assertEqual(len(self.found()), 1)
        self.assertIn("build output", self.found()[0])

    def test_passes_over_what_git_ignores(self) -> None:
        self.write(".gitignore", "/lib/\n")
        self.write("lib/x.so", "")
        self.assertEqual(self.found(), [])

    def test_passes_over_what_the_commands_of_the_pages_make(self) -> None:
        self.write("tools/x.py", PY)
        for path in ("bench/mine/x.py", "x.py", "tools/venv/bin/x.py"):
            self.write(path, "\n", is_tracked=False)
        self.write("tools/venv/pyvenv.cfg", "", is_tracked=False)
        self.assertEqual(self.found(), [])

    def test_finds_a_new_file_in_a_folder_of_the_source(self) -> None:
        self.write("tools/x.py", PY)
        self.write("tools/new/y.py", "\n", is_tracked=False)
        self.assertEqual([line.partition(":")[0] for line in self.found()], ["tools/new/y.py"])

    def test_finds_a_program_without_the_run_bit(self) -> None:
        self.write("tools/x.py", "#!/usr/bin/env python3\n" + PY)
        self.assertEqual(len(self.found()), 1)
        (self.root / "tools/x.py").chmod(0o755)
        self.assertEqual(self.found(), [])
        self.write("tools/x.py", PY)
        self.assertEqual(len(self.found()), 1)

    def test_finds_a_header_that_nobody_includes(self) -> None:
        self.write("src/core/x.h", GUARD)
        self.assertEqual(self.found(), ["src/core/x.h:1: nobody includes this header"])
        self.write("src/core/x.cc", CC + '#include "core/x.h"\n')
        self.assertEqual(self.found(), [])

    def test_finds_a_path_of_this_machine(self) -> None:
        for path in (self.root / "build", pathlib.Path.home() / ".cache/x"):
            self.write("README.md", f"see {path}\n")
            self.assertEqual(self.found(), ["README.md:1: names a directory of this machine"])
        self.write("README.md", f"see ~/.cache/x and copies{self.root}\n")
        self.assertEqual(self.found(), [])

    def test_finds_a_document_that_does_not_exist(self) -> None:
        self.write("src/core/x.cc", CC + f"// See {NAME}.\n")
        self.assertEqual(self.found(), [f"src/core/x.cc:2: there is no {NAME}"])
        self.write(NAME, "x\n")
        self.assertEqual(self.found(), [])

    def test_finds_a_link_that_leads_nowhere(self) -> None:
        self.write(A, "# A\n[b](b.md) [c](b.md#the-heading) [a](#a) [web](https://x.y)\n")
        breach = A + ":2: there is no b.md"
        self.assertEqual(self.found(), [breach, breach])
        self.write(B, "## Another heading\n")
        self.assertEqual(self.found(), [A + ":2: b.md has no heading #the-heading"])
        self.write(B, "## The `heading`\n")
        self.assertEqual(self.found(), [])

    def test_passes_over_a_link_to_a_page_that_the_site_generates(self) -> None:
        self.write(A, "[x](reference/x.md) [y](reference/y.md)\n")
        self.write("tools/reference.py", PY + 'PAGE = "reference/x.md"\n')
        self.assertEqual(self.found(), [A + ":1: there is no reference/y.md"])

    def test_finds_a_source_that_a_page_names_and_that_is_not_there(self) -> None:
        self.write(A, "See `tools/x.py`.\n")
        self.assertEqual(self.found(), [A + ":1: there is no tools/x.py"])
        self.write("tools/x.py", PY)
        self.assertEqual(self.found(), [])

    def test_exits_with_1_when_something_is_found(self) -> None:
        self.assertEqual(tidy.main([str(self.root)]), 0)
        self.write("a.py", "\n")
        self.assertEqual(tidy.main([str(self.root)]), 1)


if __name__ == "__main__":
    unittest.main()
