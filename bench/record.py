# SPDX-License-Identifier: Apache-2.0
"""What modules ask load_inline and load for, or a build of one by PyTorch itself.

usage: record.py CODES.json RECORDED.json              {key: code} to {key: {"extensions": […]}}
       record.py --build QUESTION.json [--import-alone]  {"answer", "build_dir"}; prints the outcome

Runs the modules in this process, as KernelBench does: only for answers that one would run anyway.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

Json = dict[str, Any]


class _Recorded(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_kwargs: None


def record(source: str) -> list[Json]:
    """REQUIRES: nobody builds extensions in this process any more."""
    from torch.utils import cpp_extension

    from harness.contestant import extensions

    found: list[Json] = []

    def provide(extension: Json) -> ModuleType:
        found.append(extension)
        return _Recorded(str(extension["name"]))

    extensions.install(cpp_extension, provide)
    try:
        exec(compile(source, "candidate.py", "exec"), {"__name__": "candidate"})
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return found


def build(question: Json) -> Json:
    from torch.utils import cpp_extension

    os.environ["TORCH_EXTENSIONS_DIR"] = str(question["build_dir"])
    given = cpp_extension._import_module_from_library  # The library may want what is not here.
    setattr(cpp_extension, "_import_module_from_library", lambda *_a, **_k: _Recorded("module"))
    try:
        exec(compile(question["answer"], "candidate.py", "exec"), {"__name__": "candidate"})
    except RuntimeError as error:
        is_build = "building extension" in str(error)
        return {"outcome": "compile_failed" if is_build else "failed", "error": str(error)[-400:]}
    except Exception as error:
        return {"outcome": "failed", "error": f"{type(error).__name__}: {error}"[-400:]}
    finally:
        setattr(cpp_extension, "_import_module_from_library", given)
    return {"outcome": "compiled", "error": ""}


def main() -> None:
    first, second, *rest = sys.argv[1:]
    if first == "--build":
        import torch.utils.cpp_extension  # noqa: F401

        question = json.loads(Path(second).read_text())
        print(json.dumps({"outcome": "imported"} if rest else build(question)))
        return
    codes: dict[str, str] = json.loads(Path(first).read_text())
    recorded = {key: record(code) for key, code in codes.items()}
    answers = {key: {"extensions": found} for key, found in recorded.items() if found}
    Path(second).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
