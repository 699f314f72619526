# SPDX-License-Identifier: Apache-2.0
"""Checks the forge's own tasks with the gate, and prepares their solutions (src/forge/batch.h).

One process imports torch once and responds to each JSON line on its standard input with one line:

  {"source", "seed", "probe", "tests", "modules": [text]}
  -> {"gate": [text], "tests": [the reference passes], "recorded": [what the recorder finds]}

There is no sandbox: the tasks are the forge's own, and no kernel runs here.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
sys.path[:] = [str(Path(__file__).resolve().parent.parent.parent)] + sys.path[1:]

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it, too, and without a traceback.

import torch  # noqa: E402

torch.set_num_threads(1)
# PyTorch's own function also records its caller for a future GPU, which takes a third of the time.
setattr(torch, "manual_seed", torch.default_generator.manual_seed)
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # No CUDA.

from torch.utils import cpp_extension  # noqa: E402

from harness.candidate import extensions  # noqa: E402
from harness.forge.gate import (  # noqa: E402
    complaints,
    complaints_of_other_values,
    passes_unit_test,
)
from harness.judge.judge import Judge  # noqa: E402
from harness.worker.program import run_module  # noqa: E402
from harness.worker.wire import CANDIDATE_FILE, Json, Question  # noqa: E402


def answer(body: Json) -> Json:
    judge = Judge()
    try:
        options = {"specials": False}
        judge.answer(Question({"op": "open", "source": str(body["source"]), "options": options}))
        judge.answer(Question({"op": "begin", "seed": int(body["seed"])}))
    except BaseException as error:
        return {"gate": [f"does not run: {type(error).__name__}: {error}"]}
    with torch.no_grad():
        gate = complaints(judge, body.get("probe")) or complaints_of_other_values(judge)
        if gate:
            return {"gate": gate}
        assert judge._opened is not None
        task = judge._opened.task
        tests = [passes_unit_test(task, test) for test in body["tests"]]
    return {"gate": [], "tests": tests, "recorded": [recorded(one) for one in body["modules"]]}


def recorded(module: str) -> Json:
    """The recorder's response (harness.candidate.record): the extensions that a module builds."""
    found: list[Json] = []

    def provide(extension: Json) -> object:
        found.append(extension)
        return SimpleNamespace(f=None)

    extensions.replace_builders(cpp_extension, provide)
    run_module(module, CANDIDATE_FILE)
    return {"extensions": found}


def main() -> int:
    gc.collect()
    gc.freeze()  # Keeps imported modules out of each later collection.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
