# SPDX-License-Identifier: Apache-2.0
"""The candidate process: runs a ModelNew on given inputs, and returns its outputs as data.

No code here protects the verdict: the candidate shares this process and may change all of it. The
judge treats whatever this process returns as untrusted data.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import torch

from harness.candidate import (
    cuda_on_cpu,
    extensions,
    own_operators,
    remote_calls,
    triton_driver,
)
from harness.worker import region
from harness.candidate.aten import AtenRecorder, require_none, without_free_casts
from harness.candidate.guard import OperatorGuard
from harness.candidate.triton_tuner import Tuner
from harness.worker.cuda_memory import RemoteMemory
from harness.worker.draws import made_on
from harness.worker.place import HOST_PLACE, Place
from harness.worker.perturb import Constants
from harness.worker.precision import cast_model
from harness.worker.program import call, construct, run_module
from harness.worker.wire import (
    CANDIDATE_FILE,
    Answer,
    Json,
    Question,
    Refusal,
    set_stage,
)

STATE_BYTES_MAX = 8 << 30
NAMES_SHOWN = 8  # The most names of refused operators in a message.


@dataclass(frozen=True)
class _Built:
    """The candidate's model at one of the plan's shapes, and the reference's state there."""

    model: torch.nn.Module
    state: dict[str, Any]
    reference: Json  # Calls of the reference's own code (python/harness/judge/operators.py).
    found: Json  # The response to `build`.


@dataclass
class _Policy:
    """The operators of PyTorch that remain once the models are built."""

    name: str = ""
    device_allowed: list[str] = field(default_factory=list)
    host_allowed: list[str] = field(default_factory=list)
    init_allowed: list[str] = field(default_factory=list)

    @property
    def allows_everything(self) -> bool:
        return "*" in self.device_allowed


# The bytes of unwritten memory, which alternate from call to call: NaN, zeros and large numbers, so
# that no sum, minimum or maximum into it is right in all calls. The device process has the same.
_FRESH_BYTES = (0xFF, 0x00, 0x7F)


