#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs public CUDA programs, drawn by a seed, under `musacoder check`.

    lab/check/programs.py SAMPLES HECBENCH --musacoder FILE --out FILE [--number 30] [--seed 1]
        [--timeout 60] [--minutes N] [--list]

SAMPLES and HECBENCH are work trees of github.com/NVIDIA/cuda-samples and zjin-lcf/HeCBench, best
copies, as some programs write in their folders, and not below /tmp, where check shows a program
nothing but its own folder. --list prints the programs alone.

Listed is a program whose folder has a CMakeLists.txt with one add_executable (cuda-samples), or
whose `make -n run` shows its compilation and its run (HeCBench, the folders NAME-cuda), unless

- a source or header of the folder includes, or a link flag names, what check has not (FOREIGN):
  graphics, MPI, NCCL, NVSHMEM, cuFFT, cuRAND's host API, cuSPARSE, cuSOLVER, cuBLASLt, cuDNN, NPP,
  nvJPEG, NVML, libraries that are not CUDA's;
- it calls a function of CUDA that device/client does not define (textures, other processes' memory,
  most of the driver's API), or of cuBLAS more than products and handles;
- it is linked from relocatable code (cdp*: nested launches), or from PTX or a fat binary that its
  build makes;
- a source is missing or not C++, or a file that the run names is not in the checkout.

Arguments are those of the first line of HeCBench's `run` target.  An integer that the usage text
calls a repeat, iteration, step or run becomes at most 2, as does the last of several; every other
one becomes at most 1024.  cuda-samples run without arguments.

A line of --out is a program: what it was (`ran right`: exit code 0, no finding, and no line of its
output that says otherwise), the seconds and those of processors with its compilation, the findings,
the end of its output.
The lines that are there already are not run again.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import re
import resource
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab/gpu"), str(ROOT / "device/client")]

from figures import table  # noqa: E402
from unsupported import functions_in  # noqa: E402

HEADERS = Path(sysconfig.get_path("purelib")) / "nvidia/cu13/include"
RUNTIME_AND_DRIVER = ("cuda_runtime_api.h", "cuda.h")

FOREIGN = re.compile(r"""(?mx) ^\s*\#\s*include\s*[<"]
    (GL|EGL|GLES\d?|X11|d3d\w*|vulkan\w*|GLFW|mpi|nccl|nvshmem\w*|cufft\w*|curand\.h|curand_uniform
    |cusparse\w*|cusolver\w*|cublasLt|cublasXt|cudnn\w*|npp\w*|nvjpeg|nvml|nvvm|cudaEGL|cudla
    |nvsci\w*|NvInfer|gsl|opencv\w*|boost|gdal\w*|FreeImage|bzlib|zlib|mex|nvToolsExt|tbb
    |helper_gl|helper_multiprocess|nvmedia\w*)\b""")
LINKED = re.compile(
    r"(?<!\S)-l(?!ineinfo|(m|pthread|cuda|cudart|cublas|nvrtc|stdc\+\+|rt|dl|gomp)(\s|$))\w+"
    r"|CUDA::(?!cudart|cublas\b|nvrtc|cuda_driver)\w+"
)
BUILT = re.compile(
    r"-(rdc|dc|dlink|ptx|fatbin|cubin)\b|--relocatable|cudadevrt|PTX_|\.(ptx|fatbin)"
)
NESTED = re.compile("cdp")
CALL = re.compile(r"\b(cu[a-zA-Z]\w+)\s*[<(]")
PRODUCTS = re.compile(r"cublas(Create|Destroy|Set|Get|\w*[gG]em[mv])")
RELATED = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".inl")
SOURCES = (".cu", ".cpp", ".cc", ".cxx")
REPEAT = re.compile(r"(?i)repe|iter|step|times|trial|runs")
SAYS_WRONG = re.compile(
    r"(?i)\b(test|result)s? *(= *)?fail|\bfail(ed|ure)?\b|mismatch|incorrect|\berror at"
)
REPEAT_MAX, SIZE_MAX = 2, 1024
COMPILE_SECONDS = 400


@dataclass
class Program:
    collection: str
    folder: Path
    sources: list[str]
    flags: list[str]
    arguments: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.collection}/{self.folder.name}"


