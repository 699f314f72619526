#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for mcc, MUSA's compiler: checks its command line, then lets nvcc compile a port.

It refuses what mcc is known to refuse and what it does not know. The source is ported to CUDA by
`musacoder musify`; in the object, functions of CUDA's runtime get the names of MUSA's again, and
the image becomes the only code of a bundle of Clang's, as in MUSA's public libraries.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
VALUED = {"-x", "-isystem", "-include", "-o"}
KNOWN = re.compile(
    r"-c|-fPIC|-O[0-3s]?|-w|-g|-[DUI].+|-W\S+|-mtgpu\S*|-Od\d?|-fmusa-\S+|-mathx-\S+|-fsigned-char"
    r"|-ffast-math|-fno-\S+|-std=c\+\+1[47]"
)
FOR_NVCC = re.compile(r"-O[0-3]|-[DUI].+|-std=\S+|-g|-w")
ARCHITECTURE = re.compile(r"--offload-arch=mp_(10|21|22|31|32)")
RUNTIME = re.compile(r"(__)?cuda([A-Z]\w*)")
SECTION = ".nv_fatbin"  # The section of images.
ALIGNMENT = 4096


def fail(message: str) -> None:
    sys.exit(f"mcc: error: {message}")


def parse(argv: list[str]) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Values of the options that have one, the other flags, and the sources."""
    values: dict[str, list[str]] = {name: [] for name in VALUED}
    flags: list[str] = []
    sources: list[str] = []
    words = iter(argv)
    for word in words:
        if word in VALUED:
            values[word].append(next(words))
        elif ARCHITECTURE.fullmatch(word) or KNOWN.fullmatch(word):
            flags.append(word)
        elif word.startswith("-"):
            fail(f"unknown argument: '{word}'")
        else:
            sources.append(word)
    if values["-x"] != ["musa"]:
        fail("a source that does not end in .mu needs -x musa")
    if sum(bool(ARCHITECTURE.fullmatch(flag)) for flag in flags) != 1:
        fail("exactly one --offload-arch is needed")
    if sum(flag.startswith("-std=") for flag in flags) != 1:
        fail("exactly one -std is needed")
    if "CC" in os.environ:
        fail("CC is set, from which torch_musa would make -ccbin")
    if "-c" not in flags or len(sources) != 1 or len(values["-o"]) != 1:
        fail("one source is compiled to one object")
    return values, flags, sources


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    sys.stderr.write(done.stderr)
    if done.returncode:
        sys.exit(1)
    return done.stdout


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        print("stand-in for mcc")
        return
    values, flags, (source,) = parse(sys.argv[1:])
    nvcc = HOME / "cuda/bin/nvcc"
    if not nvcc.exists():
        fail("no nvcc is here to compile the port")
    with tempfile.TemporaryDirectory() as folder:
        original, port = Path(folder, "source.mu"), Path(folder, "port.cu")
        original.write_text(Path(source).read_text())
        musify = [str(HOME / "bin/musacoder"), "musify", "--to", "cuda"]
        port.write_text(run(*musify, str(original)))
        command = [str(nvcc), "-x", "cu", "-arch=sm_90", "-Xcompiler=-fPIC"]
        # The project's own kernels are CUDA's under names of MUSA, which the port does not want.
        names = {f"-I{Path(header).parent}" for header in values["-include"]}
        command += [flag for flag in flags if FOR_NVCC.fullmatch(flag) and flag not in names]
        for name in values["-isystem"]:
            command += ["-isystem", name]
        run(*command, "-c", str(port), "-o", *values["-o"])
    rename(values["-o"][0])
    (architecture,) = filter(None, map(ARCHITECTURE.fullmatch, flags))
    bundle_image(values["-o"][0], f"mp_{architecture[1]}")


def rename(library: str) -> None:
    """The object wants MUSA's runtime and has its types, as one of mcc does."""
    pairs = []
    for line in run("nm", "--format=posix", library).splitlines():
        name = line.split()[0]
        other = name.replace("CUstream_st", "MUstream_st")
        if found := RUNTIME.fullmatch(name):
            other = f"{found[1] or ''}musa{found[2]}"
        if other != name:
            pairs += ["--redefine-sym", f"{name}={other}"]
    run("objcopy", *pairs, library)


def bundle_image(library: str, architecture: str) -> None:
    """Puts the object's image into a bundle for one architecture."""
    with tempfile.TemporaryDirectory() as folder:
        image, bundle = Path(folder, "image"), Path(folder, "bundle")
        run("objcopy", f"--dump-section={SECTION}={image}", library, os.devnull)
        if not image.exists():  # An object without kernels.
            return
        bundle.write_bytes(bundle_of(image.read_bytes(), architecture))
        run("objcopy", f"--update-section={SECTION}={bundle}", library)


def bundle_of(code: bytes, architecture: str) -> bytes:
    """Entries are offset, size, length of the name and name; the host's has no code."""
    names = [b"host-x86_64-unknown-linux-gnu-", b"musa-mtgpu-mt-musa--" + architecture.encode()]
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
    entries = b"".join(
        struct.pack("<3Q", ALIGNMENT, size, len(name)) + name
        for name, size in zip(names, (0, len(code)))
    )
    return (head + entries).ljust(ALIGNMENT, b"\0") + code


if __name__ == "__main__":
    main()
