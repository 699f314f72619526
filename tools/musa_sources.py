# SPDX-License-Identifier: Apache-2.0
"""Ports public MUSA sources to CUDA and compiles them: musify on MUSA as others write it.

Each .mu file of the folders is ported together with all other sources of its folder, so that what
it includes is ported too, and is compiled by nvcc, with its own folder, folders named include and
those of --include. A program (a file that defines main, built from the .mu and .cpp files of
its folder) is linked as well, and run where there is a device. Nothing here shows that a source is
right on MUSA.

usage: tools/musa_sources.py FOLDER... --musacoder BUILD/bin/musacoder [--include DIR] [--run]
"""

from __future__ import annotations

import argparse
import collections
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# The runtime header of MUSA brings <cstdint>; the one of CUDA does not.
FLAGS = ("-std=c++17", "-arch=sm_90", "--expt-relaxed-constexpr", "-w", "-include", "cstdint")


def ported(folder: Path, out: Path, musacoder: str) -> None:
    """All of a folder, in CUDA; what musify refuses is left out there."""
    command = [musacoder, "musify", str(folder), "--to", "cuda", "--out", str(out)]
    subprocess.run(command, capture_output=True, check=False)


def first_error(text: str) -> str:
    for line in text.splitlines():
        if "error" in line:
            return line.strip()[:160]
    return text.strip().splitlines()[-1][:160] if text.strip() else "no message"


def compiled(source: Path, includes: Sequence[str], target: Path) -> str:
    """The compiler's first error, or ""."""
    command = ["nvcc", *FLAGS, *(f"-I{one}" for one in includes), "-c", str(source)]
    done = subprocess.run([*command, "-o", str(target)], capture_output=True, text=True)
    return "" if done.returncode == 0 else first_error(done.stderr + done.stdout)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--musacoder", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--run", action="store_true")
    given = parser.parse_args(arguments)
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for number, folder in enumerate(given.folders):
            out = Path(scratch) / str(number)
            ported(folder, out, given.musacoder)
            for original in sorted(folder.rglob("*.mu")):
                name = original.relative_to(folder)
                source = (out / name).with_suffix(".cu")
                if not source.is_file():
                    counts["refused"] += 1
                    print(f"{folder.name}/{name}: refused by musify")
                    continue
                own = [source.parent, out, *(one for one in out.rglob("include") if one.is_dir())]
                includes = [*given.include, *map(str, own)]
                target = Path(scratch) / f"{number}.o"
                error = compiled(source, includes, target)
                lacks = "No such file" in error
                counts["needs others' headers" if lacks else "fails" if error else "compiles"] += 1
                print(f"{folder.name}/{name}: {error or 'compiles'}")
                if error or not given.run or "int main(" not in source.read_text(errors="replace"):
                    continue
                others = [str(one) for one in source.parent.glob("*.cpp")]
                program = Path(scratch) / f"{number}.run"
                command = ["nvcc", *FLAGS, str(target), *others, "-o", str(program)]
                linked = subprocess.run(command, capture_output=True, text=True)
                if linked.returncode != 0:
                    print(f"  does not link: {first_error(linked.stderr)}")
                    continue
                ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
                counts["runs"] += ran.returncode == 0
                print(f"  runs: exit code {ran.returncode}: {ran.stdout.strip()[-100:]}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
