# SPDX-License-Identifier: Apache-2.0
"""Recordings of a candidate's commands, and their replay (python/harness/device)."""

from __future__ import annotations

import os
import random
import re
import struct
import tempfile
import unittest
import zlib
from pathlib import Path
from typing import Any

import torch

from harness.device import recording
from harness.device.process import DeviceProcess
from harness.device.replay import Executed, Replay, replay
from harness.judge.compare import TOLERANCES, Comparer
from harness.worker.wire import Answer, Json, Question, Refusal

EXECUTOR = os.environ.get("MC_FAKE_EXECUTOR", "")
COMMANDS = Path(__file__).resolve().parents[3] / "device/commands.h"
PLACES = (1 << 44, 1 << 45)
TOLERANCE = {"tolerance_fp32": 1e-4, "tolerance_half": 1e-2}


def command(op: int, body: bytes) -> bytes:
    return struct.pack("<III", recording.COMMAND, 4 + len(body), op) + body


def note(kind: int, status: int, data: bytes = b"") -> bytes:
    return struct.pack("<III", kind, 4 + len(data), status) + data


def image(architecture: int = 90, kind: int = 1, flags: int = 0) -> bytes:
    """A fat binary with one entry."""
    text = b".version 8.0\n.target sm_90a\n\0"
    entry = struct.pack("<HHIQIIHHIIIQ", kind, 0, 64, len(text), 0, 0, 0, 0, architecture, 0, 0,
                        flags)  # fmt: skip
    entry += bytes(64 - len(entry)) + text
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry


def tensor(address: int) -> Json:
    return {"t": "tensor", "dtype": "float32", "shape": [2], "nbytes": 8, "offset": address,
            "param": False}  # fmt: skip


class FakeDevice:
    """A device for a replay that records its calls."""

    capability = 90
    places = PLACES

    def __init__(self, outputs: bytes = b"") -> None:
        self.outputs = outputs
        self.asked: list[str] = []
        self.ran: list[tuple[int, bytes]] = []
        self.variable = 0

    def answer(self, question: Question) -> Answer:
        self.asked.append(question.body["op"])
        return Answer({"address": PLACES[1]} if question.body["op"] == "put" else {})

    def begin_replay(self, described: dict[str, int], images: str) -> None:
        self.described = described

    def run(self, op: int, body: bytes) -> Executed | None:
        self.ran.append((op, body))
        if op == recording.FIND_VARIABLE:
            return Executed(True, 0, struct.pack("<QQ", self.variable, 8))
        return Executed(False, 0, b"") if op < 41 else None

    def read(self, address: int, nbytes: int) -> bytes:
        return self.outputs[:nbytes]


def body_of(*parts: bytes, places: tuple[int, int] = PLACES) -> bytes:
    opened = recording.act({"op": "open", "described": {}, "places": list(places)})
    return zlib.compress(opened + b"".join(parts))


def taken(values: bytes) -> bytes:
    take = {"op": "take", "outputs": {"t": "tuple", "items": [tensor(0)]}, "buffers": []}
    return recording.act(take, values)


class FormatTest(unittest.TestCase):
    def test_the_numbers_of_commands_are_those_of_the_native_code(self) -> None:
        text = COMMANDS.read_text().partition("enum class Op")[2].partition("};")[0]
        names = re.findall(r"^  k(\w+),", text, re.MULTILINE)
        titles = {name.title().replace("_", ""): value for name, value in vars(recording).items()}
        known = {name: titles[name] for name in names if name in titles}
        self.assertEqual(len(known), 13)
        for name, value in known.items():
            self.assertEqual(names[value], name)

    def test_an_image_has_its_ptx(self) -> None:
        self.assertIn(b".target sm_90a", recording.ptx_of(image()) or b"")
        newer, compressed = image(architecture=100), image(flags=0x2000)
        for other in (newer, compressed, image(kind=2), b"", image()[:40]):
            self.assertIsNone(recording.ptx_of(other))

    def test_an_image_without_ptx_is_refused_by_the_names_of_its_kernels(self) -> None:
        with self.assertRaisesRegex(Refusal, "the image of _Z3addPf has no PTX"):
            recording.require_ptx(image(kind=2), ["_Z3addPf"])


