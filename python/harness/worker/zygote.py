# SPDX-License-Identifier: Apache-2.0
"""A zygote: imports torch once, then forks a child process for each job.

  zygote.py --roles judge|candidate --channel FD --sandbox-lib PATH|off
            [--device NAME --aten-lib PATH --executor-lib PATH [--client-lib PATH]
             [--operators-lib PATH]] [--warp-size N]
               [--device-name NAME] [--count]
            [--twin '[CHANNEL, OUTPUT, [ARGUMENT, ...]]']

There are two, since a fork shares everything with its zygote: processes that run candidate code
come from a zygote that never imported the judge. Importing torch takes seconds, so the first zygote
forks the other, its twin, when it has imported only torch. A zygote has one thread, never runs code
of a task or a candidate, and ends when its channel closes. A child gets its end of a channel and a
descriptor for its output, and a candidate process also the channel to its device; it enters the
sandbox and serves its role until its channel closes. The child is forked twice (sandbox.py), so
that the supervisor becomes its parent and reaps it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import platform
import signal
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
sys.path[:] = [str(Path(__file__).resolve().parent.parent.parent)] + [
    entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent
]

if __name__ == "__main__":
    gc.disable()  # Imports make little garbage; main() enables it.

import torch  # noqa: E402

torch.set_num_threads(1)


def _fork_twin() -> None:
    """Returns in both processes; in the twin with its own arguments and without this one's
    descriptors.
    """
    at = sys.argv.index("--twin")
    channel, output, arguments = json.loads(sys.argv[at + 1])
    del sys.argv[at : at + 2]
    helper = os.fork()
    if helper:
        os.waitpid(helper, 0)
        os.close(channel)
        os.close(output)
        return
    if os.fork():  # The supervisor becomes the twin's parent, to end and reap it.
        os._exit(0)
    os.close(int(sys.argv[sys.argv.index("--channel") + 1]))
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    sys.argv[1:] = arguments


if __name__ == "__main__" and "--twin" in sys.argv:
    _fork_twin()

# This import is first, since a backend may have to prepare the following ones.
from harness.worker.backends import BACKENDS  # noqa: E402
from harness.candidate import cuda_on_cpu, process, record  # noqa: E402
from harness.worker import protocol, sandbox, view, wire  # noqa: E402
from harness.candidate.aten import AtenRecorder  # noqa: E402
from harness.worker.place import Place  # noqa: E402

PR_SET_PDEATHSIG = 1
CHANNEL, DEVICE = 3, 4  # Descriptors of a child.
INSPECTOR = "inspector"
# The spawn before which memory is compacted. This takes up to 0.6 s and saves 0.03 s per spawn.
COMPACTION_SPAWN = 6

# The modules that are imported when a candidate uses a package.
PACKAGES = {"triton": ("triton", "triton.language", "triton.backends.nvidia.compiler")}

# [{"protection": name, "why": text}], or None without a sandbox.
Missing = list[dict[str, str]] | None


@dataclass(frozen=True)
class Libraries:
    """The libraries that are loaded before the first fork; None if not given."""

    sandbox: ctypes.CDLL | None
    aten: AtenRecorder | None
    backend: type[Place]
    executor_library: str = ""  # Path of the device process's native code, or "".
    client_library: str = ""  # Path of libcudart's substitute, for candidates without a device.
    # The library that sends and runs PyTorch's operators if the device cannot run PyTorch's
    # kernels.
    operators_library: str = ""
    warp_size: int = 32  # Threads of a warp of the device process.
    device_name: str = ""  # The name that programs read of its device; "": the device's own.
    counts: bool = False  # The device process counts what kernels move.

    def candidates_place(self) -> Place:
        """The place of a device process, if one serves this process."""
        if not self.client_library:
            return self.backend.open()
        _call_client(self.client_library)
        if self.operators_library:
            _replace_operators(self.operators_library)
        return self.backend.open_remote()


Answering = Callable[[wire.Question], wire.Answer]
Roles = dict[str, Callable[[Libraries], Answering]]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--roles", choices=["judge", "candidate"], required=True)
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--sandbox-lib", required=True)
    parser.add_argument("--warp-size", type=int, default=32)
    parser.add_argument("--device-name", default="")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--aten-lib")
    parser.add_argument("--executor-lib", default="")
    parser.add_argument("--client-lib", default="")
    parser.add_argument("--operators-lib", default="")
    parser.add_argument("--device", choices=BACKENDS, default="cpu")
    arguments = parser.parse_args()
    library = None if arguments.sandbox_lib == "off" else ctypes.CDLL(arguments.sandbox_lib)
    cuda_on_cpu.PROPERTIES.warp_size = arguments.warp_size  # The recorder reads it.
    aten = AtenRecorder.load(arguments.aten_lib) if arguments.aten_lib else None
    backend = BACKENDS[arguments.device]
    libraries = Libraries(
        library, aten, backend, arguments.executor_lib, arguments.client_lib,
        arguments.operators_lib, arguments.warp_size, arguments.device_name, arguments.count,
    )  # fmt: skip
    channel = wire.Channel(arguments.channel)
    roles = _judge_roles() if arguments.roles == "judge" else _candidate_roles()
    sys.dont_write_bytecode = True  # Children must not write to the user's cache.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    gc.freeze()
    gc.enable()
    num_spawns = 0

    def answer(question: wire.Question) -> wire.Answer:
        nonlocal num_spawns
        num_spawns += question.body.get("op") == "spawn"
        if num_spawns == COMPACTION_SPAWN:
            _compact(library)
        return _answer(question, libraries, roles)

    wire.serve(channel, answer)
    return 0


def _compact(library: ctypes.CDLL | None) -> None:
    """Makes each later fork cheaper."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    if library is not None:
        library.mc_sandbox_compact_memory()


