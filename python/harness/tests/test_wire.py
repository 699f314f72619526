# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import json
import os
import socket
import struct
import threading
import unittest
from typing import Any
from unittest import mock

from harness.worker import wire


def pair() -> tuple[wire.Channel, socket.socket]:
    mine, theirs = socket.socketpair()
    return wire.Channel(mine.detach()), theirs


class ServingTest(unittest.TestCase):
    def test_questions_are_answered_until_the_channel_closes(self) -> None:
        seen: list[str] = []
        served, raw = pair()

        def answer(question: wire.Question) -> wire.Answer:
            seen.append(question.body["op"])
            return wire.Answer()

        for op in ("first", "second"):
            data = json.dumps({"op": op}).encode()
            raw.sendall(struct.pack("<I", len(data)) + data)
        raw.shutdown(socket.SHUT_WR)
        wire.serve(served, answer)
        raw.close()
        self.assertEqual(seen, ["first", "second"])


class ChannelTest(unittest.TestCase):
    def test_a_message_arrives_with_its_descriptors(self) -> None:
        one, raw = pair()
        two = wire.Channel(raw.detach())
        read_end, write_end = os.pipe()
        one.send({"text": "ä\udc80", "n": 1}, [write_end])
        got = two.receive()
        self.assertEqual(got.body["n"], 1)
        os.write(got.descriptors[0], b"x")
        self.assertEqual(os.read(read_end, 1), b"x")
        for descriptor in (read_end, write_end, *got.descriptors):
            os.close(descriptor)

    def test_a_descriptor_waits_while_those_of_others_are_on_their_way(self) -> None:
        class Busy:
            tries = 0

            def sendmsg(self, parts: list[bytes], _ancillary: Any) -> int:
                self.tries += 1
                if self.tries < 3:
                    raise OSError(errno.ETOOMANYREFS, "Too many references")
                return len(parts[0])

        channel, raw = pair()
        busy = Busy()
        with mock.patch.object(channel, "_socket", busy), mock.patch("time.sleep"):
            channel.send({}, [0])
            self.assertEqual(busy.tries, 3)
            with mock.patch.object(wire, "SEND_LIMIT_S", -1.0):
                busy.tries = 0
                self.assertRaisesRegex(OSError, "references", channel.send, {}, [0])
        raw.close()

    def test_a_message_may_come_byte_by_byte(self) -> None:
        channel, raw = pair()
        payload = b'{"a": [1, 2]}'
        data = struct.pack("<I", len(payload)) + payload

        def dribble() -> None:
            for i in range(len(data)):
                raw.sendall(data[i : i + 1])

        thread = threading.Thread(target=dribble)
        thread.start()
        self.assertEqual(channel.receive().body, {"a": [1, 2]})
        thread.join()
        raw.close()

    def test_a_long_message_survives_a_small_buffer(self) -> None:
        one, raw = pair()
        two = wire.Channel(raw.detach())
        text = "x" * (3 << 20)
        thread = threading.Thread(target=one.send, args=({"text": text},))
        thread.start()
        self.assertEqual(two.receive().body["text"], text)
        thread.join()

    def test_a_closed_channel_is_the_end(self) -> None:
        channel, raw = pair()
        raw.close()
        self.assertRaises(EOFError, channel.receive)

    def test_half_of_a_surrogate_pair_is_replaced(self) -> None:
        channel, raw = pair()
        channel.send({"message": "half a pair: \ud800; \u00e9 \U0001f600"})
        data = raw.recv(4096)[4:]
        self.assertNotIn(b"ud800", data)
        self.assertEqual(json.loads(data)["message"], "half a pair: ?; \u00e9 \U0001f600")
        raw.close()

    def test_malformed_messages_are_refused(self) -> None:
        cases = {
            "too long": struct.pack("<I", wire.MESSAGE_BYTES_MAX + 1),
            "cut short": struct.pack("<I", 100) + b"{}",
            "cut in the header": b"\x01\x00",
            "no object": struct.pack("<I", 2) + b"[]",
        }
        for name, data in cases.items():
            with self.subTest(name):
                channel, raw = pair()
                raw.sendall(data)
                raw.close()
                self.assertRaises(wire.ProtocolError, channel.receive)

    def test_serve_returns_exceptions_as_data(self) -> None:
        raised: list[BaseException] = [ValueError("no"), SystemExit(3), MemoryError(), Hostile()]
        kinds = ["exception", "exception", "oom", "exception"]

        def answer(question: wire.Question) -> wire.Answer:
            raise raised[question.body["n"]]

        channel, raw = pair()
        thread = threading.Thread(target=wire.serve, args=(channel, answer))
        thread.start()
        peer = wire.Channel(raw.detach())
        for number, kind in enumerate(kinds):
            peer.send({"n": number})
            got = peer.receive().body
            self.assertFalse(got["ok"])
            self.assertEqual(got["error"]["kind"], kind)
        del peer
        thread.join()


class Hostile(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class DescribeTest(unittest.TestCase):
    def test_frames_are_those_of_the_candidate(self) -> None:
        code = compile("def f():\n    g()\ndef g():\n    1 / 0\nf()", wire.CANDIDATE_FILE, "exec")
        error = self._raised(lambda: exec(code, {}))
        lines = [frame["line"] for frame in wire.describe(error)["frames"]]
        self.assertEqual(lines, [5, 2, 4])

    def test_a_deep_recursion_keeps_both_ends(self) -> None:
        code = compile("def f(n):\n    f(n + 1)\nf(0)", wire.CANDIDATE_FILE, "exec")
        described = wire.describe(self._raised(lambda: exec(code, {})))
        self.assertEqual(described["type"], "RecursionError")
        self.assertEqual(described["frames"][0]["line"], 3)
        self.assertLessEqual(len(described["frames"]), wire.FRAMES_MAX)

    def test_the_innermost_stage_stays(self) -> None:
        error = ValueError("x")
        wire.set_stage(error, "forward")
        wire.set_stage(error, "load")
        self.assertEqual(wire.describe(error)["stage"], "forward")

    def test_the_place_and_backtrace_of_a_check_are_left_out(self) -> None:
        message = "x must be contiguous\nException raised from f at cuda_sources[0]:12 (most …"
        self.assertEqual(wire.describe(RuntimeError(message))["message"], "x must be contiguous")

    def test_torch_out_of_memory_is_oom(self) -> None:
        message = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"
        self.assertEqual(wire.describe(RuntimeError(message))["kind"], "oom")
        self.assertEqual(wire.describe(RuntimeError("shape mismatch"))["kind"], "exception")

    def _raised(self, action: Any) -> BaseException:
        try:
            action()
        except BaseException as error:
            return error
        raise AssertionError("nothing was raised")


if __name__ == "__main__":
    unittest.main()
