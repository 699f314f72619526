# SPDX-License-Identifier: Apache-2.0
"""Writes the headers with which the sources of device/ compile for MUSA.

  names.py DEVICE OUT

For every CUDA name in DEVICE's sources there is a macro that renames it to MUSA's name, by prefix.
OUT receives names.h, which the compiler includes before each source (-include), and one header
under each CUDA header's name that the sources include. No name was tried on MUSA hardware.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUFFIXES = {".cc", ".cu", ".h", ".inc"}
NAME = re.compile(
    r"\b(?:(?:__cuda|cuda|cu(?!BLAS|DNN))[A-Z]\w+|CU(?:DA|DART)?_\w+|CU[a-z]\w+|cuuint\w+)"
)
OTHERS = {"cudaErrorCudartUnloading": "musaErrorMusartUnloading"}
PREFIXES = {"__cuda": "__musa", "cuda": "musa", "CUDA": "MUSA", "CU": "MU", "cu": "mu"}
HEADERS = {
    "cuda.h": "musa.h",
    "cuda_runtime.h": "musa_runtime.h",
    "cuda_runtime_api.h": "musa_runtime_api.h",
    "driver_types.h": "musa_runtime_api.h",
}


def musa_name(name: str) -> str:
    prefix = next(prefix for prefix in PREFIXES if name.startswith(prefix))
    return OTHERS.get(name, PREFIXES[prefix] + name.removeprefix(prefix))


def names_in(folder: Path) -> list[str]:
    texts = [path.read_text() for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES]
    return sorted({name for text in texts for name in NAME.findall(text)})


def main(device: Path, out: Path) -> None:
    lines = [f"#define {name} {musa_name(name)}\n" for name in names_in(device)]
    (out / "names.h").write_text("#define MC_DEVICE_MUSA 1\n" + "".join(lines))
    for name, other in HEADERS.items():
        (out / name).write_text(f"#include <{other}>\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