def _judge_roles() -> Roles:
    """The roles that never run candidate code, and the data that they share."""
    from harness.device import process
    from harness.judge import cost, initials, inspect_source, judge
    from harness.timing.baseline import Baseline

    cost.warm_up()

    def baseline(libraries: Libraries) -> Answering:
        return Baseline(libraries.backend.open(), libraries.executor_library).answer

    def inspector(question: wire.Question) -> wire.Answer:
        answering = {"initials": initials.answer}.get(question.body["op"], inspect_source.answer)
        return answering(question)

    return {
        INSPECTOR: lambda _: inspector,
        "judge": lambda libraries: judge.Judge(
            libraries.backend.open(), libraries.executor_library
        ).answer,
        "baseline": baseline,
        "device": lambda libraries: process.DeviceProcess(
            libraries.executor_library,
            libraries.backend.kernels,
            libraries.operators_library,
            libraries.warp_size,
            libraries.device_name,
            counts=libraries.counts,
        ).answer,
    }


def _candidate_roles() -> Roles:
    return {
        "recorder": lambda libraries: record.Recorder(libraries.backend.builder).answer,
        "candidate": lambda libraries: process.CandidateProcess(
            libraries.candidates_place(), libraries.aten
        ).answer,
    }


def _answer(question: wire.Question, libraries: Libraries, roles: Roles) -> wire.Answer:
    if question.body.get("op") == "hello":
        return wire.Answer(_hello(libraries))
    if question.body.get("op") == "spawn":
        return wire.Answer({"pid": _spawn(question, libraries, roles)})
    raise wire.Refusal("protocol", "the zygote answers hello and spawn")


def _hello(libraries: Libraries) -> wire.Json:
    return {
        "pid": os.getpid(),
        "pytorch": torch.__version__,
        "python": platform.python_version(),
        "torch_dir": str(Path(torch.__file__).parent),
        "include_dirs": [str(path) for path in _include_dirs()],
        "cxx11_abi": bool(torch._C._GLIBCXX_USE_CXX11_ABI),
        "files": view.files_of([libraries.executor_library, libraries.operators_library]),
    }


def _include_dirs() -> list[Path]:
    root = Path(torch.__file__).parent / "include"
    return [
        root,
        root / "torch/csrc/api/include",
        Path(sysconfig.get_path("include")),
    ]


# ---- Forking ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ChildSpec:
    """The parameters of a new child."""

    name: str  # The role's name.
    role: Callable[[Libraries], Answering]
    profile: bytes | None  # None: no sandbox.
    channel: int
    output: int
    device: int | None
    environment: dict[str, str]  # Variables besides the zygote's.


