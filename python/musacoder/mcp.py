# SPDX-License-Identifier: Apache-2.0
"""The judge as tools of coding agents, over the Model Context Protocol (docs/mcp.md).

`musacoder mcp` starts this file by its path (src/cli/mcp.cc).  Messages are JSON-RPC 2.0, one a
line, on standard input and output.  It implements the methods that tools need: initialize, ping,
tools/list, tools/call, and cancelled calls, which get no reply.  Calls run concurrently.

The reply to an invalid call is a result with isError and a one-line reason, so that the model reads
it; the reply to an invalid message is a JSON-RPC error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# This folder would hide other packages of the same names.  With -P it is not on the path.
if __package__ in (None, ""):
    sys.path[: 0 if sys.flags.safe_path else 1] = [str(Path(__file__).resolve().parents[1])]

from musacoder import local  # noqa: E402
from musacoder.judged import Json  # noqa: E402
from musacoder.server.questions import QUESTION_BYTES_MAX, Invalid, parse_question  # noqa: E402
from musacoder.version import VERSION  # noqa: E402

PROTOCOLS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LINE_BYTES_MAX = 2 * QUESTION_BYTES_MAX  # JSON may need two characters for one.
CALLS_MAX = 64  # Calls that run or wait at once.
THREADS = 8
CHECK_S = 60  # The time of a program in `check`.
CHECK_TEXT_MAX = 1 << 20
EXPLAINED_MAX = 8000  # Characters of one explanation.
CHECKED_MAX = 64_000  # Characters of what `check` prints: findings are at its end.
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("verdict", "legality", "correctness", "timing", "ptx", "check", "musa")

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}


def schema_of(required: Json, optional: Json) -> Json:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


TOOLS: dict[str, tuple[str, Json]] = {
    "evaluate": (
        "Judges a GPU kernel written for a PyTorch program: legality, compilation, correctness on "
        "secret inputs and, on a GPU, speed. Returns the outcome, the reward (null: no verdict on "
        "the answer) and feedback that names what is wrong.",
        schema_of(
            {
                "task": {**TEXT, "description": "A task's name, or the code of a module with "
                         "Model, get_inputs and get_init_inputs"},
                "answer": {**TEXT, "description": "A whole Python module with ModelNew, which "
                           "compiles its kernels with load_inline or has kernels of Triton"},
            },
            {"options": {"type": "object", "description": 'Such as {"precision": "bf16"}'}},
        ),
    ),
    "check": (
        "Compiles and runs a CUDA program (with main) without a GPU and finds races, bad accesses "
        "and barriers in its kernels.",
        schema_of({"source": {**TEXT, "description": "The text of one .cu file"}},
                  {"arguments": {**TEXTS, "description": "The program's arguments"}}),
    ),
    "task": (
        "Without a name the names of the tasks; with one the task's code and the request for a "
        "kernel.",
        schema_of({}, {"name": {**TEXT, "description": "Such as reduction/row_sum"}}),
    ),
    "explain": (
        "What the manual says of an outcome, a rule or a finding of a verdict.",
        schema_of({"name": {**TEXT, "description": "Such as illegal or shared_race"}}, {}),
    ),
}  # fmt: skip


# ---- Tools --------------------------------------------------------------------------------------


class Tools:
    """The tools: each takes checked arguments and returns a text.

    They raise Invalid and ValueError for an invalid call, OSError for a fault of the machine.
    """

    def __init__(self, program: str, options: list[str]) -> None:
        self._program = program
        self._judge = local.Program(program, options)
        self._has_service = local.has_service()

    def call(self, name: str, arguments: Json) -> str:
        tool: Callable[..., str] = getattr(self, name)  # TOOLS has the methods' names.
        return tool(**arguments)

    def evaluate(self, task: str, answer: str, options: Json | None = None) -> str:
        question = {"task": task, "answer": answer, **({"options": options} if options else {})}
        parse_question(question)
        judge = local.evaluate if self._has_service else self._judge.evaluate
        judged = judge(task, answer, options)
        head = f"outcome: {judged.outcome}\nreward: {json.dumps(judged.reward)}\n"
        return head + (f"\n{judged.feedback}" if judged.feedback else "")

    def check(self, source: str, arguments: list[str] | None = None) -> str:
        if len(source.encode(errors="replace")) > CHECK_TEXT_MAX:
            raise Invalid(f'"source" has at most {CHECK_TEXT_MAX} bytes')
        with tempfile.TemporaryDirectory(prefix="musacoder-mcp-") as folder:
            (Path(folder) / "program.cu").write_text(source, errors="replace")
            done = self._run("check", "program.cu", "--timeout", str(CHECK_S), "--",
                             *(arguments or []), cwd=folder)  # fmt: skip
        printed = f"{done.stderr}{done.stdout}exit code: {done.returncode}\n"
        return printed[-CHECKED_MAX:]

    def task(self, name: str | None = None) -> str:
        done = self._run("task", "list", "--json")
        if done.returncode != 0:
            raise OSError(done.stderr.strip())
        rows = {row["id"]: row for row in map(json.loads, done.stdout.splitlines())}
        if name is None:
            return "\n".join(rows)
        if name not in rows:
            raise Invalid(
                f"no task {json.dumps(name[:80])}: call task without a name for the names"
            )
        prompt: str = rows[name]["prompt"][-1]["content"]
        return prompt

    def explain(self, name: str) -> str:
        word = name.strip().strip("`")
        if not word or len(word) > 80 or not word.replace("_", "").replace(".", "").isalnum():
            raise Invalid('"name" is one word, such as illegal or run.aten')
        hint = self._run("explain", word)
        found = [hint.stdout.strip()] if hint.returncode == 0 else []
        found += manual_parts_with(word)
        if not found:
            raise Invalid(f"the manual has no {word}")
        return "\n\n".join(found)[:EXPLAINED_MAX]

    def _run(self, *words: str, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *words], capture_output=True, text=True, check=False, cwd=cwd,
            errors="replace", stdin=subprocess.DEVNULL,
        )  # fmt: skip


def manual_parts_with(word: str) -> list[str]:
    """The manual's paragraphs and rows that contain the word as code, with their pages."""
    found = []
    for page in PAGES:
        text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
        found += [f"{page}: {part}" for part in parts_of(text) if f"`{word}`" in part]
    return found


