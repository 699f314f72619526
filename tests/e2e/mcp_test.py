# SPDX-License-Identifier: Apache-2.0
"""The command `mcp`: the tools as a coding agent calls them, and messages that are refused."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import unittest
from typing import Any

from check_test import RACING
from program import MUSACODER, honest

TASK = "reduction/row_sum"
COMMAND = [MUSACODER, "mcp", "--backend", "cpu", "--jobs", "1", "--seed", "1"]
MEBIBYTE = 1 << 20


def called(tool: str, arguments: Any, number: Any = 1) -> str:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def request(method: Any, number: Any = 1, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def replies(*lines: str | bytes) -> list[dict[str, Any]]:
    """The messages of a session that sends these lines, in the order of their ids."""
    text = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines) + b"\n"
    done = subprocess.run(COMMAND, input=text, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(found, key=lambda message: str(message["id"]))


def text_of(message: dict[str, Any]) -> str:
    (part,) = message["result"]["content"]
    return str(part["text"])


def refusal_of(message: dict[str, Any]) -> str:
    if "error" in message:
        return str(message["error"]["message"])
    assert message["result"]["isError"], message
    return text_of(message)


# Each message, and a part of the line that refuses it.
HOSTILE: list[tuple[str, str | bytes, str]] = [
    ("no JSON", "nope", "one line of JSON"),
    ("no UTF-8", b'{"jsonrpc": "\xff"}', "one line of JSON"),
    ("a number that JSON lacks", called("evaluate", {"options": float("nan")}), "one line of JSON"),
    ("very deep", "[" * 200_000, "one line of JSON"),
    ("too long", '"' + "x" * (9 * MEBIBYTE) + '"', "at most"),
    ("a batch", "[" + request("ping") + "]", "a message is an object"),
    ("an id that is an object", request("ping", {}), '"id" is'),
    ("a method that is a number", request(7), '"method" is'),
    ("an unknown method", request("files/read"), "no method"),
    ("an unknown tool", called("shell", {"command": "ls"}), "no tool"),
    ("no arguments", called("evaluate", {"task": TASK}), '"answer" is missing'),
    ("a misspelt argument", called("check", {"source": "", "flags": ["-o/etc/x"]}), "no argument"),
    ("a list in place of a text", called("check", {"source": ["x"]}), '"source" is a text'),
    ("a file as a task", called("evaluate", {"task": "/etc/group", "answer": ""}), "names no file"),
    ("a huge answer", called("evaluate", {"task": TASK, "answer": "x" * 5 * MEBIBYTE}), "at most"),
    ("half a character", called("evaluate", {"task": TASK, "answer": "\ud800"}), "surrogate"),
    ("an unknown task", called("task", {"name": "../secret"}), "no task"),
    ("a page of others", called("explain", {"name": "../../etc/passwd"}), "one word"),
    ("a null byte", called("check", {"source": RACING, "arguments": ["\0"]}), "null byte"),
]  # fmt: skip


class Tools(unittest.TestCase):
    def test_an_agent_reads_a_task_is_judged_and_reads_why(self) -> None:
        hello, listed, task, passed, failed, explained, checked = replies(
            request("initialize", 0, protocolVersion="2025-06-18"),
            '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
            request("tools/list", 1),
            called("task", {"name": TASK}, 2),
            called("evaluate", {"task": TASK, "answer": honest(TASK)}, 3),
            called("evaluate", {"task": TASK, "answer": "I cannot."}, 4),
            called("explain", {"name": "illegal"}, 5),
            called("check", {"source": RACING}, 6),
        )
        self.assertEqual(hello["result"]["protocolVersion"], "2025-06-18")
        names = [tool["name"] for tool in listed["result"]["tools"]]
        self.assertEqual(names, ["evaluate", "check", "task", "explain"])
        self.assertIn("class Model(", text_of(task))
        self.assertTrue(text_of(passed).startswith("outcome: pass\nreward: 1.0\n"))
        self.assertTrue(text_of(failed).startswith("outcome: extraction\nreward: -1.0\n"))
        self.assertIn("legality: ", text_of(explained))
        self.assertIn("program.cu:10: shared_race in sum", text_of(checked))

    def test_hostile_messages_are_refused_in_one_line_and_end_nothing(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(COMMAND, **pipes) as process:  # type: ignore[call-overload]
            for name, line, words in HOSTILE:
                with self.subTest(name):
                    text = line if isinstance(line, bytes) else line.encode()
                    process.stdin.write(text + b"\n")
                    process.stdin.flush()
                    message = refusal_of(json.loads(process.stdout.readline()))
                    self.assertIn(words, message)
                    self.assertEqual(len(message.splitlines()), 1)
            process.stdin.write(request("ping", "still here").encode() + b"\n")
            process.stdin.close()
            pong = json.loads(process.stdout.read())
        self.assertEqual((pong["id"], pong["result"]), ("still here", {}))

    def test_a_cancelled_call_has_no_reply(self) -> None:
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled",
                     "params": {"requestId": 1}}  # fmt: skip
        found = replies(called("check", {"source": ""}), json.dumps(cancelled))
        self.assertEqual(found, [])

    @unittest.skipUnless(importlib.util.find_spec("mcp"), "the package mcp is not installed")
    def test_the_client_of_the_python_sdk_works(self) -> None:
        asyncio.run(self.as_the_sdk_calls())

    async def as_the_sdk_calls(self) -> None:
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ))
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            self.assertEqual(len(tools), 4)
            answer = {"task": TASK, "answer": honest(TASK)}
            judged = await session.call_tool("evaluate", answer)
            self.assertIn("outcome: pass", judged.content[0].text)
            refused = await session.call_tool("evaluate", {"task": TASK})
            self.assertEqual(refused.content[0].text, '"answer" is missing')


if __name__ == "__main__":
    unittest.main()