class RecorderTest(unittest.TestCase):
    def loaded(self, recorder: recording.Recorder, path: str) -> None:
        body = struct.pack("<QII", 64, 5, 0) + path.encode() + b"\0"
        os.write(recorder.descriptor, command(recording.LOAD_MODULE, body))
        found = struct.pack("<II", 5, 0) + b"_Z3addPf\0"
        os.write(recorder.descriptor, command(recording.FIND_FUNCTION, found))

    def test_keeps_images_in_the_place_of_files(self) -> None:
        recorder = recording.Recorder()
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(64) + image() + b"more")
            file.flush()
            recorder.allow({"/artifacts/own.so": file.name})
            self.loaded(recorder, "/artifacts/own.so")
            packed = recorder.finish()
        data = os.pread(packed, os.fstat(packed).st_size, 0)
        kinds = list(recording.frames(recording.decompressed(data)))
        body, kept = recording.parse_act(kinds[0][1])
        self.assertEqual(body, {"op": "image", "module": 5})
        self.assertEqual(bytes(kept), image())
        self.assertEqual(kinds[1][0], recording.COMMAND)

    def test_refuses_kernels_of_libraries_by_name(self) -> None:
        recorder = recording.Recorder()
        self.loaded(recorder, "/lib/libtorch_cuda.so")
        with self.assertRaisesRegex(Refusal, "kernels of libtorch_cuda.so"):
            recorder.finish()


