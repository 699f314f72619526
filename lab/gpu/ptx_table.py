# SPDX-License-Identifier: Apache-2.0
"""Runs the kernels that `ptx_table --write DIR` made on a GPU, and writes their outputs.

    python3 lab/gpu/ptx_table.py DIR [--jobs N]

Each module has NAME.ptx and NAME.in in DIR, and gets NAME.out; index.json lists its kernels. The
GPU's driver compiles a module, so that nothing but Python and libcuda.so.1 is needed. A process
runs each module, several at a time, as compiling takes the time. A kernel that faults is reported
and left out (its output stays zero), and the others of its module run in a new process.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

FAULTS_MAX = 10
MODULE_SECONDS_MAX = 100
LOG_BYTES = 16384
JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES = 5, 6  # CUjit_option


class Driver:
    """The CUDA driver with the first GPU's context."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._check("cuInit", 0)
        self._check("cuDeviceGet", ctypes.byref(device), 0)
        self._check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._check("cuCtxSetCurrent", context)

    def _check(self, function: str, *arguments: Any) -> None:
        status = getattr(self._cuda, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function} failed with CUDA's error {status}")

    def load(self, text: bytes) -> ctypes.c_void_p:
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(LOG_BYTES)
        options = (ctypes.c_int * 2)(JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        try:
            self._check(
                "cuModuleLoadDataEx", ctypes.byref(module), text + b"\0", 2, options, values
            )
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {log.value.decode(errors='replace')[:1000]}") from None
        return module

    def put(self, data: bytes) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self._check("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(len(data), 1)))
        self._check("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
        return address

    def get(self, address: ctypes.c_uint64, size: int) -> bytes:
        data = ctypes.create_string_buffer(max(size, 1))
        self._check("cuMemcpyDtoH_v2", data, address, ctypes.c_size_t(size))
        return data.raw[:size]

    def launch(self, module: ctypes.c_void_p, kernel: dict[str, Any], at: tuple[int, int]) -> None:
        function = ctypes.c_void_p()
        name = kernel["name"].encode()
        self._check("cuModuleGetFunction", ctypes.byref(function), module, name)
        arguments = [ctypes.c_uint64(address) for address in at]
        pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, arguments))
        shape = (*kernel["grid"], *kernel["block"])
        self._check("cuLaunchKernel", function, *shape, 0, None, pointers, None)
        self._check("cuCtxSynchronize")


def run_module(directory: Path, module: dict[str, Any], skipped: set[str]) -> str:
    """The name of a kernel that faulted, or nothing. Then NAME.out has not been written."""
    driver = Driver()
    loaded = driver.load((directory / f"{module['name']}.ptx").read_bytes())
    source = driver.put((directory / f"{module['name']}.in").read_bytes())
    target = driver.put(bytes(module["out_bytes"]))
    for kernel in module["kernels"]:
        if kernel["name"] in skipped:
            continue
        try:
            driver.launch(
                loaded, kernel, (source.value + kernel["in"], target.value + kernel["out"])
            )
        except RuntimeError as error:
            print(f"{module['name']}: {kernel['name']}: {error}", file=sys.stderr)
            return str(kernel["name"])
    output = driver.get(target, module["out_bytes"])
    (directory / f"{module['name']}.out").write_bytes(output)
    return ""


def run_in_process(directory: Path, name: str) -> bool:
    """Runs a module in a process of its own; True if all of its kernels ran."""
    skipped: list[str] = []
    for _ in range(FAULTS_MAX):
        command = [sys.executable, __file__, str(directory), "--module", name]
        for kernel in skipped:
            command += ["--skip", kernel]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, timeout=MODULE_SECONDS_MAX, check=False
            )
        except subprocess.TimeoutExpired:
            print(f"{name}: no end after {MODULE_SECONDS_MAX} s", file=sys.stderr)
            return False
        if done.returncode == 0:
            return not skipped
        if not done.stdout.strip():
            return False
        skipped.append(done.stdout.strip())
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--jobs", type=int, default=8, help="modules at a time")
    parser.add_argument("--module", help="run this module in this process")
    parser.add_argument("--skip", action="append", default=[], help="a kernel to leave out")
    options = parser.parse_args()
    modules = json.loads((options.directory / "index.json").read_text())["modules"]
    if options.module:
        module = next(one for one in modules if one["name"] == options.module)
        fault = run_module(options.directory, module, set(options.skip))
        print(fault)
        return 1 if fault else 0
    begin = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        names = [module["name"] for module in modules]
        good = list(pool.map(lambda name: run_in_process(options.directory, name), names))
    for name in (name for name, is_good in zip(names, good, strict=True) if not is_good):
        print(f"{name}: kernels are missing in its output", file=sys.stderr)
    kernels = sum(len(module["kernels"]) for module in modules)
    print(
        f"{sum(good)} of {len(good)} modules, {kernels} kernels, {time.monotonic() - begin:.1f} s"
    )
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
