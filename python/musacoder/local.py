# SPDX-License-Identifier: Apache-2.0
"""This process's own verifier: `musacoder eval --stream` as a child process.

    judged = musacoder.evaluate(task=open("1_Square.py").read(), answer=completion)

musacoder.evaluate calls the services of $MUSACODER_URL if that is set.  Otherwise it starts the
program with the first question, and the program ends with the interpreter.  The program is
$MUSACODER, otherwise the package's own, otherwise `musacoder` on PATH; $MUSACODER_OPTIONS has its
options, such as `--backend cpu --jobs 2`.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import itertools
import json
import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Sequence

from musacoder import client, program
from musacoder.judged import Judged, Json, Options, Refused, Unreachable, judged_of, question_of

PROGRAM_VARIABLE = "MUSACODER"
OPTIONS_VARIABLE = "MUSACODER_OPTIONS"
END_S = 5.0  # A child that does not end in this time is killed.

Reply = concurrent.futures.Future[Json]


def find_program() -> str:
    """The program's path.  Raises Unreachable with advice."""
    given = os.environ.get(PROGRAM_VARIABLE, "").strip()
    own = None if given else program.own_program()
    found = own or shutil.which(given or "musacoder")
    if found is None:
        what = (
            f"${PROGRAM_VARIABLE} ({given}) is not a program" if given else "no musacoder on PATH"
        )
        raise Unreachable(
            f"{what}: set ${PROGRAM_VARIABLE} to the program, "
            f"or ${client.URL_VARIABLE} to the address of a service"
        )
    return found


class Child:
    """One process of the program, and its pending replies."""

    def __init__(self, command: list[str]) -> None:
        is_own = command[0] == program.own_program()
        # The child ignores Ctrl-C, which is for the interpreter.
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env=program.environment() if is_own else None,
        )  # fmt: skip
        self._numbers = itertools.count()
        self._waiting: dict[str, Reply] = {}  # Guarded by _lock, as the next one.
        self._has_ended = False
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        threading.Thread(target=self._read, name="musacoder-reader", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        return not self._has_ended

    def ask(self, question: Json) -> Reply:
        reply: Reply = concurrent.futures.Future()
        number = str(next(self._numbers))
        line = json.dumps({**question, "id": number}).encode() + b"\n"
        with self._lock:
            if self._has_ended:
                reply.set_exception(Unreachable("the program has ended"))
                return reply
            self._waiting[number] = reply
        stdin = self.process.stdin
        assert stdin is not None
        with self._write_lock, contextlib.suppress(OSError, ValueError):  # The reader sees the end.
            stdin.write(line)
            stdin.flush()
        return reply

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        with contextlib.suppress(ValueError):  # A line that is not JSON ends the child.
            for line in stdout:
                found = json.loads(line)
                with self._lock:
                    waiting = self._waiting.pop(str(found.get("id")), None)
                if waiting is not None and waiting.set_running_or_notify_cancel():
                    waiting.set_result(found)
        stdout.close()
        self.process.kill()
        code = self.process.wait()
        with self._lock:
            self._has_ended = True
            left, self._waiting = list(self._waiting.values()), {}
        for waiting in left:
            if waiting.set_running_or_notify_cancel():
                waiting.set_exception(
                    Unreachable(f"the program ended with {code}; its standard error has the reason")
                )

    def close(self) -> None:
        """Ends the process, and waits for its end."""
        with self._write_lock, contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        self.process.terminate()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Program:
    """The program as a verifier.  Safe for calls from several threads, and after a fork.

    path: the program's; None: find_program().
    options: those of `musacoder eval`; None: $MUSACODER_OPTIONS.
    """

    def __init__(self, path: str | None = None, options: Sequence[str] | None = None) -> None:
        words = shlex.split(os.environ.get(OPTIONS_VARIABLE, "")) if options is None else options
        self._command = [path or find_program(), "eval", "--stream", *words]
        if not any(word.startswith("--jobs") or word == "-j" for word in words):
            self._command += ["--jobs", str(os.cpu_count() or 1)]
        self._lock = threading.Lock()
        self._child: Child | None = None  # Guarded by _lock, as the next one.
        self._owner = os.getpid()
        atexit.register(self.close)

    def ask(self, question: Json) -> Reply:
        """Waits for the reply."""
        with self._lock:
            # A forked process has its parent's child, whose pipes it must not use.
            is_forked = self._owner != os.getpid()
            if self._child is None or is_forked or not self._child.is_alive:
                self._child = Child(self._command)
                self._owner = os.getpid()
            child = self._child
        return child.ask(question)

    def evaluate(
        self, task: str | dict[str, str], answer: str, options: Options | None = None
    ) -> Judged:
        """Judges one answer; arguments as of Client.evaluate.  Raises Refused and Unreachable."""
        return judged_of(self.ask(question_of(task, answer, options)).result())

    async def evaluate_async(
        self, task: str | dict[str, str], answer: str, options: Options | None = None
    ) -> Judged:
        question = question_of(task, answer, options)
        return judged_of(await asyncio.wrap_future(self.ask(question)))

    def close(self) -> None:
        """Ends the child; a later question starts another."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None and self._owner == os.getpid():
            child.close()


_lock = threading.Lock()
_program: Program | None = None


def shared_program() -> Program:
    """This process's shared program."""
    global _program
    with _lock:
        if _program is None:
            _program = Program()
        return _program


def has_service() -> bool:
    return bool(os.environ.get(client.URL_VARIABLE, "").strip())


def evaluate(task: str | dict[str, str], answer: str, options: Options | None = None) -> Judged:
    """Judges one answer: the whole completion, or a module.

    task: the code of a KernelBench-format module, a task's name ("kernelbench:1/19"), or
        {"id", "code"}.
    options: options that differ from the verifier's own, such as {"precision": "bf16"}.
    The services of $MUSACODER_URL judge, or a child of this process if it is not set.
    Raises Refused (the question is invalid) and Unreachable (no verifier can judge it).
    """
    if has_service():
        return client.evaluate(task, answer, options)
    return shared_program().evaluate(task, answer, options)


async def evaluate_async(
    task: str | dict[str, str], answer: str, options: Options | None = None
) -> Judged:
    """The same for asyncio."""
    if has_service():
        return await client.evaluate_async(task, answer, options)
    return await shared_program().evaluate_async(task, answer, options)
