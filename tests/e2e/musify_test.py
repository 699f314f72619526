# SPDX-License-Identifier: Apache-2.0
"""Ports between CUDA and MUSA through the command line: `musacoder musify`.

Runs the program named by $MUSACODER; no GPU and no PyTorch is needed.
"""

from __future__ import annotations

import subprocess
import unittest
from pathlib import Path

from program import BAD_INPUT, HONEST, InFolder, run

DONE, FOUND = 0, 3


class Musify(InFolder):
    def musify(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return run("musify", *arguments)

    def test_one_file_goes_to_standard_output(self) -> None:
        source = self.write("k.cu", "cudaFree(p);\n")
        done = self.musify(source)
        self.assertEqual((done.returncode, done.stdout), (DONE, "musaFree(p);\n"))
        self.assertIn("1 file: 1 ported", done.stderr)
        self.assertEqual(source.read_text(), "cudaFree(p);\n")

    def test_a_file_that_is_no_text_is_refused(self) -> None:
        source = self.write("k.py", b"x = 1\n\x00\x17")
        done = self.musify(source)
        self.assertEqual((done.returncode, done.stdout), (BAD_INPUT, ""))
        self.assertIn(f"{source}: it is no source: its byte 7 is 0x00", done.stderr)

    def test_report_names_place_names_and_rule(self) -> None:
        source = self.write("k.cu", "int x;\n  cudaFree(p);\n")
        done = self.musify(source, "--report")
        self.assertIn(f"{source}:2:3: cudaFree -> musaFree (runtime)\n", done.stderr)

    def test_diff_is_a_line_a_file_with_its_reason_and_writes_nothing(self) -> None:
        self.write("in/a.cu", "cudaFree(p);\ncudaFree(q);\n")
        self.write("in/b.cu", 'void f() {\n  asm("nop;");\n}\n')
        self.write("in/c.cu", "int x;\n")
        done = self.musify("--diff", self.folder / "in")
        self.assertEqual((done.returncode, done.stderr), (FOUND, ""))
        a, b, c, total = done.stdout.splitlines()
        self.assertEqual(a, f"{self.folder}/in/a.cu: ported: 2 runtime")
        self.assertRegex(b, r"/in/b.cu: refused: line 2: .*PTX")
        self.assertEqual(c, f"{self.folder}/in/c.cu: unchanged: nothing of the other side")
        self.assertEqual(total, "3 files: 1 ported, 1 unchanged, 0 partial, 1 refused")
        self.assertEqual(len(list((self.folder / "in").iterdir())), 3)

    def test_folder_is_ported_with_new_suffixes_and_back(self) -> None:
        self.write("in/a/k.cu", '#include "k.cuh"\nMY_CUDA(cudaFree(p));\n')
        self.write("in/a/k.cuh", "#define MY_CUDA(x) x\n")
        self.assertEqual(
            self.musify(self.folder / "in", "--out", self.folder / "m").returncode, DONE
        )
        self.assertEqual(
            (self.folder / "m/a/k.mu").read_text(), '#include "k.muh"\nMY_CUDA(musaFree(p));\n'
        )
        done = self.musify("--to", "cuda", self.folder / "m", "--out", self.folder / "c")
        self.assertEqual(done.returncode, DONE, done.stderr)
        for name in ("a/k.cu", "a/k.cuh"):
            self.assertEqual(
                (self.folder / "c" / name).read_text(), (self.folder / "in" / name).read_text()
            )

    def test_refused_file_is_not_written_and_others_are(self) -> None:
        self.write("in/bad.cu", 'void f() {\n  asm("nop;");\n}\n')
        self.write("in/good.cu", "cudaFree(p);\n")
        done = self.musify(self.folder / "in", "--out", self.folder / "out")
        self.assertEqual(done.returncode, FOUND)
        self.assertIn("bad.cu:2:3: refused: asm: inline PTX", done.stderr)
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["good.mu"])

    def test_a_port_beside_its_original_does_not_end_the_run(self) -> None:
        self.write("in/k.cu", "cudaFree(p);\n")
        self.write("in/k.mu", "musaFree(q);\n")
        self.write("in/l.cu", "cudaFree(r);\n")
        done = self.musify(self.folder / "in", "--out", self.folder / "out")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("in/k.cu: left out: its port k.mu is beside it\n", done.stderr)
        self.assertEqual((self.folder / "out/k.mu").read_text(), "musaFree(q);\n")
        self.assertEqual((self.folder / "out/l.mu").read_text(), "musaFree(r);\n")

    def test_each_reason_is_a_line_of_its_file(self) -> None:
        done = self.musify(self.write("k.cu", "f(MY_CUDA);\ng(MY_CUDA);\n"))
        line = "k.cu:1:3: left over: MY_CUDA is known to no rule (remnant), 2 times\n"
        self.assertIn(line, done.stderr)
        self.assertEqual(done.stderr.count("left over"), 1)

    def test_partial_port_lists_what_is_left(self) -> None:
        done = self.musify(self.write("k.cu", "int x = MY_CUDA;\n"))
        self.assertEqual(done.returncode, FOUND)
        self.assertIn("k.cu:1:9: left over: MY_CUDA is known to no rule", done.stderr)

    def test_check_writes_nothing_and_fails_where_a_file_would_change(self) -> None:
        done = self.musify("--check", self.write("k.cu", "cudaFree(p);\n"))
        self.assertEqual(done.returncode, FOUND)
        self.assertIn("k.cu: ported\n", done.stdout)
        self.assertEqual(len(list(self.folder.iterdir())), 1)
        self.assertEqual(self.musify("--check", self.write("k.mu", "f(p);\n")).returncode, DONE)

    def test_wrong_use_is_told_in_one_line(self) -> None:
        source = self.write("k.py", "x\n")
        for arguments, message in (
            (["/nowhere/k.cu"], "/nowhere/k.cu: no such file or folder"),
            ([self.write("k.txt", "")], "not a source"),
            ([self.folder], "--out is missing"),
            ([self.folder, "--out", self.folder], "is an input"),
            ([source, "--to", "hip"], 'expected musa or cuda, got "hip"'),
            ([source, "--musa-arch", "mp_99"], "mp_99"),
        ):
            done = self.musify(*arguments)
            self.assertEqual((done.returncode, done.stdout), (BAD_INPUT, ""), arguments)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(message, done.stderr)

    def test_warp_width_is_warned_of_for_wide_warps(self) -> None:
        source = self.write("k.cu", "int l = t % 32; v = __shfl_sync(0xffffffff, v, 0);\n")
        self.assertIn("(warp_width)", self.musify(source, "--musa-arch", "mp_22").stderr)
        self.assertNotIn("warning", self.musify(source).stderr)

    def test_honest_candidates_come_back_byte_for_byte(self) -> None:
        self.assertEqual(self.musify(HONEST, "--out", self.folder / "m").returncode, DONE)
        done = self.musify("--to", "cuda", self.folder / "m", "--out", self.folder / "c")
        self.assertEqual(done.returncode, DONE, done.stderr)
        changed = [
            path.stem
            for path in HONEST.glob("*/*.py")
            if (self.folder / "c" / path.relative_to(HONEST)).read_bytes() != path.read_bytes()
        ]
        self.assertEqual(changed, ["rms_norm"])  # A flag of nvcc's is dropped there.


if __name__ == "__main__":
    unittest.main()
