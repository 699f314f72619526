# SPDX-License-Identifier: Apache-2.0
"""The recorder: runs a candidate's module and reports the extensions that it would build."""

from __future__ import annotations

import contextlib
import inspect
import os
import tempfile
from types import ModuleType
from typing import Any

import torch
from torch._ops import _OpNamespace

from harness.candidate import cuda_on_cpu, extensions, musa_on_cpu, own_operators
from harness.candidate.stand_in import StandIn, Stop
from harness.worker import region
from harness.worker.draws import skipped_draws
from harness.worker.program import build, run_module
from harness.worker.wire import CANDIDATE_FILE, Answer, Json, Question, Refusal, set_stage

EXTENSIONS_MAX = 8
_REGISTRATIONS = [
    name for name in vars(torch.library) if name == "impl" or name.startswith("register_")
]
_SEED = 0  # The seed of models that are built only to find their extensions.


class Recorder:
    """Responds to `record`, once."""

    def __init__(self, builder: str) -> None:
        """`builder` is the Place's: the module that candidates call to build extensions."""
        self._builder = builder
        self._found: list[Json] = []
        self._in_forward = False

    def answer(self, question: Question) -> Answer:
        if question.body.get("op") != "record":
            raise Refusal("protocol", "a recorder only records")
        body = question.body
        snapshot = region.Snapshot(question.descriptors[0], 1 << 30)
        initials = [region.unpack(tree, snapshot) for tree in body["initials"]]
        builder = musa_on_cpu.builder_named(self._builder)
        described = body.get("described", {})
        extensions.replace_builders(builder, self._provide, is_musa=bool(described))
        cuda_on_cpu.describe(described)
        cuda_on_cpu.install(torch.device("cpu"), musa_on_cpu.device_of(builder))
        own_operators.install(stands_in=True)
        self._stand_in_for_operators()
        os.chdir(tempfile.gettempdir())  # A module may write its sources beside itself.
        with contextlib.suppress(Stop):
            module = self._run(str(body["source"]), initials)
            if not self._found:
                self._run_forward(module, initials)
        return Answer({"extensions": self._found})

    def _run(self, source: str, initials: list[list[Any]]) -> ModuleType:
        try:
            module = run_module(source, CANDIDATE_FILE)
        except Exception as error:
            set_stage(error, "load")
            raise
        for number, init in enumerate(initials):  # Sources may depend on sizes.
            try:
                _built(module, init)
            except Stop:
                pass
            except Exception as error:
                if number == 0 and not self._found:
                    set_stage(error, "init")
                    raise
                # The extensions are stand-ins, so an error here says little; the real construction
                # repeats it.
        return module

    def _run_forward(self, module: ModuleType, initials: list[list[Any]]) -> None:
        """Finds extensions that only the first call of forward compiles, as far as forward can
        run.
        """
        self._in_forward = True
        with contextlib.suppress(Stop, Exception):
            model = _built(module, initials[0])
            parameters = inspect.signature(model.forward).parameters.values()
            needed = [one for one in parameters if one.default is one.empty]
            positional = [one for one in needed if one.kind is one.POSITIONAL_OR_KEYWORD]
            model.forward(*(StandIn(lasts=True) for _ in positional))

    def _stand_in_for_operators(self) -> None:
        """An operator that PyTorch does not have comes from an extension that was recorded."""
        find = _OpNamespace.__getattr__

        def find_or_stand_in(namespace: Any, name: str) -> Any:
            try:
                return find(namespace, name)
            except AttributeError:
                if not self._found or name.startswith("__"):
                    raise
                return StandIn(self._in_forward)

        setattr(_OpNamespace, "__getattr__", find_or_stand_in)
        for name in _REGISTRATIONS:
            setattr(torch.library, name, self._register_if_known(getattr(torch.library, name)))
        setattr(torch.ops, "load_library", lambda _path: None)

    def _register_if_known(self, register: Any) -> Any:
        """torch.library's function, which refuses operators that are not built yet."""

        def register_if_known(operator: Any, *args: Any, **kwargs: Any) -> Any:
            is_name = isinstance(operator, str) and "::" in operator
            if isinstance(operator, StandIn) or (
                self._found and is_name and torch._C._jit_get_operation(operator)[0] is None
            ):
                return lambda function: function
            return register(operator, *args, **kwargs)

        return register_if_known

    def _provide(self, extension: Json) -> StandIn:
        known = [found["key"] for found in self._found]
        if extension["key"] not in known:
            if len(known) >= EXTENSIONS_MAX:
                raise RuntimeError(f"more than {EXTENSIONS_MAX} extensions")
            self._found.append(extension)
        return StandIn(self._in_forward)


def _built(module: ModuleType, init: list[Any]) -> torch.nn.Module:
    torch.default_generator.manual_seed(_SEED)
    with skipped_draws():
        return build(module.ModelNew, init)
