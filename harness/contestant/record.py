# SPDX-License-Identifier: Apache-2.0
"""The recorder: runs a candidate's module and reports the extensions that it would build."""

from __future__ import annotations

import contextlib
from typing import Any, NoReturn

import torch
from torch.utils import cpp_extension

from harness.contestant import cuda_on_cpu, extensions
from harness.worker import region
from harness.worker.program import construct, run_module
from harness.worker.wire import CANDIDATE_FILE, Answer, Json, Question, Refusal, set_stage

EXTENSIONS_MAX = 8
_SEED = 0  # Of the models that are built only to see what they compile.


class _Stop(BaseException):
    """The candidate called a function of an extension that is not built yet."""


class _Stub:
    """Stands for a built extension: has every attribute, and calling one ends the recording."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def function(*_args: object, **_kwargs: object) -> NoReturn:
            raise _Stop

        return function


class Recorder:
    """Answers `record`, once."""

    def __init__(self) -> None:
        self._found: list[Json] = []

    def answer(self, question: Question) -> Answer:
        if question.body.get("op") != "record":
            raise Refusal("protocol", "a recorder only records")
        body = question.body
        snapshot = region.Snapshot(question.descriptors[0], 1 << 30)
        initials = [region.unpack(tree, snapshot) for tree in body["initials"]]
        extensions.install(cpp_extension, self._provide)
        cuda_on_cpu.install(torch.device("cpu"))
        with contextlib.suppress(_Stop):
            self._run(str(body["source"]), initials)
        return Answer({"extensions": self._found})

    def _run(self, source: str, initials: list[list[Any]]) -> None:
        try:
            module = run_module(source, CANDIDATE_FILE)
        except Exception as error:
            set_stage(error, "load")
            raise
        for number, init in enumerate(initials):  # Sources may be made of sizes.
            try:
                construct(module.ModelNew, init, _SEED)
            except _Stop:
                pass
            except Exception as error:
                if number == 0 and not self._found:
                    set_stage(error, "init")
                    raise
                # The extensions are stubs here; the true construction will show what is wrong.

    def _provide(self, extension: Json) -> _Stub:
        known = [found["key"] for found in self._found]
        if extension["key"] not in known:
            if len(known) >= EXTENSIONS_MAX:
                raise RuntimeError(f"more than {EXTENSIONS_MAX} extensions")
            self._found.append(extension)
        return _Stub()
