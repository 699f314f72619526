# SPDX-License-Identifier: Apache-2.0
"""The files that a process with candidate code needs; it sees no others.

They are found in a process that has imported and loaded everything with which its forks start:
Python's modules, the harness without the judge's, and each mapped library. Libraries that are
loaded later, to which g++ links, are listed here. The driver of a device is not among them, since
no process that runs candidate code has a device.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

HARNESS = Path(__file__).resolve().parent.parent
_LINKED = (
    "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libatomic.so.1", "libquadmath.so.0",
    "libm.so.6", "libmvec.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1",
)  # fmt: skip
# The last path has the number of processors.
_SETTINGS = ("/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system/cpu")


def files_of(more: Iterable[str]) -> list[str]:
    """Absolute paths of files and directories, none within another one; `more` are among them."""
    mapped = set(_mapped())
    folders = {path.parent for path in mapped if path.name.startswith(("libc.so", "libm.so"))}
    paths = {*_python(), *mapped, *(Path(path) for path in more if path)}
    paths |= {HARNESS / name for name in ("__init__.py", "worker", "candidate")}
    paths |= {folder / name for folder in folders for name in _LINKED}
    paths |= {Path(path) for path in _SETTINGS}
    there = {path for path in paths if path.exists()}
    return sorted(str(path) for path in there if there.isdisjoint(path.parents))


def _python() -> Iterator[Path]:
    """The standard library, and the folders of packages that something was imported from."""
    yield Path(sysconfig.get_path("stdlib"))
    for module in list(sys.modules.values()):
        for folder in Path(getattr(module, "__file__", None) or "/").parents:
            if folder.name in ("site-packages", "dist-packages"):
                yield folder


def _mapped() -> Iterator[Path]:
    """The shared libraries of this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            _, is_file, path = line.rstrip("\n").partition("/")
            if is_file and ".so" in path.rpartition("/")[2]:
                yield Path("/" + path)
