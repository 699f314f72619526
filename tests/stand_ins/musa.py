# SPDX-License-Identifier: Apache-2.0
"""A MUSA SDK and a package torch_musa for tests, on a machine that has neither.

`build` makes the folder: headers of MUSA are what `musacoder musify` makes of the CUDA toolkit's,
`bin/mcc` is mcc.py beside this, the libraries are empty, and torch_musa is an empty package. A test
over it shows that the project's own parts fit together; it shows nothing of MUSA.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEADERS = (
    "cuda.h", "cuda_runtime_api.h", "driver_types.h", "builtin_types.h", "vector_types.h",
    "device_types.h", "surface_types.h", "texture_types.h", "host_defines.h",
    "crt/host_defines.h",
)  # fmt: skip
RENAMED = {"cuda.h": "musa.h", "cuda_runtime_api.h": "musa_runtime_api.h"}
# Musify refuses headers with these words. The second group has counterparts in the driver.
TENSOR_MAPS = re.compile(r"\b(CUtensorMap|cuTensorMap)")
LAUNCHES = re.compile(
    r"\bcuda(LaunchAttribute|LaunchConfig_t|LaunchKernelEx|GridDependencySynchronize"
    r"|TriggerProgrammaticLaunchCompletion)"
)
SONAMES = {"musart": "libmusart.so.5", "musa": "libmusa.so.5"}


def toolkit() -> Path | None:
    """The CUDA toolkit of this machine, with nvcc.

    nvcc itself names the folder: the program on PATH may be a script that starts another one.
    """
    found = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(found).exists():
        return None
    command = [found, "--dryrun", "-x", "cu", "-c", "/dev/null"]
    output = subprocess.run(command, capture_output=True, text=True).stderr
    here = re.search(r"^#\$ _HERE_=(.+)$", output, re.MULTILINE)
    return Path(here[1]).resolve().parent if here else None


def make_headers(include: Path, cuda: Path, musacoder: str, work: Path) -> None:
    """The toolkit's headers under the names that musify gives them."""
    for name in HEADERS:
        text = (cuda / "include" / name).read_text(errors="replace")
        text = text.replace('#include "cuda_device_runtime_api.h"', "")  # Musify refuses it.
        text = TENSOR_MAPS.sub(r"mc_no_\1", text)
        text = LAUNCHES.sub(r"mc_musa\1", text)
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    subprocess.run([musacoder, "musify", str(work), "--out", str(include)], capture_output=True)
    for path in include.rglob("*.h"):
        path.write_text(path.read_text().replace("mc_musa", "musa"))
    for name, other in RENAMED.items():
        (include / name).rename(include / other)
    (include / "musa_runtime.h").write_text('#include "musa_runtime_api.h"\n')


def _make_library(folder: Path, name: str, soname: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-shared", f"-Wl,-soname,{soname}", "-o", str(folder / f"lib{name}.so")]
    subprocess.run([*command, "-x", "c++", "/dev/null"], check=True)


def _make_compiler(home: Path, cuda: Path, musacoder: str) -> None:
    """All that mcc.py runs is below `home`, since a compiler's sandbox shows no other folder."""
    (home / "bin").mkdir()
    shutil.copy2(HERE / "mcc.py", home / "bin/mcc")
    shutil.copy2(musacoder, home / "bin/musacoder")
    shutil.copytree(ROOT / "data/musify", home / "share/musacoder/data/musify")
    (home / "share/musacoder/python/harness").mkdir(parents=True)
    for part in ("bin", "nvvm"):
        shutil.copytree(cuda / part, home / "cuda" / part, copy_function=_link)
    headers = home / "cuda/targets/x86_64-linux/include"  # The place that nvcc.profile names.
    shutil.copytree(cuda / "include", headers, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy2(source, target)


def build(folder: Path, musacoder: str) -> dict[str, str]:
    """Makes the SDK in `folder`; the environment that names it. REQUIRES: toolkit()."""
    cuda = toolkit()
    assert cuda is not None
    home, packages = folder / "musa", folder / "packages"
    home.mkdir()
    make_headers(home / "include", cuda, musacoder, folder / "headers")
    for name, soname in SONAMES.items():
        _make_library(home / "lib", name, soname)
    _make_compiler(home, cuda, musacoder)
    for name in ("musa_python", "musa_kernels"):
        _make_library(packages / "torch_musa/lib", name, f"lib{name}.so")
    (packages / "torch_musa/__init__.py").write_text("")
    return {"MUSA_HOME": str(home), "PYTHONPATH": str(packages), "CC": "gcc"}