# ---- The list -----------------------------------------------------------------------------------


def unsupported_calls() -> set[str]:
    """CUDA's functions, by the headers beside this Python's PyTorch, less those of the client."""
    client = "".join(path.read_text() for path in (ROOT / "device/client").glob("*.cc"))
    declared = functions_in("".join((HEADERS / name).read_text() for name in RUNTIME_AND_DRIVER))
    defined = set(re.findall(r"\b(cu\w+)\(", client))
    return {re.sub(r"_v\d$", "", name) for name in declared - defined}


def uses_foreign(folder: Path, unsupported: set[str]) -> bool:
    files = [path for path in folder.rglob("*") if path.suffix in RELATED and path.is_file()]
    text = "\n".join(path.read_text(errors="replace") for path in files)
    calls = set(CALL.findall(text))
    products = all(PRODUCTS.match(call) for call in calls if re.match("cublas[A-Z]", call))
    return bool(FOREIGN.search(text)) or bool(calls & unsupported) or not products


def is_listed(program: Program, build: str) -> bool:
    if LINKED.search(build) or BUILT.search(build) or not program.sources:
        return False
    if not all(
        name.endswith(SOURCES) and (program.folder / name).is_file() for name in program.sources
    ):
        return False
    return not uses_foreign(program.folder, unsupported_calls())


