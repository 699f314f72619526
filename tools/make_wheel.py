#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of the Python package that contains the program.

    make_wheel.py BUNDLE OUT     # BUNDLE: a folder of `./run.sh bundle`

The program needs glibc 2.35, which the wheel's platform tag says, and runs with the PyTorch of the
interpreter that it is installed for.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "python"
PLATFORM = "manylinux_2_35_x86_64"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", "environment")
EDITS = {
    "[project.scripts]\n": '[project.scripts]\nmusacoder = "musacoder.program:main"\n',
    'musacoder = ["py.typed"]': 'musacoder = ["py.typed", "_program/**"]',
}


def main() -> int:
    if len(sys.argv) != 3 or not (Path(sys.argv[1]) / "bin/musacoder").is_file():
        print("usage: make_wheel.py BUNDLE OUT; BUNDLE is what ./run.sh bundle makes")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "python"
        shutil.copytree(PACKAGE, package, ignore=LEFT_OUT)
        shutil.copytree(sys.argv[1], package / "musacoder/_program", ignore=LEFT_OUT)
        project = package / "pyproject.toml"
        text = project.read_text()
        for before, after in EDITS.items():
            if text.count(before) != 1:
                raise ValueError(f"{project}: {before!r} is not there once")
            text = text.replace(before, after)
        project.write_text(text)
        (package / "setup.cfg").write_text(f"[bdist_wheel]\nplat_name = {PLATFORM}\n")
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet"]
        subprocess.run([*command, "--wheel-dir", sys.argv[2], str(package)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
