# SPDX-License-Identifier: Apache-2.0
"""The program in this package, if it is from a wheel of `./run.sh wheel` (docs/serve.md).

It runs with this interpreter's PyTorch, unless $MC_PYTHON names another interpreter.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

PYTHON_VARIABLE = "MC_PYTHON"
PROGRAM = Path(__file__).resolve().parent / "_program/bin/musacoder"


def own_program() -> str | None:
    """The program's path; None in a package without one."""
    return str(PROGRAM) if PROGRAM.is_file() else None


def environment() -> dict[str, str]:
    """This process's environment, with the interpreter that the program must use."""
    return {PYTHON_VARIABLE: sys.executable, **os.environ}


def main() -> NoReturn:
    """The command `musacoder` of a wheel."""
    os.execve(PROGRAM, [str(PROGRAM), *sys.argv[1:]], environment())
