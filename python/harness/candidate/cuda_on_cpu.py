# SPDX-License-Identifier: Apache-2.0
"""CUDA in Python, on the CPU: lets a module with `device="cuda"` run on a machine without a device.

A TorchFunctionMode rewrites cuda devices in arguments to another device, whose tensors report that
they are on cuda:0; `torch.cuda` behaves like one GPU whose work is always finished. The recorder
installs this permanently, with the host's memory as the device's; a judge on the CPU uses it while
a task's own code runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _device

_CUDA = torch.device("cuda", 0)
_TRUE_DEVICE = torch.Tensor.device.__get__
_stand_in = torch.device("cpu")  # The stand-in for cuda in this process; install() sets it.
_claimed = _CUDA  # The device for which it stands.


def _is_cuda(tensor: torch.Tensor, *_: Any) -> bool:
    return bool(_TRUE_DEVICE(tensor) == _stand_in)


def _claimed_device(tensor: torch.Tensor, *_: Any) -> torch.device:
    device: torch.device = _TRUE_DEVICE(tensor)
    return _claimed if device == _stand_in else device


# The properties with which a tensor reports its device.
_CLAIMS: dict[Any, Callable[..., Any]] = {
    _TRUE_DEVICE: _claimed_device,
    torch.Tensor.is_cuda.__get__: _is_cuda,  # type: ignore[attr-defined]
    torch.Tensor.get_device: lambda tensor: 0 if _is_cuda(tensor) else -1,
    torch.Tensor.cuda: lambda tensor, *_, **__: tensor.to(_stand_in),
    torch.Tensor.pin_memory: lambda tensor, *_, **__: tensor,
    torch.Tensor.is_pinned: lambda tensor, *_, **__: False,
}
PROPERTIES = SimpleNamespace(
    name="CUDA on CPU",
    major=9,
    minor=0,
    total_memory=16 << 30,
    multi_processor_count=8,
    warp_size=32,
    max_threads_per_block=1024,
    max_threads_per_multi_processor=2048,
    shared_memory_per_block=48 << 10,
    shared_memory_per_block_optin=227 << 10,
    shared_memory_per_multiprocessor=228 << 10,
    regs_per_multiprocessor=65536,
    is_integrated=False,
    is_multi_gpu_board=False,
)


def describe(described: Mapping[str, int]) -> None:
    """Reports a device with these attributes (worker/described.py) from now on."""
    vars(PROPERTIES).update(described)
    if "shared_memory_per_block" in described:
        PROPERTIES.shared_memory_per_block_optin = PROPERTIES.shared_memory_per_block
        PROPERTIES.shared_memory_per_multiprocessor = PROPERTIES.shared_memory_per_block


def claim_capability(described: Mapping[str, int]) -> None:
    """Reports the recorder's compute capability if a GPU of another kind runs the candidate."""
    if described:
        capability = described["major"], described["minor"]
        setattr(torch.cuda, "get_device_capability", lambda *_args, **_kwargs: capability)


def to_stand_in(value: Any) -> Any:
    """Replaces a cuda device (or its name) by its stand-in; returns any other value unchanged."""
    name = _claimed.type
    if isinstance(value, str) and (value == name or value.startswith(name + ":")):
        return _stand_in
    if isinstance(value, torch.device) and value.type == name:
        return _stand_in
    return value


class CudaOnCpu(TorchFunctionMode):
    """Rewrites devices; see the module's docstring."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        claim = _CLAIMS.get(function)
        if claim is not None:
            return claim(*args, **(kwargs or {}))
        if function is torch.device:  # Only the use of the device is rewritten.
            return function(*args, **(kwargs or {}))
        kwargs = {name: to_stand_in(value) for name, value in (kwargs or {}).items()}
        kwargs.pop("pin_memory", None)  # Pinned memory needs a driver.
        return function(*(to_stand_in(value) for value in args), **kwargs)


class Stream:
    """A stream whose work is always finished."""

    cuda_stream = musa_stream = 0
    device = _CUDA
    device_index = 0
    priority = 0

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    def query(self) -> bool:
        return True

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def _do_nothing(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    synchronize = wait_stream = wait_event = _do_nothing

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_args: Any) -> None:
        pass


class Event:
    """An event on the process's clock."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._time = 0.0

    def record(self, _stream: Any = None) -> None:
        self._time = time.monotonic()

    def elapsed_time(self, end: Event) -> float:
        return (end._time - self._time) * 1000

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def wait(self, _stream: Any = None) -> None:
        pass