def _spawn(question: wire.Question, libraries: Libraries, roles: Roles) -> int:
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("the zygote has threads; a fork would lose them")
    spec = _child_spec(question, libraries, roles)
    _import(question.body.get("imports", []))

    def unshare() -> None:
        if spec.profile is not None:
            sandbox.call(libraries.sandbox, "mc_sandbox_unshare", spec.profile)

    return sandbox.fork_twice(unshare, lambda helper: _run_child(spec, libraries, helper))


def _import(packages: list[str]) -> None:
    """Imports slow modules once, before the fork; the child reports missing ones."""
    for name in {name for package in packages for name in PACKAGES[package]} - set(sys.modules):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _child_spec(question: wire.Question, libraries: Libraries, roles: Roles) -> _ChildSpec:
    name = str(question.body.get("role"))
    role = roles.get(name)
    if role is None or len(question.descriptors) not in (2, 3):
        raise wire.Refusal("protocol", "spawn needs a known role and two or three descriptors")
    profile = question.body.get("sandbox")
    encoded = None if profile in (None, "off") else json.dumps(profile).encode()
    if encoded is not None and libraries.sandbox is None:
        raise wire.Refusal("protocol", "a sandbox is asked for, but its library was not given")
    channel, output, *device = question.descriptors
    environment = dict(str(one).split("=", 1) for one in question.body.get("environment", []))
    return _ChildSpec(
        name, role, encoded, channel, output, device[0] if device else None, environment
    )


def _run_child(spec: _ChildSpec, libraries: Libraries, helper: int) -> NoReturn:
    status = 1
    try:
        os.setsid()
        os.environ.update(spec.environment)
        os.dup2(spec.output, 1)
        os.dup2(spec.output, 2)
        missing = _enter(spec, libraries, helper)
        channel = _arrange_descriptors(spec)
        role = spec.role(libraries)  # Before the first response: the supervisor relies on it.
        wire.serve(channel, lambda asked: _answer_inside(asked, spec.name, role, missing))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _answer_inside(
    question: wire.Question, name: str, role: Answering, missing: Missing
) -> wire.Answer:
    """A child's response: to the first request, about its protections, or its role's.

    Once candidate code ran here, no response is reliable; the supervisor does not repeat this
    request.
    """
    if question.body.get("op") != "protections":
        protocol.check_question(name, question)
        answer = role(question)
        protocol.check_answer(name, question, answer)
        return answer
    if missing is None:
        raise wire.Refusal("protocol", "this child is in no sandbox")
    return wire.Answer({"missing": missing})


def _enter(spec: _ChildSpec, libraries: Libraries, helper: int) -> Missing:
    """Enters the sandbox; returns the protections that are not active."""
    if spec.profile is None:
        while os.getppid() == helper:  # Its end makes the supervisor the parent.
            time.sleep(0.0005)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        return None
    assert libraries.sandbox is not None
    keep = [spec.channel] if spec.device is None else [spec.channel, spec.device]
    sandbox.call(libraries.sandbox, "mc_sandbox_enter", spec.profile, keep)
    libraries.sandbox.mc_sandbox_missing.restype = ctypes.c_char_p
    missing: Missing = json.loads(libraries.sandbox.mc_sandbox_missing())
    return missing


def _arrange_descriptors(spec: _ChildSpec) -> wire.Channel:
    """Sets descriptor 0 to an empty input, 1 and 2 to the output, 3 to the channel, 4 to the
    device; closes the rest.
    """
    wanted = [os.open("/dev/null", os.O_RDONLY), 1, 2, spec.channel]
    wanted += [] if spec.device is None else [spec.device]
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 100) for descriptor in wanted]
    for number, descriptor in enumerate(high):
        os.dup2(descriptor, number, inheritable=number < 3)
    os.closerange(len(high), 1 << 16)
    return wire.Channel(CHANNEL)


def _call_client(path: str) -> None:
    """Libcudart's substitute serves this process from now on, over the channel it was given."""
    if ctypes.CDLL(path).mc_device_open(DEVICE):
        raise RuntimeError("the channel to the device process cannot be mapped")


def _replace_operators(path: str) -> None:
    """PyTorch's operators on CUDA tensors become commands (device/operators/operators.h)."""
    if ctypes.CDLL(path).mc_operators_install() <= 0:
        raise RuntimeError("PyTorch's operators cannot be replaced")


if __name__ == "__main__":
    sys.exit(main())
