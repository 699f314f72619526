# SPDX-License-Identifier: Apache-2.0
"""Libraries lose their device code (device/vendor.cc); here one that stands for a vendor's."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEVICE = Path(__file__).resolve().parent.parent.parent / "device"
LIBRARY = """
asm(".section .nv_fatbin, \\"a\\";"
    ".globl device_code; device_code: .fill 65536, 1, 7; .text");
extern "C" {
char data[1 << 16];
__attribute__((aligned(4096))) int answer(int x) { return x + data[0]; }
__attribute__((aligned(8192))) int last(int x) { return x; }
}
"""


class VendorsTest(unittest.TestCase):
    libraries: dict[str, Any] = {}

    @classmethod
    def setUpClass(cls) -> None:
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        source = Path(home.name) / "library.cc"
        source.write_text(LIBRARY)
        for name in ("libvendor.so", "libtorch_cuda.so", "libnvrtc.so.13"):
            cls.libraries[name] = cls.built(source, Path(home.name) / name)
        cls.device = cls.built(DEVICE / "vendor.cc", Path(home.name) / "device.so")

    device: Any

    @staticmethod
    def built(source: Path, library: Path) -> Any:
        options = ["-std=c++20", "-O1", "-fPIC", "-shared", f"-I{DEVICE}"]
        subprocess.run(["g++", *options, str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))

    def end_of(self, action: Callable[[], object]) -> tuple[int, bytes]:
        """How a child ends that does this without vendors' code, and what it tells before."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            status = self.device.mc_vendors_remove(write_end)
            action()
            os._exit(status)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            told = pipe.read()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told

    def peek(self, name: str, variable: str) -> Callable[[], object]:
        first = ctypes.c_char.in_dll(self.libraries[name], variable)
        return lambda: ctypes.string_at(ctypes.addressof(first) + (1 << 15), 1)

    def assert_told(self, end: tuple[int, bytes], name: str) -> None:
        status, told = end
        self.assertEqual(status, 1)
        self.assertEqual(int.from_bytes(told[:4], "little"), len(told) - 4)
        error = json.loads(told[4:])["error"]
        self.assertEqual(error["kind"], "library")
        self.assertIn(f"{name} is not available to a candidate", error["message"])

    def test_device_code_is_gone_and_who_needs_it_says_so(self) -> None:
        self.assert_told(self.end_of(self.peek("libvendor.so", "device_code")), "libvendor.so")

    def test_what_makes_device_code_is_gone_itself(self) -> None:
        answer = self.libraries["libnvrtc.so.13"].answer
        self.assert_told(self.end_of(lambda: answer(1)), "libnvrtc.so.13")

    def test_the_rest_of_a_library_stays(self) -> None:
        self.assertEqual(self.end_of(self.peek("libvendor.so", "data")), (0, b""))
        answer = self.libraries["libvendor.so"].answer
        self.assertEqual(self.end_of(lambda: answer(1)), (0, b""))

    def test_pytorch_keeps_its_own(self) -> None:
        self.assertEqual(self.end_of(self.peek("libtorch_cuda.so", "device_code")), (0, b""))

    def test_any_other_fault_is_what_it_was(self) -> None:
        self.assertEqual(self.end_of(lambda: ctypes.string_at(8)), (-signal.SIGSEGV, b""))

    def test_no_later_call_brings_it_back(self) -> None:
        address = ctypes.addressof(
            ctypes.c_char.in_dll(self.libraries["libvendor.so"], "device_code")
        )
        page = (address + (1 << 15)) // 4096 * 4096

        def look() -> None:
            libc = ctypes.CDLL(None)
            assert libc.mprotect(ctypes.c_void_p(page), 4096, 1) == 0
            os._exit(ctypes.string_at(page, 4096) != bytes(4096))

        self.assertEqual(self.end_of(look), (0, b""))


if __name__ == "__main__":
    unittest.main()