class _DeviceScope(contextlib.nullcontext[None]):
    """torch.cuda.device(...) and torch.cuda.stream(...)."""

    def __init__(self, *_args: Any) -> None:
        super().__init__()


class Generator(torch.Generator):
    """torch.Generator, always on the CPU."""

    def __new__(cls, device: Any = None) -> Generator:
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]


def install(device: torch.device, claimed: torch.device = _CUDA) -> None:
    """Patches torch for the rest of this process; `claimed` is `device` from now on."""
    global _stand_in, _claimed
    _stand_in, _claimed = device, claimed
    for owner, name, replacement in _patches():
        setattr(owner, name, replacement)
    setattr(torch, "compile", refuse_compile)
    setattr(torch.cuda, "_compile_kernel", refuse_nvrtc)
    # PyTorch would refuse the stand-in for a stream; all work is finished anyway.
    setattr(torch.Tensor, "record_stream", lambda *_args, **_kwargs: None)
    CudaOnCpu().__enter__()  # type: ignore[no-untyped-call]


def standing_in_for(text: str, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """`standing_in` if a program uses cuda and `device` is not a CUDA device."""
    is_needed = "cuda" in text and device.type != "cuda"
    return standing_in(device) if is_needed else contextlib.nullcontext()


@contextlib.contextmanager
def standing_in(device: torch.device) -> Iterator[None]:
    """A context in which cuda means `device`, which may be the meta device."""
    global _stand_in
    before, _stand_in = _stand_in, device
    patches = _patches()
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
    default = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    for owner, name, replacement in patches:
        setattr(owner, name, replacement)
    try:
        with CudaOnCpu():
            yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
        _stand_in = before
        if getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None) is not default:
            torch.set_default_device(None if default is None else default.device)


def _patches() -> list[tuple[Any, str, Any]]:
    """The replacements of torch's attributes, as owner, name and replacement."""
    default_device = torch.set_default_device
    default_type = torch.set_default_tensor_type
    scope_init: Callable[..., None] = _device.DeviceContext.__init__

    def set_default_tensor_type(kind: Any) -> None:
        default_type(kind.replace(".cuda", "") if isinstance(kind, str) else kind)

    return [
        # Recurrent layers would call cuDNN in their constructor, seeing tensors that say they are
        # CUDA.
        (torch.backends.cudnn, "enabled", False),
        *((torch.cuda, name, replacement) for name, replacement in _torch_cuda().items()),
        (torch, "set_default_device", lambda device: default_device(to_stand_in(device))),
        (torch, "set_default_tensor_type", set_default_tensor_type),
        (
            _device.DeviceContext,
            "__init__",
            lambda self, device: scope_init(self, to_stand_in(device)),
        ),
        (torch, "Generator", Generator),
    ]


def refuse_compile(*_args: Any, **_kwargs: Any) -> Any:
    raise RuntimeError("torch.compile is not available to candidates")


def refuse_nvrtc(*_args: Any, **_kwargs: Any) -> Any:
    raise RuntimeError(
        "torch.cuda._compile_kernel is not available to candidates: compile native source with "
        "torch.utils.cpp_extension.load_inline or load when the module is imported"
    )


def _torch_cuda() -> dict[str, Any]:
    stream = Stream()

    def constant(value: Any) -> Callable[..., Any]:
        return lambda *_args, **_kwargs: value

    nothing = constant(None)
    return {
        "is_available": constant(True),
        "is_initialized": constant(True),
        "is_bf16_supported": constant(True),
        "device_count": constant(1),
        "current_device": constant(0),
        "current_stream": constant(stream),
        "default_stream": constant(stream),
        "get_device_name": constant(PROPERTIES.name),
        "get_device_properties": constant(PROPERTIES),
        "get_device_capability": lambda *_: (PROPERTIES.major, PROPERTIES.minor),
        "memory_allocated": constant(0),
        "max_memory_allocated": constant(0),
        "memory_reserved": constant(0),
        "mem_get_info": constant((8 << 30, 16 << 30)),
        "init": nothing,
        "_lazy_init": nothing,
        "synchronize": nothing,
        "set_device": nothing,
        "set_stream": nothing,
        "empty_cache": nothing,
        "manual_seed": nothing,
        "manual_seed_all": nothing,
        "reset_peak_memory_stats": nothing,
        "Stream": Stream,
        "Event": Event,
        "device": _DeviceScope,
        "stream": _DeviceScope,
    }