def samples(checkout: Path) -> Iterator[Program]:
    for path in sorted(checkout.glob("Samples/*/*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", path.read_text())
        targets = re.findall(r"add_executable\(\s*\S+\s+([^)]*)\)", text)
        if len(targets) != 1 or NESTED.match(path.parent.name):
            continue
        folders = " ".join(re.findall(r"include_directories\(([^)]*)\)", text)).split()
        flags = ["-std=c++17", "--extended-lambda"]
        flags += [f"-I{name}" for name in folders if (path.parent / name).is_dir()]
        flags += ["-Xcompiler", "-fopenmp"] if "OpenMP" in text else []
        libraries = re.findall(r"CUDA::(cublas|nvrtc)\b", text)
        flags += [f"-l{name}" for name in dict.fromkeys(libraries)]
        sources = [name for name in targets[0].split() if name.endswith(SOURCES)]
        program = Program("cuda-samples", path.parent, sources, flags)
        if is_listed(program, text):
            yield program


def cut(arguments: list[str], text: str) -> list[str]:
    """Smaller arguments; `text` is the program's own, with a usage line."""
    usage = re.search(r"(?i)usage: *\S+((?: *[<\[][^>\]]*[>\]])+)", text)
    names = re.findall(r"[<\[]([^>\]]*)[>\]]", usage.group(1)) if usage else []
    short = []
    for i, word in enumerate(arguments):
        is_last = i == len(arguments) - 1 and i > 0
        is_repeat = bool(REPEAT.search(names[i])) if len(names) == len(arguments) else is_last
        most = REPEAT_MAX if is_repeat else SIZE_MAX
        short.append(str(min(int(word), most)) if word.isdigit() else word)
    return short


def hecbench(checkout: Path) -> Iterator[Program]:
    for makefile in sorted(checkout.glob("src/*-cuda/Makefile")):
        folder = makefile.parent
        command = ["make", "-n", "-B", "run"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        lines = done.stdout.replace("\\\n", " ").splitlines()
        compiled = [line for line in lines if re.match(r"\s*\S*(nvcc|g\+\+|gcc)\s", line)]
        runs = [line.split() for line in lines if re.match(r"\s*\./", line)]
        if done.returncode != 0 or not compiled or not runs:
            continue
        words = " ".join(compiled).split()
        flags = [word for word in words if re.match(r"-[ID].|-std=|--?ex|-l|--?use_fast", word)]
        sources = [word for word in words if word.endswith((*SOURCES, ".c"))]
        flags += ["-Xcompiler", "-fopenmp"] if "-fopenmp" in words else []
        flags = list(dict.fromkeys(flags)) if "-fopenmp" not in words else flags
        texts = [path.read_text(errors="replace") for path in folder.glob("*.c*")]
        program = Program(
            "HeCBench",
            folder,
            list(dict.fromkeys(sources)),
            [word for word in flags if word not in ("-lcuda", "-lcudart")],
            cut(runs[0][1:], "\n".join(texts)),
        )
        paths = [word for word in program.arguments if "/" in word]
        if all((folder / path).exists() for path in paths) and is_listed(program, " ".join(words)):
            yield program


# ---- The run ------------------------------------------------------------------------------------


def outcome(code: int, report: dict[str, Any], written: str) -> tuple[str, str]:
    """The outcome of a program, and the reason."""
    if code < 0 or re.search(r"MC_CHECK|MC_EMU_CHECK|the device ended", written):
        return "our crash", written.strip().rpartition("\n")[2]
    if not report:
        errors = [line for line in written.splitlines() if "error" in line or "undefined" in line]
        return "build failed", (errors or written.strip().splitlines()[-1:] or [""])[0]
    if any("the device ended" in what for what in report["unsupported"]):
        return "our crash", "; ".join(report["unsupported"])
    if report["unsupported"]:
        return "lacking", "; ".join(report["unsupported"])
    if report["findings"]:
        return "finding", ", ".join(sorted({one["kind"] for one in report["findings"]}))
    if "time" in report["ending"]:
        return "time limit", report["ending"]
    wrong = SAYS_WRONG.search(written)
    if report["ending"] != "exit code 0" or wrong:
        return "ended otherwise", f"{report['ending']}{f', {wrong.group()}' if wrong else ''}"
    return "ran right", ""


def processor_seconds() -> float:
    """The processor time of all children that have ended, and of their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(program: Program, musacoder: Path, seconds: int) -> dict[str, Any]:
    command = [str(musacoder), "check", "--json", "--timeout", str(seconds)]
    command += [f"-X{flag}" for flag in program.flags] + program.sources
    command += ["--", *program.arguments] if program.arguments else []
    start, used = time.monotonic(), processor_seconds()
    done = subprocess.run(
        command,
        cwd=program.folder,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=COMPILE_SECONDS + seconds,
    )
    report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    was, why = outcome(done.returncode, report, done.stderr)
    return {
        "program": program.name,
        "was": was,
        "why": why,
        "seconds": round(time.monotonic() - start, 1),
        "processor_seconds": round(processor_seconds() - used, 1),
        "findings": report.get("findings", []),
        "command": command[1:],
        "output": done.stderr[-3000:],
    }


def drawn(programs: list[Program], number: int, seed: int) -> list[Program]:
    return random.Random(seed).sample(programs, min(number, len(programs)))


def report_of(rows: list[dict[str, Any]]) -> str:
    counts = collections.Counter((row["program"].partition("/")[0], row["was"]) for row in rows)
    kinds = sorted({was for _, was in counts})
    collections_of = sorted({collection for collection, _ in counts})
    lines = [[was, *(counts[one, was] for one in collections_of)] for was in kinds]
    rest = [row for row in rows if row["was"] != "ran right"]
    others = [[row["program"], row["was"], row["why"][:80]] for row in rest]
    shown = [table(["", *collections_of], lines), table(["program", "was", "why"], others)]
    return "\n\n".join(shown if others else shown[:1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("samples", type=Path)
    parser.add_argument("hecbench", type=Path)
    parser.add_argument("--musacoder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--number", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    lists = list(samples(arguments.samples.resolve())), list(hecbench(arguments.hecbench.resolve()))
    if arguments.list:
        for program in [*lists[0], *lists[1]]:
            print(program.name, *program.sources, *program.flags, "--", *program.arguments)
        return
    draws = [drawn(one, arguments.number, arguments.seed) for one in lists]
    chosen = [one for pair in zip(*draws, strict=False) for one in pair]
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    rows = [json.loads(line) for line in lines]
    end = time.monotonic() + 60 * arguments.minutes
    for program in chosen:
        if time.monotonic() > end or any(row["program"] == program.name for row in rows):
            continue
        rows.append(run(program, arguments.musacoder, arguments.timeout))
        print(program.name, rows[-1]["was"], rows[-1]["why"][:100], flush=True)
        with arguments.out.open("a") as out:
            out.write(json.dumps(rows[-1]) + "\n")
    print(f"{len(lists[0])} and {len(lists[1])} programs listed\n\n{report_of(rows)}")


if __name__ == "__main__":
    main()