class CandidateProcess:
    """Responds to `load`, then to `build` for each shape, then to any number of `run` requests.

    From the first `run` on, the host has only the operators that move data; `__init__` may use all.
    """

    def __init__(self, place: Place = HOST_PLACE, recorder: AtenRecorder | None = None) -> None:
        self._place = place
        self._recorder = recorder
        self._module: ModuleType | None = None
        self._built: dict[int, _Built] = {}
        self._policy = _Policy()
        self._guard = None if recorder is None else OperatorGuard(recorder.library)
        self._watch: AtenRecorder | None = None  # Watches operators until the first call.
        self._class_name = "ModelNew"
        self._outputs: list[torch.Tensor] = []  # Kept until the device process has copied them.
        self._artifacts: Json = {}
        self._modules: dict[str, ModuleType | str] = {}
        self._tuner: Tuner | None = None  # The tuner of Triton, if it is used.
        self._fresh = itertools.cycle(_FRESH_BYTES)

    def answer(self, question: Question) -> Answer:
        operations = {
            "load": self._load,
            "build": self._build,
            "run": self._run,
            "build_there": self._build_there,
            "run_there": self._run_there,
            "time_calls_there": self._time_calls_there,
        }
        operation = operations.get(question.body["op"])
        if operation is None:
            raise Refusal("protocol", f"a candidate process has no {question.body['op']!r}")
        try:
            return operation(question)
        except Refusal:
            raise
        except BaseException as error:
            raise self._refusal_for(error)

    def _refusal_for(self, error: BaseException) -> BaseException:
        """A candidate that fails after it called forbidden operators fails because of these
        calls.
        """
        if self._tuner is not None and (failed := triton_driver.compile_error(error)) is not None:
            set_stage(failed, getattr(error, "mc_stage", "forward"))
            return failed.with_traceback(error.__traceback__)
        names = [] if self._guard is None else [call["name"] for call in self._guard.refused()]
        if not names:
            return error
        message = ", ".join(names[:NAMES_SHOWN]) + (" is" if len(names) == 1 else " are")
        message += f" not available to a candidate (policy {self._policy.name})"
        return Refusal("operator", message).with_traceback(error.__traceback__)

    def _load(self, question: Question) -> Answer:
        body = question.body
        self._policy = _Policy(**body["policy"])
        if isinstance(self._place.memory, RemoteMemory):
            self._place.forget_environment()
        self._artifacts = dict(body["artifacts"])
        described = body.get("described", {})
        builder = importlib.import_module(self._place.builder)
        extensions.replace_builders(builder, self._find, is_musa=bool(described))
        cuda_on_cpu.claim_capability(described)
        setattr(torch, "compile", cuda_on_cpu.refuse_compile)
        own_operators.install()
        self._end_library_calls()
        torch.set_grad_enabled(False)
        os.chdir(tempfile.gettempdir())  # A module may write its sources beside itself.
        if self._recorder is not None and not self._policy.allows_everything:
            self._watch = self._recorder
            self._watch.watch_construction(self._policy.init_allowed)
        triton = self._place.triton()
        if triton is not None and "triton" in body["source"]:
            self._tuner = triton_driver.install(*triton)
        try:
            self._module = run_module(body["source"], CANDIDATE_FILE)
            self._end_build({})
        except BaseException as error:
            set_stage(error, "load")
            raise
        return Answer()

    def _end_library_calls(self) -> None:
        """Removes all operators of the device that the policy does not allow.

        The device process refuses these operators' kernels, too.
        """
        if self._guard is None or self._policy.allows_everything:
            return
        key = self._place.dispatch_key
        self._guard.remove(key, self._policy.device_allowed, self._policy.name)
        self._place.disable_vendor_libraries()

    def _find(self, extension: Json) -> ModuleType | str:
        """The compiled module of an extension that the candidate loads, or its path."""
        key = str(extension["key"])
        if key not in self._artifacts:
            raise RuntimeError(
                f"extension {extension['name']!r} is not the one that was compiled: "
                "its sources or flags differ from those of the recorded run; call load_inline or "
                "load when the module is imported, with the same arguments each time"
            )
        if key not in self._modules:
            artifact = self._artifacts[key]
            path = str(artifact["path"])
            if extension.get("is_python_module", True):
                self._modules[key] = _import(str(extension["name"]), str(artifact["module"]), path)
            else:
                self._modules[key] = _load_library(path)
        return self._modules[key]

    def _build(self, question: Question) -> Answer:
        source = self._place.memory.snapshot(question.descriptors[0], STATE_BYTES_MAX)
        return self._build_from(question.body, source)

    def _build_there(self, question: Question) -> Answer:
        """The response to `build` if the device process has the region mapped."""
        return self._build_from(question.body, self._remote(question))

    def _remote(self, question: Question) -> region.Source:
        """The memory that the device process has mapped at the request's address."""
        memory = self._place.memory
        if not isinstance(memory, RemoteMemory):
            raise Refusal("protocol", "no device process serves this process")
        return memory.at(question.body["address"])

    def _build_from(self, body: Json, source: region.Source) -> Answer:
        shape = body["shape"]
        if self._module is None:
            raise Refusal("protocol", "build before load")
        if shape in self._built:
            return Answer(self._built[shape].found)
        seed = body["init_seed"]
        reference = body.get("init_operators", {})
        init = region.unpack(body["init"], source)
        try:
            model_class = getattr(self._module, self._class_name)

            def make() -> torch.nn.Module:
                self._end_build(reference)  # A constructor that failed on the device ran before.
                return construct(model_class, init, seed, Constants(body["constants"]))

            draws_on_host = self._place.draws_on_host
            model = made_on(self._place.device, make, draws_on_host=draws_on_host)
            cast_model(model, body["precision"])
            self._end_build(reference)
        except BaseException as error:
            set_stage(error, "init")
            raise
        given = {entry["name"]: region.unpack(entry["tree"], source) for entry in body["state"]}
        model.train(body["training"])
        found = match_state(given, model)
        copy_state(given, model)
        if body.get("compile"):
            model = torch.compile(model, mode=body["compile"])  # type: ignore[assignment]
        self._built[shape] = _Built(model, given, reference, found)
        return Answer(found)

    def _run(self, question: Question) -> Answer:
        return self._run_on(self._place.memory.mapping(question.descriptors[0]), question)

    def _run_there(self, question: Question) -> Answer:
        """The response to `run` if the device process has the inputs mapped."""
        self._outputs.clear()
        answer = self._run_on(self._remote(question), question)
        self._place.trim()  # The judge uses the device next.
        return answer

    def _run_on(self, source: region.Source, question: Question) -> Answer:
        built = self._built_at(question.body["shape"], "run")
        self._end_init()
        inputs = region.unpack(question.body["inputs"], source)
        # A descriptor would be a second, open way into the device's memory.
        while question.descriptors:
            os.close(question.descriptors.pop())
        copy_state(built.state, built.model)  # Each trial starts from the reference's buffers.
        self._poison(inputs)
        self._place.finish()
        return self._call(built, inputs, question.body)

    def _built_at(self, shape: int, operation: str) -> _Built:
        if shape not in self._built:
            raise Refusal("protocol", f"{operation} before build")
        return self._built[shape]

    def _poison(self, inputs: Any) -> None:
        nbytes = sum(tensor.nbytes for tensor in region.tensors_of(inputs))
        self._place.poison(nbytes, next(self._fresh))

    def _time_calls_there(self, question: Question) -> Answer:
        """A batch of calls, which the device process times (remote_calls.py)."""
        built = self._built_at(0, "time")
        self._end_init()
        if self._tuner is not None:
            self._tuner.begin(None)
        try:
            return Answer({"outputs": remote_calls.make(built.model, question.body, self._place)})
        except BaseException as error:
            set_stage(error, "forward")
            raise

    def _call(self, built: _Built, inputs: Any, asked: Json) -> Answer:
        """One call of forward; returns a region with its outputs and the inputs that it writes."""
        model, reference = built.model, built.reference
        written: list[int] = asked["written"]
        if self._tuner is not None:
            self._tuner.begin(asked.get("configuration", 0))
        given = region.tensors_of(inputs)
        aten: Json = {}
        moved = 0
        try:
            if self._recorder is not None:
                self._recorder.start()
            outputs = call(model, inputs)
            if self._recorder is not None:
                aten = without_free_casts(self._recorder.stop(), reference)
                moved = self._recorder.moved_bytes()
            self._place.finish()
        except BaseException as error:
            set_stage(error, "forward")
            raise
        returned = region.tensors_of(outputs)
        # An input that is not contiguous is first copied into row-major order.
        moved -= sum(tensor.nbytes for tensor in given if not tensor.is_contiguous())
        moved += sum(one.nbytes for one in returned if is_moving_view(one, given))
        percent = 100 * max(0, moved) // max(1, sum(one.nbytes for one in returned))
        body: Json = {"aten": aten, "sticky": "", "moved_percent": percent}
        if self._tuner is not None:
            body["triton"] = self._tuner.found()
        try:
            return self._pack((outputs, [given[number] for number in written]), built, body)
        except BaseException as error:
            set_stage(error, "outputs")
            raise

    def _end_build(self, reference: Json) -> None:
        if self._watch is not None:
            require_none(self._watch.end_build(reference), self._policy.name)

    def _end_init(self) -> None:
        if self._watch is not None:
            self._end_build({})
            require_none(self._watch.computed(), self._policy.name)
            self._watch = None
        if self._guard is not None and not self._policy.allows_everything:
            self._guard.remove("CPU", self._policy.host_allowed, self._policy.name)

    def _pack(self, outputs: object, built: _Built, body: Json) -> Answer:
        """Outputs and state in one region, and the other facts about the call."""
        named: list[tuple[str, object]] = [("", outputs)]
        buffers = region.buffers_of(built.model)
        named += [(name, one.detach()) for name, one in buffers.items()]
        state = region.state_of(built.model)
        for name, given in region.state_to_check(built.state).items():
            own = state.get(name)
            if own is None or name in buffers or own.device != given.device:
                continue
            if region.are_alike(own, given):
                named.append((name, own.detach()))
        memory = self._place.memory
        if isinstance(memory, RemoteMemory):
            entries, tensors = region.describe_named(named)
            self._outputs = memory.describe(tensors)
            return Answer({**body, "outputs": entries[0]["tree"], "buffers": entries[1:]})
        entries, descriptor = region.pack_named(named, memory)
        return Answer({**body, "outputs": entries[0]["tree"], "buffers": entries[1:]}, [descriptor])


