#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed folder: it needs nothing of the machine that built it, and can be moved.

Installs the build that $MC_BUILD names into a temporary folder, stripped, and moves it. What it
does there it does, where the machine allows that, in a mount namespace of its own in which the
source and build trees are empty.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MC_BUILD", ROOT / "build/dev"))
TASK = "reduction/row_sum"
HONEST = ROOT / "tests/corpus/honest" / f"{TASK}.py"

BYTES_MAX = 40 << 20
GLIBC_MAX = (2, 35)  # Ubuntu 22.04's: machines with MUSA's PyTorch have it.
GLIBC_BUILT_MAX = (2, 36)  # Debian 12's, where it is built.
LIBRARIES_OF_GLIBC = re.compile(r"(lib(c|m|dl|pthread|rt)|ld-linux-x86-64)\.so\.\d+")
OWN_SYMBOLS = re.compile(r"_?_?(mc_|cuda|cu[A-Z]|curand|tsan_|wrap_mem)\w+")
HIDE_TREES = 'mount -t tmpfs none "$1" && mount -t tmpfs none "$2" && shift 2 && exec "$@"'
WITHOUT_TREES = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", HIDE_TREES, "-"]


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class BundleTest(unittest.TestCase):
    folder: Path  # The bundle's place after it was moved.

    @classmethod
    def setUpClass(cls) -> None:
        home = Path(tempfile.mkdtemp(prefix="mc-bundle-"))
        cls.addClassCleanup(shutil.rmtree, home)
        installed = home / "installed"
        output_of("cmake", "--install", str(BUILD), "--strip", "--prefix", str(installed))
        cls.folder = installed.rename(home / "moved")
        shutil.copy(HONEST, home / "candidate.py")

    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]

    def programs(self) -> list[Path]:
        found = [path for path in self.files() if path.read_bytes()[:4] == b"\x7fELF"]
        # The ptx device is built where CUDA's headers are.
        names = {path.name for path in found} - {"libmc_ptx_executor.so"}
        self.assertEqual(names, {"musacoder", "musacoder-kernels", "libmc_sandbox.so"})
        return found

    def run_moved(self, *arguments: str) -> str:
        """The output of the moved program, started elsewhere, with the trees hidden if possible."""
        hidden = [*WITHOUT_TREES, str(BUILD), str(ROOT)]
        can_hide = subprocess.run([*hidden, "true"], capture_output=True, check=False)
        within = hidden if can_hide.returncode == 0 else []
        environment = {name: text for name, text in os.environ.items() if name != "MC_PREFIX"}
        done = subprocess.run(
            [*within, str(self.folder / "bin/musacoder"), *arguments],
            cwd="/", env=environment, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_it_is_small_and_holds_what_it_should(self) -> None:
        self.assertLess(sum(path.stat().st_size for path in self.files()), BYTES_MAX)
        for name in ("data", "device", "python/harness"):
            self.assertTrue((self.folder / "share/musacoder" / name).is_dir(), name)
        for name in ("README.md", "LICENSE"):
            self.assertTrue((self.folder / "share/doc/musacoder" / name).is_file(), name)
        for library in ("libseccomp", "libsodium", "libsqlite3", "gcc-"):
            licences = self.folder.glob(f"share/doc/musacoder/{library}*.copyright")
            self.assertTrue(list(licences), library)
        for path in self.folder.rglob("*"):
            self.assertFalse(path.is_symlink(), path)
            self.assertNotIn(path.name, ("tests", "__pycache__", "CMakeLists.txt"))

    def test_it_needs_no_library_but_glibc(self) -> None:
        for program in self.programs():
            dynamic = output_of("readelf", "-d", str(program))
            for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
                self.assertTrue(LIBRARIES_OF_GLIBC.fullmatch(name), f"{program.name} needs {name}")
            self.assertNotRegex(dynamic, r"\((RPATH|RUNPATH)\)")
            self.assertNotIn("not found", output_of("ldd", str(program)))

    def test_it_needs_no_newer_glibc_than_ubuntu_22_has(self) -> None:
        here = re.search(r"(\d+)\.(\d+)", os.confstr("CS_GNU_LIBC_VERSION") or "")
        if here and tuple(map(int, here.groups())) > GLIBC_BUILT_MAX:
            self.skipTest("built on a newer system")
        for program in self.programs():
            wanted = re.findall(r"GLIBC_(\d+)\.(\d+)", output_of("objdump", "-T", str(program)))
            newest = max(tuple(map(int, version)) for version in wanted)
            self.assertLessEqual(newest, GLIBC_MAX, program.name)

    def test_its_libraries_show_only_their_own_symbols(self) -> None:
        for library in (self.folder / "lib").iterdir():
            for line in output_of("nm", "-D", "--defined-only", str(library)).splitlines():
                self.assertTrue(OWN_SYMBOLS.fullmatch(line.split()[-1]), f"{library.name}: {line}")

    def test_it_names_no_place_of_the_build(self) -> None:
        for path in self.files():
            for place in (ROOT, BUILD):
                self.assertNotIn(str(place).encode() + b"/", path.read_bytes(), path)

    def test_the_doctor_finds_its_parts_where_they_are(self) -> None:
        report = self.run_moved("doctor")
        self.assertIn(str(self.folder / "lib/libmc_sandbox.so"), report)
        self.assertNotIn(f"{ROOT}/", report)

    def test_it_judges(self) -> None:
        candidate = str(self.folder.parent / "candidate.py")
        line = self.run_moved("eval", "--json", "--task", TASK, "-c", candidate)
        self.assertEqual(json.loads(line)["verdict"]["outcome"]["kind"], "pass", line)
        self.assertEqual([path for path in self.folder.rglob("__pycache__")], [])


if __name__ == "__main__":
    unittest.main()
