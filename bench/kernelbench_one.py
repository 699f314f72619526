# SPDX-License-Identifier: Apache-2.0
"""One candidate through KernelBench's own harness, in a process of its own as its run script does.

usage: kernelbench_one.py KERNELBENCH_CHECKOUT build|eval QUESTION.json

QUESTION is {"task", "answer", "build_dir", "timing", "trials"}. `build` is what KernelBench does on
its CPU workers (build_compile_cache), `eval` what it does on the device (eval_kernel_against_ref),
and finds there what `build` left. Prints one line of JSON, {"outcome", "speedup", "error"}.
Modules that the checkout imports and its evaluation does not use are replaced where they are not
installed.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any

UNUSED = ("dotenv", "requests", "datasets", "openai", "litellm", "together", "modal", "tqdm",
          "google", "anthropic", "transformers", "huggingface_hub", "tomli", "pydra")  # fmt: skip


class _Anything(types.ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: None


class _Model:
    """What KernelExecResult needs of pydantic's BaseModel: fields with defaults."""

    def __init__(self, **fields: Any) -> None:
        for name in self.__annotations__:
            value = getattr(type(self), name, None)
            setattr(self, name, dict(value) if isinstance(value, dict) else value)
        vars(self).update(fields)


def replace_missing() -> None:
    for name in UNUSED:
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            sys.modules[name] = _Anything(name)
    if importlib.util.find_spec("pydantic") is None:
        pydantic = types.ModuleType("pydantic")
        setattr(pydantic, "BaseModel", _Model)
        sys.modules["pydantic"] = pydantic


def build(module: Any, question: dict[str, Any]) -> dict[str, Any]:
    built, printed, error = module.build_compile_cache(
        question["answer"], verbose=False, build_dir=question["build_dir"]
    )
    return {"outcome": "compiled" if built else "compile_failed", "error": str(error or "")[-400:]}


def evaluate(module: Any, question: dict[str, Any]) -> dict[str, Any]:
    result = module.eval_kernel_against_ref(
        question["task"],
        question["answer"],
        num_correct_trials=question["trials"],
        num_perf_trials=100,  # Its run script's.
        measure_performance=question["timing"],
        build_dir=question["build_dir"],
        verbose=False,
    )
    if result is None:  # Its word for a lock file.
        return {"outcome": "not judged", "error": "no result"}
    outcome = "compile_failed" if not result.compiled else "wrong"
    speedup = None
    if result.correctness:
        outcome = "pass"
        reference = getattr(result, "ref_runtime", -1)
        if result.runtime > 0 and reference > 0:
            speedup = reference / result.runtime
    return {"outcome": outcome, "speedup": speedup, "error": str(result.metadata)[-400:]}


def main() -> None:
    checkout, what, path = sys.argv[1:]
    question = json.loads(Path(path).read_text())
    replace_missing()
    sys.path.insert(0, str(Path(checkout) / "src"))
    from kernelbench import eval as module  # type: ignore[import-not-found]

    try:
        answer = (build if what == "build" else evaluate)(module, question)
    except Exception as error:  # As its run script does.
        answer = {"outcome": "failed", "error": f"{type(error).__name__}: {error}"[-400:]}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