def _import(name: str, compiled_as: str, path: str) -> ModuleType:
    """The module that the candidate calls `name`.

    Its library defines PyInit_<compiled_as>, or PyInit_<name> if the candidate wrote it by hand.
    """
    loader = ExtensionFileLoader(compiled_as, path)
    spec = spec_from_file_location(compiled_as, path, loader=loader)
    if spec is None or not os.path.exists(path):
        raise RuntimeError(f"the compiled extension {name!r} is missing")
    try:
        module = module_from_spec(spec)
    except ImportError as error:
        _raise_if_undefined(error)
        if "PyInit_" not in str(error) or name == compiled_as:
            raise
        return _import(name, name, path)
    loader.exec_module(module)
    sys.modules.pop(compiled_as, None)
    module.__name__ = name
    sys.modules[name] = module
    return module


def _load_library(path: str) -> str:
    """Loads a library that only defines operators, and returns its path as PyTorch does."""
    try:
        torch.ops.load_library(path)  # type: ignore[no-untyped-call]
    except OSError as error:
        _raise_if_undefined(error.__cause__ or error)
        raise
    return path


def _raise_if_undefined(error: BaseException) -> None:
    """Raises ImportError for undefined symbols: the linker leaves those open that PyTorch may
    define.
    """
    _, is_undefined, symbol = str(error).partition("undefined symbol: ")
    if is_undefined:
        raise Refusal("link", symbol) from None