def parts_of(page: str) -> list[str]:
    """The parts of a page: paragraphs, and rows of tables and lists."""
    return [line.strip() for line in page.splitlines() if line.strip()]


def check_arguments(arguments: Any, schema: Json) -> Json:
    """Raises Invalid."""
    if not isinstance(arguments, dict):
        raise Invalid('"arguments" is an object')
    known: Json = schema["properties"]
    for name in schema["required"]:
        if name not in arguments:
            raise Invalid(f'"{name}" is missing')
    for name, value in arguments.items():
        if name not in known:
            raise Invalid(f"no argument {json.dumps(name[:80])}: it takes {', '.join(known)}")
        if not has_type(value, known[name]):
            raise Invalid(f'"{name}" is {WORDS[known[name]["type"]]}')
    return arguments


WORDS = {"string": "a text", "array": "a list of texts", "object": "an object"}


def has_type(value: Any, schema: Json) -> bool:
    if schema["type"] == "array":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, {"string": str, "object": dict}[schema["type"]])


# ---- Messages -----------------------------------------------------------------------------------


class Malformed(Exception):
    """The message does not follow the protocol."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def one_line(text: str) -> str:
    return " ".join(text.split())[:1000]


def result_of(text: str, *, is_error: bool) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


class Session:
    """The messages of one client.

    reply is called with each message to the client, by any thread.
    """

    def __init__(self, tools: Tools, reply: Callable[[Json], None]) -> None:
        self._tools = tools
        self._reply = reply
        self._pool = ThreadPoolExecutor(THREADS, "musacoder-call")
        self._lock = threading.Lock()
        self._open: set[str] = set()  # Ids of calls, as JSON.  Guarded by _lock.

    def take(self, line: bytes) -> None:
        """One message.  Its reply may come later."""
        number: Any = None
        try:
            message = parse(line)
            number = message.get("id")
            if "method" in message:
                self._handle(message["method"], number, message.get("params", {}))
        except Malformed as error:
            answer = {"code": error.code, "message": one_line(str(error))}
            self._reply({"jsonrpc": "2.0", "id": number, "error": answer})

    def close(self) -> None:
        """Waits for the calls that are open."""
        self._pool.shutdown()

    def _handle(self, method: str, number: Any, params: Any) -> None:
        if not isinstance(params, dict):
            raise Malformed(INVALID_PARAMS, '"params" is an object')
        if number is None:  # A notification has no reply.
            if method == "notifications/cancelled":
                with self._lock:
                    self._open.discard(json.dumps(params.get("requestId")))
        elif method == "initialize":
            self._answer(number, greeting(params.get("protocolVersion")))
        elif method == "ping":
            self._answer(number, {})
        elif method == "tools/list":
            self._answer(number, {"tools": [
                {"name": name, "description": description, "inputSchema": schema}
                for name, (description, schema) in TOOLS.items()
            ]})  # fmt: skip
        elif method == "tools/call":
            self._call(number, params)
        else:
            raise Malformed(NO_METHOD, f"no method {json.dumps(method[:80])}")

    def _answer(self, number: Any, result: Json) -> None:
        self._reply({"jsonrpc": "2.0", "id": number, "result": result})

    def _call(self, number: Any, params: Json) -> None:
        name = params.get("name")
        if not isinstance(name, str) or name not in TOOLS:
            text = f"no tool {json.dumps(name)[:80]}: there are {', '.join(TOOLS)}"
            raise Malformed(INVALID_PARAMS, text)
        key = json.dumps(number)
        with self._lock:
            if key in self._open:
                raise Malformed(INVALID_REQUEST, f"a call with the id {key[:80]} is open")
            if len(self._open) >= CALLS_MAX:
                raise Malformed(INVALID_REQUEST, f"{CALLS_MAX} calls are open: wait for one")
            self._open.add(key)
        self._pool.submit(self._run, number, key, name, params.get("arguments", {}))

    def _run(self, number: Any, key: str, name: str, arguments: Any) -> None:
        try:
            result = result_of(
                self._tools.call(name, check_arguments(arguments, TOOLS[name][1])), is_error=False
            )
        except (Invalid, ValueError, OSError) as error:  # Refused and Unreachable are among them.
            result = result_of(one_line(str(error)), is_error=True)
        with self._lock:
            if key not in self._open:  # It was cancelled.
                return
            self._open.discard(key)
        self._answer(number, result)


def greeting(protocol: Any) -> Json:
    return {
        "protocolVersion": protocol if protocol in PROTOCOLS else PROTOCOLS[-1],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "musacoder", "version": VERSION},
    }


def no_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are no JSON.


def parse(line: bytes) -> Json:
    """The message in a line.  Raises Malformed."""
    if len(line) > LINE_BYTES_MAX:
        raise Malformed(INVALID_REQUEST, f"a message has at most {LINE_BYTES_MAX} bytes")
    try:
        message = json.loads(line, parse_constant=no_constant)
    except (ValueError, RecursionError):
        raise Malformed(PARSE_ERROR, "a message is one line of JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Malformed(INVALID_REQUEST, 'a message is an object with "jsonrpc": "2.0"')
    if not isinstance(message.get("id"), (str, int, type(None))):
        raise Malformed(INVALID_REQUEST, '"id" is a text or a whole number')
    if not isinstance(message.get("method", ""), str):
        raise Malformed(INVALID_REQUEST, '"method" is a text')
    return message


def lines_of(stream: Any) -> Any:
    """The lines; a line that is too long is cut behind the limit, so that parse() refuses it."""
    while line := stream.readline(LINE_BYTES_MAX + 1):
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(1 << 20)):
            pass
        if line.strip():
            yield line


def main() -> int:
    parser = argparse.ArgumentParser(prog="musacoder mcp", allow_abbrev=False)
    parser.add_argument("--program", required=True)
    parser.add_argument("options", nargs="*", help="of musacoder eval, after --")
    arguments = parser.parse_args()
    lock = threading.Lock()

    def reply(message: Json) -> None:
        with lock, contextlib.suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    session = Session(Tools(arguments.program, arguments.options), reply)
    for line in lines_of(sys.stdin.buffer):
        session.take(line)
    session.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