class ReplayTest(unittest.TestCase):
    def replayed(self, device: FakeDevice, *parts: bytes) -> Json:
        return replay(device, body_of(*parts), TOLERANCE)

    def test_outputs_within_the_tolerance_agree(self) -> None:
        recorded, here = struct.pack("<ff", 1, 2), struct.pack("<ff", 1, 2.0001)
        found = self.replayed(FakeDevice(here), taken(recorded))
        self.assertEqual(found["differences"], [])
        self.assertEqual((found["calls"], found["outputs"], found["equal"]), (1, 1, 0))
        self.assertEqual(self.replayed(FakeDevice(recorded), taken(recorded))["equal"], 1)

    def test_outputs_outside_of_the_tolerance_are_named(self) -> None:
        recorded, here = struct.pack("<ff", 1, 2), struct.pack("<ff", 1, 2.01)
        (text,) = self.replayed(FakeDevice(here), taken(recorded))["differences"]
        self.assertRegex(text, "^call 1, output: value: 1 of 2")

    def test_a_command_that_ends_in_another_way_is_an_error(self) -> None:
        fill = command(recording.FILL, bytes(48))
        self.assertEqual(self.replayed(FakeDevice(), fill)["errors"], [])
        (text,) = self.replayed(FakeDevice(), fill, note(recording.ERROR, 700))["errors"]
        self.assertIn("ended with no error, and with error 700 when it was recorded", text)
        query = command(recording.QUERY_STREAM, bytes(8))
        late = self.replayed(FakeDevice(), query, note(recording.REPLY, 600))
        self.assertEqual(late["errors"], [])

    def test_pointers_to_variables_of_modules_are_those_of_this_device(self) -> None:
        device = FakeDevice()
        device.variable = 0x2000
        found = command(recording.FIND_VARIABLE, bytes(8) + b"v\0")
        was = note(recording.REPLY, 0, struct.pack("<QQ", 0x1000, 8))
        launch = bytes(recording.LAUNCH_BYTES) + struct.pack("<QQQ", 0x1004, 0x1008, 7)
        self.replayed(device, found, was, command(recording.LAUNCH, launch))
        arguments = struct.unpack_from("<QQQ", device.ran[-1][1], recording.LAUNCH_BYTES)
        self.assertEqual(arguments, (0x2004, 0x1008, 7))

    def test_another_architecture_gets_the_ptx(self) -> None:
        device = FakeDevice()
        loaded = recording.act({"op": "image", "module": 3}, image()) + note(recording.REPLY, 0)
        self.replayed(device, loaded)
        self.assertEqual(device.ran[-1][0], recording.LOAD_MODULE)
        device.capability = 100
        self.replayed(device, loaded)
        self.assertEqual(device.ran[-1][0], recording.LOAD_TEXT)
        self.assertIn(b".target sm_100\n", device.ran[-1][1])

    def test_an_image_without_ptx_is_refused(self) -> None:
        with self.assertRaisesRegex(Refusal, "module 3 has no PTX"):
            self.replayed(FakeDevice(), recording.act({"op": "image", "module": 3}, image(kind=2)))

    def test_other_addresses_are_refused(self) -> None:
        with self.assertRaisesRegex(Refusal, "other addresses"):
            replay(FakeDevice(), body_of(places=(1, 2)), TOLERANCE)

    def test_any_bytes_end_in_a_refusal_or_a_result(self) -> None:
        """The bytes behind a valid hash are changed, cut and moved."""
        recorded = struct.pack("<ff", 1, 2)
        put = {"op": "put", "trees": [tensor(0)], "is_call": True, "address": PLACES[1],
               "nbytes": 512}  # fmt: skip
        whole = bytearray(
            zlib.decompress(
                body_of(
                    recording.act({"op": "allow", "schedule_seed": 2**64 - 1}),
                    recording.act({"op": "image", "module": 3}, image()),
                    note(recording.REPLY, 0),
                    recording.act(put, recorded),
                    command(recording.LAUNCH, bytes(80)),
                    taken(recorded),
                    recording.act({"op": "release", "address": PLACES[1]}),
                )
            )
        )
        seed = random.SystemRandom().randrange(10**6)
        draw, refused = random.Random(seed), 0
        for _ in range(3000):
            changed = bytearray(whole)
            for _ in range(draw.randrange(1, 4)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            if draw.random() < 0.2:
                del changed[draw.randrange(len(changed)) :]
            run = Replay(FakeDevice(recorded), Comparer(TOLERANCES))
            try:
                run.run(memoryview(changed))
            except Refusal:
                refused += 1
            except Exception as error:
                self.fail(f"seed {seed}: {error!r}")
        self.assertGreater(refused, 1000)

    def test_data_that_is_not_compressed_as_it_should_be_is_refused(self) -> None:
        packed = body_of()
        for data in (b"", b"text", packed[:-1], packed + b"x"):
            with self.assertRaises(Refusal):
                replay(FakeDevice(), data, TOLERANCE)


@unittest.skipUnless(EXECUTOR and torch.version.cuda, "needs PyTorch for CUDA")
class DeviceProcessTest(unittest.TestCase):
    """The device process with a driver that needs no GPU."""

    def call(self, operation: str, *descriptors: int, **body: Any) -> tuple[Json, int]:
        answer = self.device.answer(Question({"op": operation, **body}, list(descriptors)))
        return answer.body, answer.descriptors[0] if answer.descriptors else -1

    def setUp(self) -> None:
        self.device = DeviceProcess(EXECUTOR)

    def test_a_recording_is_replayed_without_the_candidate(self) -> None:
        self.call("open", foreign_kernels=[], is_recorded=True)
        file = os.memfd_create("inputs")
        os.pwrite(file, struct.pack("<ffffff", 3, 4, 5, 6, 7, 8), 0)
        os.ftruncate(file, 2 << 20)
        tree = {**tensor(0), "shape": [6], "nbytes": 24, "region_bytes": 2 << 20}
        address = self.call("put", file, trees=[tree], is_call=True)[0]["address"]
        # The buffer comes after the tensor that is nested more deeply.
        inner = {"t": "list", "items": [tensor(address)]}
        outputs = {"t": "tuple", "items": [inner, tensor(address + 8)]}
        buffers = [{"name": "w", "tree": tensor(address + 16)}]
        self.call("take", outputs=outputs, buffers=buffers)
        self.call("release", address=address)
        packed = self.call("recording")[1]
        self.assertTrue(self.call("close")[0]["is_clean"])

        found, _ = self.call("replay", packed, **TOLERANCE)
        self.assertEqual((found["calls"], found["outputs"], found["equal"]), (1, 2, 2))
        self.assertEqual((found["differences"], found["errors"]), ([], []))
        self.assertEqual(found["device"], "fake device")

    def test_without_a_candidate_that_is_recorded_there_is_no_recording(self) -> None:
        self.call("open", foreign_kernels=[])
        with self.assertRaisesRegex(Refusal, "no candidate is recorded"):
            self.call("recording")
        self.call("close")


if __name__ == "__main__":
    unittest.main()