def is_moving_view(output: torch.Tensor, given: list[torch.Tensor]) -> bool:
    """True for an output that looks like a view and not like a kernel's result: it is in an input's
    memory, or not in row-major order.
    """
    if output.layout != torch.strided:
        return False
    place = output.untyped_storage().data_ptr()
    homes = [one.untyped_storage() for one in given]
    is_input = any(home.data_ptr() <= place < home.data_ptr() + home.nbytes() for home in homes)
    return is_input or not output.is_contiguous()


def match_state(given: dict[str, Any], model: torch.nn.Module) -> Json:
    """Compares the parameters and buffers of reference and candidate by name.

    `missing` are names that the candidate lacks, `unmatched` have another shape or dtype there, and
    `own` are parameters of the candidate that get no value.
    """
    own = region.state_of(model)

    def described(state: dict[str, Any], names: set[str]) -> list[str]:
        return [f"{name}: {_dtype_and_shape(state[name])}" for name in sorted(names)]

    both = set(given) & set(own)
    unlike = {name for name in both if not region.are_alike(own[name], given[name])}
    parameters = {name for name, _ in model.named_parameters()}
    return {
        "missing": described(given, set(given) - set(own)),
        "unmatched": [
            f"{entry}, in the reference {_dtype_and_shape(given[name])}"
            for name, entry in zip(sorted(unlike), described(own, unlike))
        ],
        "own": described(own, parameters - set(given)),
    }


def _dtype_and_shape(tensor: torch.Tensor) -> str:
    """Dtype and shape, for example "float32 [4, 3]"."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def copy_state(given: dict[str, Any], model: torch.nn.Module) -> None:
    """Copies the reference's parameters and buffers that the candidate has, too."""
    own = region.state_of(model)
    for name in set(given) & set(own):
        if region.are_alike(own[name], given[name]):
            own[name].detach().copy_(given[name].reshape(own[name].shape))
