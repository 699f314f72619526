# SPDX-License-Identifier: Apache-2.0
"""Runs single threads of an answer's CUDA kernels in Python, and records their accesses.

text_truth.py uses it; it shares no code with the generator of the kernels. The host function runs
with the shapes from the module's own Python, so a launch has the same grid as on a GPU. For a
thread it records integer variables, loads and stores of tensors, and barriers; all floating values
are 1. The subset of C is that of the forge's kernels.
"""

from __future__ import annotations

import contextlib
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernel_translation import NotUnderstood, Translator

STEPS_MAX = 400_000


@dataclass
class Launch:
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    dynamic: int  # Bytes of dynamic shared memory.
    arguments: tuple[Any, ...]
    has_stream: bool = False


@dataclass
class Trace:
    """The record of a thread."""

    variables: dict[str, int] = field(default_factory=dict)  # Each by its first value.
    loads: list[tuple[str, int, int]] = field(default_factory=list)  # Tensor, element, bytes.
    stores: list[tuple[str, int, int]] = field(default_factory=list)
    barriers: int = 0
    shuffles: int = 0
    shared: dict[str, int] = field(default_factory=dict)  # Elements of each array.


class Tensor:
    """A tensor without values."""

    def __init__(self, name: str, shape: list[int], strides: list[int] | None, size: int) -> None:
        self.name, self.shape, self.element_bytes = name, [int(x) for x in shape], size
        if strides is None:
            strides, step = [], 1
            for extent in reversed(self.shape):
                strides.insert(0, step)
                step *= extent
        self.strides = strides

    def size(self, axis: int) -> int:
        return self.shape[axis]

    def stride(self, axis: int) -> int:
        return self.strides[axis]

    def numel(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def dim(self) -> int:
        return len(self.shape)

    def contiguous(self) -> Tensor:
        return Tensor(self.name, self.shape, None, self.element_bytes)

    def options(self) -> Options:
        return Options(self.element_bytes)

    def data_ptr(self) -> Tensor:
        return self


class Options:
    def __init__(self, size: int) -> None:
        self.element_bytes = size

    def dtype(self, size: int) -> Options:
        return Options(size)


class Pointer:
    def __init__(self, trace: Trace, tensor: Any, value: Any, offset: int = 0, width: int = 1):
        self.trace, self.tensor, self.value = trace, tensor, value
        self.offset, self.width = offset, width

    def __add__(self, places: int) -> Pointer:
        return Pointer(self.trace, self.tensor, self.value, self.offset + places, self.width)

    def _bytes(self) -> int:
        return int(self.tensor.element_bytes) * self.width

    def __getitem__(self, at: int) -> Any:
        self.trace.loads.append((self.tensor.name, self.offset + at, self._bytes()))
        return self.value

    def __setitem__(self, at: int, value: Any) -> None:
        self.trace.stores.append((self.tensor.name, self.offset + at, self._bytes()))


class Array:
    def __init__(self, extents: list[int]) -> None:
        self.extents = extents
        self.values: dict[int, Any] = {}

    def __getitem__(self, at: int) -> Any:
        if not 0 <= at < self.extents[0]:
            raise NotUnderstood("an index of an array outside of it")
        if len(self.extents) > 1:
            return self.values.setdefault(at, Array(self.extents[1:]))
        return self.values.get(at, 1)

    def __setitem__(self, at: int, value: Any) -> None:
        if not 0 <= at < self.extents[0]:
            raise NotUnderstood("an index of an array outside of it")
        self.values[at] = value

    def __add__(self, other: Any) -> Any:
        return 1

    __radd__ = __sub__ = __mul__ = __add__


def divide(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return left // right if right else 0
    return left / right if right else 0.0


def remainder(left: int, right: int) -> int:
    return left % right if right else 0


VECTORS = {"float4": 16, "float2": 8, "uint4": 16, "uint2": 8}


class Program:
    """An answer's CUDA text."""

    def __init__(self, cuda: str) -> None:
        cuda = re.sub(r"^\s*#[^\n]*", "", cuda, flags=re.MULTILINE)
        self.texts: dict[str, str] = {}
        self.is_kernel: dict[str, bool] = {}
        self.code: dict[str, Any] = {}
        pattern = re.compile(r"^[ \t]*((?:[\w:<>]+[ \t*&]+)+)(\w+)\(([^()]*)\)\s*\{", re.MULTILINE)
        self.parameters: dict[str, list[tuple[str, str]]] = {}
        for match in pattern.finditer(cuda):
            depth, at = 1, match.end()
            while depth and at < len(cuda):
                depth += {"{": 1, "}": -1}.get(cuda[at], 0)
                at += 1
            name = match.group(2)
            self.texts[name] = cuda[match.end() : at - 1]
            self.is_kernel[name] = "__global__" in match.group(1)
            pairs = []
            for parameter in filter(None, (p.strip() for p in match.group(3).split(","))):
                words = re.findall(r"[\w:]+|\*", parameter)
                pairs.append((" ".join(words[:-1]), words[-1]))
            self.parameters[name] = pairs
        hosts = [name for name in self.texts if "torch::Tensor" in str(self.parameters[name])]
        if not hosts:
            raise NotUnderstood("no host function")
        self.host = hosts[-1]
        self.launches: list[Launch] = []
        self.given: list[Tensor] = []
        self.host_variables: dict[int, dict[str, int]] = {}

    def compiled(self, name: str) -> Any:
        if name not in self.code:
            translator = Translator(self.texts[name])
            while translator.at < len(translator.tokens):
                translator.statement()
            parameters = ", ".join(parameter for _, parameter in self.parameters[name])
            source = f"def {name}({parameters}):\n" + "\n".join(
                translator.lines + ["  return None"]
            )
            self.code[name] = compile(source, name, "exec")
        return self.code[name]

    def run_host(self, tensors: list[Tensor]) -> None:
        """Runs the host function and collects its launches, with the sizes at each."""
        self.given = tensors
        variables: dict[str, int] = {}
        made = iter(range(100))

        def named(name: str, value: Any) -> Any:
            if isinstance(value, Tensor):
                value.name = name
            if isinstance(value, int):
                variables[name] = value
            return value

        @contextlib.contextmanager
        def scope_() -> Iterator[None]:
            before = dict(variables)
            yield
            variables.clear()
            variables.update(before)

        def launch(kernel: str, config: tuple[Any, ...], arguments: tuple[Any, ...]) -> None:
            def shape(value: Any) -> tuple[int, ...]:
                return value if isinstance(value, tuple) else (int(value),)

            self.host_variables[len(self.launches)] = dict(variables)
            self.launches.append(
                Launch(
                    kernel,
                    shape(config[0]),
                    shape(config[1]),
                    int(config[2]) if len(config) > 2 else 0,
                    arguments,
                    len(config) > 3,
                )
            )

        def empty(shape: list[int], options: Options) -> Tensor:
            return Tensor(f"t{next(made)}", shape, None, options.element_bytes)

        def whole(value: Any) -> int:
            return int(value)

        scope = {
            "named": named,
            "launch": launch,
            "scope_": scope_,
            "divide": divide,
            "remainder": remainder,
            "whole": whole,
            "torch_empty": empty,
            "torch_zeros": empty,
            "torch_full": empty,
            "torch_kFloat": 4,
            "torch_kFloat32": 4,
            "torch_kInt": 4,
            "torch_kLong": 8,
            "torch_empty_like": lambda other: empty(other.shape, Options(other.element_bytes)),
            "dim3": lambda *sizes: tuple(int(size) for size in sizes),
            "sizeof": lambda size: size,
            "float": 4,
            "half": 2,
            "int": 4,
            "cast": lambda value, _: value,
            "tick_": lambda: True,
            "std_min": min,
            "std_max": max,
        }
        for name in ("cuda", "musa"):
            stream = types.SimpleNamespace(stream=lambda: 0)
            for space in ("at", "c10"):
                scope[f"{space}_{name}_getCurrent{name.upper()}Stream"] = lambda *_, s=stream: s
            scope[f"C10_{name.upper()}_KERNEL_LAUNCH_CHECK"] = lambda: None
        text = re.sub(r"reinterpret_cast<[^()]*?>\(", "(", self.texts[self.host])
        self.texts[self.host] = text.replace("sizeof(float)", "4").replace("sizeof(int)", "4")
        self.texts[self.host] = re.sub(r"sizeof\((?:int64_t|long)\)", "8", self.texts[self.host])
        exec(self.compiled(self.host), scope)  # noqa: S102
        scope[self.host](*tensors)

    def run_thread(self, number: int, block: tuple[int, ...], thread: tuple[int, ...]) -> Trace:
        """Runs a thread of launch `number`; the indices have the same axes as grid and block."""
        launch = self.launches[number]
        trace = Trace()
        budget = [STEPS_MAX]

        def step() -> bool:
            budget[0] -= 1
            if budget[0] < 0:
                raise NotUnderstood("a thread that runs for too long")
            return True

        def named(name: str, value: Any) -> Any:
            if isinstance(value, int) and not isinstance(value, bool):
                trace.variables.setdefault(name, value)
            return value

        def barrier() -> None:
            trace.barriers += 1

        def shuffle(_: int, value: Any, *__: Any) -> Any:
            trace.shuffles += 1
            return value

        def share(name: str, array: Array) -> Array:
            count = 1
            for extent in array.extents:
                count *= extent
            trace.shared[name] = count
            return array

        def cast(value: Any, kind: str) -> Any:
            if isinstance(value, Pointer) and kind in VECTORS:
                width = VECTORS[kind] // int(value.tensor.element_bytes)
                return Pointer(trace, value.tensor, value.value, value.offset, width)
            return Array([1 << 30]) if not isinstance(value, Pointer) else value

        def index(values: tuple[int, ...]) -> types.SimpleNamespace:
            return types.SimpleNamespace(**dict(zip("xyz", tuple(values) + (0, 0, 0))))

        def sizes(values: tuple[int, ...]) -> types.SimpleNamespace:
            return types.SimpleNamespace(**dict(zip("xyz", tuple(values) + (1, 1, 1))))

        def atomic(pointer: Pointer, value: Any) -> None:
            pointer[0] = value

        scope: dict[str, Any] = {
            "INFINITY": 1e30,
            "INT_MIN": -(1 << 31),
            "INT64_MIN": -1,
            "INT_MAX": (1 << 31) - 1,
            "scope_": contextlib.nullcontext,
            "INT64_MAX": 1 << 62,
            "named": named,
            "tick_": step,
            "__syncthreads": barrier,
            "__syncwarp": lambda *_: None,
            "__shfl_xor_sync": shuffle,
            "__shfl_sync": shuffle,
            "__shfl_up_sync": shuffle,
            "__shfl_down_sync": shuffle,
            "array": Array,
            "share": share,
            "cast": cast,
            "reference": lambda value: value,
            "divide": divide,
            "remainder": remainder,
            "whole": int,
            "atomicAdd": atomic,
            "max": max,
            "min": min,
            "abs": abs,
            "threadIdx": index(thread),
            "blockIdx": index(block),
            "__popcll": lambda x: 1,
            "__clz": lambda x: 1,
            "__ffs": lambda x: 1,
            "blockDim": sizes(launch.block),
            "gridDim": sizes(launch.grid),
        }
        for name in self.texts:
            if name != self.host and (name == launch.kernel or not self.is_kernel[name]):
                exec(self.compiled(name), scope)  # noqa: S102
        for text in self.texts.values():  # All values are 1, so functions of them are, too.
            for function in re.findall(r"\b([A-Za-z_]\w*)\(", text):
                scope.setdefault(function, lambda *_: 1)
        arguments = []
        for (kind, name), value in zip(self.parameters[launch.kernel], launch.arguments):
            # An index must be small, and a float is 1 like all values.
            element = 1 if not re.search(r"\bint|long", kind) else 0
            arguments.append(Pointer(trace, value, element) if "*" in kind else value)
        scope[launch.kernel](*arguments)
        return trace


def stub_torch_musa() -> None:
    """The module that answers in the dialect of MUSA import."""
    musa = types.ModuleType("torch_musa")
    utils = types.ModuleType("torch_musa.utils")
    extension = types.ModuleType("torch_musa.utils.musa_extension")
    setattr(extension, "load_inline", None)
    for name, module in (
        ("torch_musa", musa),
        ("torch_musa.utils", utils),
        ("torch_musa.utils.musa_extension", extension),
    ):
        sys.modules.setdefault(name, module)


def program_of(reference: str, answer: str) -> Program:
    """The answer's CUDA text, with its host function run at the sizes of the reference module."""
    import torch
    from torch.utils import cpp_extension

    stub_torch_musa()
    calls: list[tuple[Any, ...]] = []

    class Extension:
        def __getattr__(self, name: str) -> Any:
            def call(*arguments: Any) -> Any:
                calls.append(arguments)
                return torch.empty(1)

            return call

    source: list[str] = []

    def load_inline(**settings: Any) -> Extension:
        found = settings.get("cuda_sources") or settings.get("musa_sources")
        assert found is not None
        source.append(found if isinstance(found, str) else found[0])
        return Extension()

    before = cpp_extension.load_inline
    modules = [sys.modules[name] for name in sys.modules if name.endswith("musa_extension")]
    cpp_extension.load_inline = load_inline
    for module in modules:
        setattr(module, "load_inline", load_inline)
    try:
        task: dict[str, Any] = {}
        exec(reference, task)  # noqa: S102
        given: dict[str, Any] = {}
        exec(answer, given)  # noqa: S102
        with torch.device("meta"):
            torch.manual_seed(0)
            model = given["ModelNew"](*task["get_init_inputs"]())
            model.forward(*task["get_inputs"]())
    finally:
        cpp_extension.load_inline = before
    if not calls or not source:
        raise NotUnderstood("the answer calls no kernel")
    program = Program(source[0])
    tensors = []
    for (_, name), value in zip(program.parameters[program.host], calls[0]):
        tensors.append(Tensor(name, list(value.shape), list(value.stride()), value.element_size()))
    program.run_host(tensors)
    return program
