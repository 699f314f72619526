# SPDX-License-Identifier: Apache-2.0
"""Writes unsupported.inc, which unsupported.cc includes.

  unsupported.py HEADERS OUT

HEADERS is the folder of CUDA's headers, or of MUSA's. OUT/unsupported.inc receives a line for each
function that they declare, and for its form for the default stream of each thread.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FILES = re.compile(r"(cuda|musa)\w*\.h")
# "cudaError_t CUDARTAPI cudaFree(", "#define cuMemAlloc cuMemAlloc_v2" and
# "#define cudaMemcpy __CUDART_API_PTDS(cudaMemcpy)".
NAMES = (
    re.compile(r"\b[A-Z]+API(?:_CDECL)?\s+((?:cu|mu)\w+)\s*\("),
    re.compile(r"#\s*define +(?:cu|mu)\w+ +((?:cu|mu)[A-Z]\w+)\b"),
)
PER_THREAD = re.compile(r"#\s*define +\w+ +__\w+_API_(PTSZ|PTDS)\((\w+)\)")
# These functions have no declaration there.
OTHERS = {"__cudaGetProcAddress", "__cudaRegisterHostVar", "__cudaRegisterUnifiedTable"}


def functions_in(text: str) -> set[str]:
    names = {name for pattern in NAMES for name in pattern.findall(text)}
    return names | {f"{name}_{kind.lower()}" for kind, name in PER_THREAD.findall(text)}


def main(headers: Path, out: Path) -> None:
    files = [path for path in headers.iterdir() if FILES.fullmatch(path.name)]
    names = OTHERS.union(*(functions_in(path.read_text(errors="replace")) for path in files))
    lines = [f"MC_UNSUPPORTED({name})\n" for name in sorted(names)]
    (out / "unsupported.inc").write_text("".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
