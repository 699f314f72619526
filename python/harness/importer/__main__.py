# SPDX-License-Identifier: Apache-2.0
"""The program of `musacoder import` and `musacoder task operators`.

  python -m harness.importer --sandbox-lib LIB import PATH… --out FOLDER [--kernelbench PATH]…
  python -m harness.importer --sandbox-lib LIB operators PATH… [--out FILE]

Texts are parsed here and run in the sandbox only (sandboxed.py).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import logging
import os
import sys
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import torch  # noqa: E402

torch.set_num_threads(1)
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)

from harness.importer.importing import Importer, Options  # noqa: E402
from harness.importer.operators import print_operators  # noqa: E402
from harness.importer.sandboxed import Sandbox, check_single_thread  # noqa: E402
from harness.importer.sources import Refused  # noqa: E402
from harness.judge import cost  # noqa: E402


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="musacoder")
    parser.add_argument("--sandbox-lib", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("import", "operators"):
        command = commands.add_parser(name)
        command.add_argument("paths", nargs="+", type=Path)
        command.add_argument("--out", type=Path)
        command.add_argument("--kernelbench", action="append", default=[], type=Path)
        command.add_argument("--limit", type=int, default=0)
    arguments = parser.parse_args(words)
    cost.warm_up()
    gc.collect()
    gc.freeze()
    ctypes.CDLL(arguments.sandbox_lib).mc_sandbox_compact_memory()
    check_single_thread()
    sandbox = Sandbox(arguments.sandbox_lib, arguments.jobs)
    for path in [*arguments.paths, *arguments.kernelbench]:
        if not path.exists():
            raise Refused(f"no file or folder {path}")
    if arguments.command == "operators":
        return print_operators(sandbox, arguments.paths, arguments.out)
    options = Options(arguments.out, arguments.kernelbench, arguments.limit)
    return Importer(sandbox, options).run(arguments.paths)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Refused, OSError) as error:
        print(f"musacoder: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
