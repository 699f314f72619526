# SPDX-License-Identifier: Apache-2.0
"""The device process: holds the device for a candidate process that has none.

A candidate's commands arrive in shared memory and are executed by a thread of the native library
(device/cuda/executor.h). The supervisor's requests, handled here, attach a candidate, bring inputs
and take outputs. One process serves many candidates in sequence; each starts with memory without
data of earlier candidates.
"""

from __future__ import annotations

import copy
import ctypes
import fcntl
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.device.recording import Recorder
from harness.device.replay import Executed, replay
from harness.worker import region
from harness.worker.described import attributes_of
from harness.worker.wire import Answer, Json, Question, Refusal

ALIGNMENT = 512
GRANULARITY = 2 << 20
OUTPUTS_BYTES_MAX = 64 << 30
CALLS_MAX = 1024
ITEMS_MAX = 256
_ITEMISED = 2  # Executor::BatchKind
_NO_ROOM = -2  # Executor::kNoRoom
_CALL_BYTES = ("inputs_bytes", "outputs_bytes")


class _Part(ctypes.Structure):
    """Executor::Part."""

    _fields_ = [
        ("source", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
    ]


class _Output(ctypes.Structure):
    """OutputPart of device/ptx_driver/driver.h."""

    _fields_ = [("address", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


class _Extent(ctypes.Structure):
    """Executor::Extent."""

    _fields_ = [("offset", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


class _TimedCall(ctypes.Structure):
    """Executor::TimedCall."""

    _fields_ = [
        ("us", ctypes.c_double),
        ("host_us", ctypes.c_double),
        ("launches_own", ctypes.c_uint32),
        ("was_queued_whole", ctypes.c_uint32),
        ("was_long", ctypes.c_uint32),
    ]


class _Item(ctypes.Structure):
    """PlainItem of device/cuda/capi.cc."""

    _fields_ = [
        ("name", ctypes.c_char * 1024),
        ("owner", ctypes.c_char * 512),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("registers", ctypes.c_uint32),
        ("shared_bytes", ctypes.c_uint32),
        ("launches", ctypes.c_uint32),
        ("us", ctypes.c_double),
    ]


class DeviceProcess:
    """Responds to `open`, then to any number of `put`, `take`, `release`, `used` and timing
    requests, then to `close`.
    """

    def __init__(
        self,
        library: str,
        kernels: tuple[str, str] = ("torch", "libtorch_cuda*.so"),
        operators: str = "",
        warp_size: int = 32,
        name: str = "",
        *,
        counts: bool = False,
    ) -> None:
        """`kernels` is the Place's: the files of PyTorch's own kernels. `operators` is the library
        that runs PyTorch's operators on a device that cannot run those kernels.
        """
        native = ctypes.CDLL(library)
        if warp_size != 32:  # Only the device in software has others (device/ptx_driver/capi.cc).
            native.mc_executor_set_warp_threads(warp_size)
        if name:
            native.mc_executor_set_device_name(name.encode())
        if counts:
            native.mc_executor_count()
        self._kernels = kernels
        native.mc_executor_create.restype = ctypes.c_void_p
        native.mc_executor_channel_bytes.restype = ctypes.c_uint64
        native.mc_executor_import.restype = ctypes.c_uint64
        native.mc_executor_place.restype = ctypes.c_uint64
        native.mc_executor_host.restype = ctypes.c_void_p
        native.mc_executor_prepare_batches.restype = ctypes.c_uint64
        native.mc_executor_batch_memory_bytes.restype = ctypes.c_uint64
        # A device in software reports findings in kernels (device/ptx_driver/capi.cc).
        self._take_report = getattr(native, "mc_executor_take_report", None)
        if self._take_report is not None:
            self._take_report.restype = ctypes.c_char_p
        self._moved_before = 0
        self._native = native
        self._recorder: Recorder | None = None  # It is set during a recording.
        self._import = native.mc_executor_import
        why = ctypes.create_string_buffer(500)
        handle = native.mc_executor_create(ctypes.c_uint64(0), why, ctypes.c_size_t(len(why)))
        if not handle:
            raise RuntimeError(why.value.decode())
        self._handle = ctypes.c_void_p(handle)
        facts, device_name = (ctypes.c_uint64 * 3)(), ctypes.create_string_buffer(256)
        native.mc_executor_facts(self._handle, facts, device_name, ctypes.c_size_t(256))
        self.places, self.capability = (facts[0], facts[1]), facts[2]
        self._name = device_name.value.decode("utf-8", "replace")
        if operators:
            self._open_operators(operators)

    def _open_operators(self, path: str) -> None:
        """Passes the library's functions (device/operators/operators.h) to the executor."""
        library, native = ctypes.CDLL(path), self._native
        library.mc_operators_open(native.mc_executor_host, native.mc_executor_note_operator)
        functions = library.mc_operators_run, library.mc_operators_fetch
        end = getattr(native, "mc_executor_end_operator", None)  # GPUs only (cuda/staging.cc).
        native.mc_executor_set_operators(self._handle, *functions, end)

    def answer(self, question: Question) -> Answer:
        operations = {
            "open": self._open,
            "allow": self._allow,
            "put": self._put,
            "take": self._take,
            "release": self._release,
            "used": self._used,
            "time_prepare": self._time_prepare,
            "time_start": self._time_start,
            "time_finish": self._time_finish,
            "time_take": self._time_take,
            "recording": self._recording,
            "replay": self._replay,
            "close": self._close,
        }
        return operations[question.body["op"]](question)

    def _open(self, question: Question) -> Answer:
        """Creates a channel for a new candidate; its descriptor goes to the candidate process."""
        described = question.body.get("described", {})
        descriptor = self._attach(described)
        if question.body.get("is_recorded"):
            self._recorder = Recorder()
            self._note("open", described=described, places=self.places, device=self._name)
            self._native.mc_executor_record(self._handle, self._recorder.descriptor)
        package, pattern = self._kernels
        folder = Path(importlib.import_module(package).__file__ or "").parent / "lib"
        for path in sorted(folder.glob(pattern)):
            self._allow_file(str(path), str(path), is_own=False)
        for pattern in question.body["foreign_kernels"]:
            self._native.mc_executor_allow_foreign_kernels(self._handle, pattern.encode())
        self._native.mc_executor_serve(self._handle)
        return Answer({}, [descriptor])

    def _attach(self, described: dict[str, int]) -> int:
        """The descriptor of a new channel, from which the executor reads commands."""
        descriptor = os.memfd_create("device", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, self._native.mc_executor_channel_bytes())
        # The seals prevent a shorter file, where a read behind the end would kill the process.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        self._describe(attributes_of(described))
        if self._native.mc_executor_attach(self._handle, descriptor):
            os.close(descriptor)
            raise RuntimeError("the channel cannot be mapped")
        return descriptor

    def _describe(self, attributes: dict[int, int]) -> None:
        """Sets these attributes for a device in software; a GPU keeps its own."""
        if self._take_report is None:
            return
        count = len(attributes)
        numbers = (ctypes.c_int * count)(*attributes)
        values = (ctypes.c_int * count)(*attributes.values())
        self._native.mc_executor_describe(numbers, values, ctypes.c_size_t(count))

    def _allow(self, question: Question) -> Answer:
        """Permits the candidate's own files, by their paths in its view, before it is loaded."""
        if self._take_report is not None:
            seed = ctypes.c_uint64(int(question.body["schedule_seed"]))
            self._native.mc_executor_begin_candidate(seed)
        for there, here in question.body["files"].items():
            self._allow_file(there, here, is_own=True)
        if self._recorder is not None:
            self._recorder.allow(question.body["files"])
            self._note("allow", schedule_seed=question.body["schedule_seed"])
        return Answer()

    def _allow_file(self, there: str, here: str, *, is_own: bool) -> None:
        paths = (os.fsencode(there), os.fsencode(here))
        self._native.mc_executor_allow_file(self._handle, *paths, ctypes.c_int(is_own))

    def _put(self, question: Question) -> Answer:
        """Maps memory of the judge and returns its address here."""
        nodes = [node for tree in question.body["trees"] for node in region.tensor_nodes(tree)]
        nbytes = int(nodes[0]["region_bytes"]) if nodes else GRANULARITY
        extents = (_Extent * max(1, len(nodes)))(
            *(_Extent(node["offset"], region.extent_of(node)) for node in nodes)
        )
        address = self._import(
            self._handle,
            ctypes.c_int(question.descriptors[0]),
            ctypes.c_uint64(nbytes),
            extents,
            ctypes.c_size_t(len(nodes)),
        )
        if not address:
            raise MemoryError("the device process has no room for the region")
        self._moved_before = self._moved_bytes()
        if question.body["is_call"] and self._take_report is not None:
            given_bytes = ctypes.c_uint64(sum(node["nbytes"] for node in nodes))
            with self._paused():
                self._native.mc_executor_begin_call(given_bytes)
        if self._recorder is not None:
            data = [self.read(address + node["offset"], region.extent_of(node)) for node in nodes]
            put = {"trees": question.body["trees"], "is_call": question.body["is_call"]}
            self._note("put", b"".join(data), **put, address=address, nbytes=nbytes)
        return Answer({"address": address})

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """A context in which the candidate's commands wait."""
        self._native.mc_executor_pause(self._handle)
        try:
            yield
        finally:
            self._native.mc_executor_resume(self._handle)

    def _end_call(self, outputs: list[Json]) -> None:
        """Ends a call on a device in software, which reports what wrote the outputs."""
        if self._take_report is None:
            return
        parts = (_Output * max(1, len(outputs)))(
            *(_Output(node["offset"], node["nbytes"]) for node in outputs)
        )
        with self._paused():
            self._native.mc_executor_end_call(parts, ctypes.c_size_t(len(outputs)))

    def _use(self) -> tuple[list[int], list[str]]:
        """What the candidate used (device/cuda/executor.h): launches, its own ones, bytes to the
        host, bytes that copies moved; and the texts `unsupported` and `forbidden`.
        """
        counts = (ctypes.c_uint64 * 4)()
        texts = [ctypes.create_string_buffer(1000) for _ in range(2)]
        self._native.mc_executor_use(self._handle, counts, *texts, ctypes.c_size_t(1000))
        return list(counts), [text.value.decode("utf-8", "replace") for text in texts]

    def _moved_bytes(self) -> int:
        return self._use()[0][3]

    def _release(self, question: Question) -> Answer:
        self._native.mc_executor_release(self._handle, ctypes.c_uint64(question.body["address"]))
        if self._recorder is not None:
            self._note("release", address=question.body["address"])
        return Answer()

    def _take(self, question: Question) -> Answer:
        """Copies the candidate's outputs, as it describes them, into a region for the judge."""
        body = question.body
        entries: list[Json] = [{"name": "", "tree": body["outputs"]}, *body["buffers"]]
        nodes = _nodes_of([entry["tree"] for entry in entries])
        description = copy.deepcopy(body) if self._recorder is not None else {}
        outputs = _nodes_of([body["outputs"]])
        output_bytes = sum(node["nbytes"] for node in outputs)
        moved_percent = 100 * (self._moved_bytes() - self._moved_before) // max(1, output_bytes)
        self._end_call(outputs)
        parts = (_Part * max(1, len(nodes)))()
        end = 0
        for part, node in zip(parts, nodes):
            node.pop("stride", None)  # The copied tensor is contiguous.
            part.source, part.bytes, part.offset = node["offset"], node["nbytes"], end
            node["offset"] = end
            end += region.round_up(max(1, part.bytes), ALIGNMENT)
        nbytes = region.round_up(max(1, end), GRANULARITY)
        for node in nodes:
            node["region_bytes"] = nbytes
        if nbytes > OUTPUTS_BYTES_MAX:
            raise Refusal("protocol", "the outputs are too large")
        descriptor = self._native.mc_executor_export(
            self._handle, parts, ctypes.c_size_t(len(nodes)), ctypes.c_uint64(nbytes)
        )
        _check(descriptor, "an output is not in the candidate's memory")
        if self._recorder is not None:
            self._recorder.note_outputs(description, self.read)
        answer = {"outputs": entries[0]["tree"], "buffers": entries[1:]}
        return Answer({**answer, "moved_percent": moved_percent}, [descriptor])

    # ---- Records and replays (docs/replay.md) ---------------------------------------------------

    def _note(self, op: str, data: bytes = b"", **body: Any) -> None:
        assert self._recorder is not None
        self._recorder.note({"op": op, **body}, data)

    def _recording(self, _question: Question) -> Answer:
        """Everything that the candidate sent so far, compressed."""
        if self._recorder is None:
            raise Refusal("protocol", "no candidate is recorded")
        with self._paused():
            if not self._native.mc_executor_is_recorded(self._handle):
                raise Refusal("unsupported", "its commands are too large to be recorded")
            return Answer({"device": self._name}, [self._recorder.finish()])

    def _replay(self, question: Question) -> Answer:
        """Replays a recording on this device and compares its outputs."""
        file = question.descriptors[0]
        data = os.pread(file, os.fstat(file).st_size, 0)
        found = replay(self, data, question.body)
        used = self._used(question).body
        found |= {"device": self._name, "unsupported": used["unsupported"]}
        return Answer({**found, "report": used["report"]})

    def begin_replay(self, described: dict[str, int], images: str) -> None:
        """Starts a replay without a candidate; modules come from the file of images."""
        os.close(self._attach(described))
        self._allow_file("images", images, is_own=True)
        if self._take_report is None:  # The inputs are in a file of the host.
            self._import = self._native.mc_executor_place

    def run(self, op: int, body: bytes) -> Executed | None:
        """Executes a command; None if there is no such command."""
        is_reply, reply = ctypes.c_int(), ctypes.create_string_buffer(16)
        arguments = (ctypes.c_uint32(op), body, ctypes.c_uint32(len(body)))
        status = self._native.mc_executor_run_alone(
            self._handle, *arguments, ctypes.byref(is_reply), reply, ctypes.c_size_t(len(reply))
        )
        return None if status < 0 else Executed(bool(is_reply.value), status, reply.raw)

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes of the candidate's memory. A device in software counts no read of them."""
        if not nbytes:
            return b""
        target = ctypes.create_string_buffer(nbytes)
        place = ctypes.c_uint64(address), ctypes.c_uint64(nbytes)
        if self._take_report is None:
            if self._native.mc_executor_read(self._handle, *place, target):
                raise Refusal("protocol", "an output cannot be read")
            return target.raw
        with self._paused():
            source = self._native.mc_executor_host(*place)
            if not source:
                raise Refusal("protocol", "an output is not in the candidate's memory")
            return ctypes.string_at(source, nbytes)

    # ---- Timing (device/cuda/timed_batch.h) -----------------------------------------------------

    def _time_prepare(self, question: Question) -> Answer:
        """Allocates memory for batches of calls; returns the address at which their inputs
        appear.
        """
        body = question.body
        sizes = (ctypes.c_uint64(region.round_up(body[name], ALIGNMENT)) for name in _CALL_BYTES)
        address = self._native.mc_executor_prepare_batches(
            self._handle, ctypes.c_uint32(body["calls"]), *sizes
        )
        if not address:
            raise MemoryError("the device process has no room for a batch of calls")
        return Answer({"address": address})

    def _time_start(self, question: Question) -> Answer:
        """Begins a batch, whose inputs are in the attached region."""
        body = question.body
        descriptor = ctypes.c_int(question.descriptors[0])
        numbers = ctypes.c_uint64(body["nbytes"]), ctypes.c_uint32(body["calls"])
        manner = ctypes.c_uint32(_ITEMISED if body["is_itemised"] else body["is_gated"])
        if self._native.mc_executor_start_batch(self._handle, descriptor, *numbers, manner):
            raise Refusal("protocol", "a batch cannot begin")
        return Answer()

    def _time_finish(self, _question: Question) -> Answer:
        """The time of each call of the batch, and the number of calls that were queued whole."""
        calls = (_TimedCall * CALLS_MAX)()
        count = self._native.mc_executor_finish_batch(self._handle, calls, len(calls))
        if count < 0:
            raise Refusal("protocol", "the candidate did not make the batch's calls")
        found = calls[:count]
        return Answer(
            {
                "us": [call.us for call in found],
                "host_us": [call.host_us for call in found if call.host_us > 0],
                "launches_own": [call.launches_own for call in found],
                "queued_whole": sum(call.was_queued_whole for call in found),
                "long_calls": sum(call.was_long for call in found),
                "memory_bytes": self._native.mc_executor_batch_memory_bytes(self._handle),
                "kernels": self._items(),
            }
        )

    def _items(self) -> list[Json]:
        """The items of an itemised batch; empty after any other batch."""
        items = (_Item * ITEMS_MAX)()
        count = self._native.mc_executor_take_items(self._handle, items, len(items))
        if count < 0:
            raise Refusal("protocol", "the work of the calls is unknown")
        return [
            {
                "name": item.name.decode("utf-8", "replace"),
                "owner": item.owner.decode("utf-8", "replace"),
                "launches": item.launches,
                "us": item.us,
                "grid": list(item.grid),
                "block": list(item.block),
                "registers": item.registers,
                "shared_bytes": item.shared_bytes,
            }
            for item in items[:count]
        ]

    def _time_take(self, question: Question) -> Answer:
        """The outputs of one of the batch's calls, in the form that the candidate described."""
        tree = question.body["outputs"]
        nodes = _nodes_of([tree])
        sizes = (ctypes.c_uint64 * max(1, len(nodes)))()
        end = 0
        for number, node in enumerate(nodes):
            sizes[number], node["offset"] = node["nbytes"], end
            end += region.round_up(node["nbytes"], ALIGNMENT)
        for node in nodes:
            node["region_bytes"] = region.round_up(max(1, end), GRANULARITY)
        descriptor = self._native.mc_executor_export_outputs(
            self._handle, ctypes.c_uint32(question.body["call"]), sizes, ctypes.c_size_t(len(nodes))
        )
        _check(descriptor, "a call's outputs do not have the form that was described")
        return Answer({"outputs": tree}, [descriptor])

    def _used(self, _question: Question) -> Answer:
        counts, (unsupported, forbidden) = self._use()
        report = b"" if self._take_report is None else self._take_report()
        return Answer(
            {
                "launches": counts[0],
                "launches_own": counts[1],
                "bytes_to_host": counts[2],
                "unsupported": unsupported,
                "forbidden": forbidden,
                "report": report.decode("utf-8", "replace"),
            }
        )

    def _close(self, _question: Question) -> Answer:
        is_clean = not self._native.mc_executor_detach(self._handle)
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
        return Answer({"is_clean": is_clean})


def _nodes_of(trees: list[Any]) -> list[Json]:
    """The tensor nodes of a candidate's trees, which may be malformed."""
    nodes: list[Json] = []
    waiting: list[tuple[Any, int]] = [(tree, 0) for tree in trees]
    for count, (tree, depth) in enumerate(waiting):
        if count > region.NODES_MAX or depth > region.DEPTH_MAX or not isinstance(tree, dict):
            raise Refusal("protocol", "a tree is malformed or too large")
        if tree.get("t") == "tensor":
            nodes.append(tree)
            continue
        items = tree.get("items", [])
        if not isinstance(items, list):
            raise Refusal("protocol", "a tree is malformed")
        for item in items:
            is_pair = tree.get("t") == "dict" and isinstance(item, list) and len(item) == 2
            waiting.append((item[1] if is_pair else item, depth + 1))
    for node in nodes:
        place = (node.get("offset"), node.get("nbytes"))
        if any(type(number) is not int or not 0 <= number < 2**63 for number in place):
            raise Refusal("protocol", "a tensor's place is malformed")
    return nodes


def _check(descriptor: int, what: str) -> None:
    """Raises if an export failed, for lack of memory or for the reason `what`."""
    if descriptor == _NO_ROOM:
        raise MemoryError("the device has no room for a copy of the outputs")
    if descriptor < 0:
        raise Refusal("protocol", what)
