# SPDX-License-Identifier: Apache-2.0
"""Verifies the forge's own tasks and kernels in bulk.

  verify.py --emu-lib PATH --shim PATH --policy policy/musacoder.json

One process imports torch once and answers JSON lines on its standard input, a line each:

  {"source", "seed", "probe", "tests", "explains", "solutions": [S]}
     S = {"source", "cuda", "library": {"path", "module"}, "function"}: the module, the CUDA
     text that was compiled for it, where, and by what name its function `f` is found there
  -> {"gate": [text], "tests": [the reference passes], "begun": B, "given": [T], "runs": [R]}
     B and T are the judge's answers to `begin` and to `trial` (harness/worker/protocol.json)
     R = {"events": [E], "died": {"is_late", "signal", "exit_code"} or null, "report": [text]}
     E = {"at": stage, "reply"}, and of "forward" also "index", "report", and the judge's "check"
         where it compared. The report of R is what came after the last event.

Judge and candidate are those of MooreEval (harness/judge, harness/candidate), with the same
trials, comparison and emulator; what is left out is the sandbox and the processes apart, since what
the forge wrote is not hostile. Each solution runs in a fork of its own, so a crash hurts no other.
What is concluded of a run is not decided here (src/forge/conclude.h).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import logging
import os
import select
import signal
import socket
import struct
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
sys.path[:] = [str(Path(__file__).resolve().parent.parent.parent)] + sys.path[1:]

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it, too, and without a traceback.

import torch  # noqa: E402

torch.set_num_threads(1)
# Python 3.12 warns of each fork beside a thread; those of PyTorch hold no lock meanwhile.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
# The other one also asks where it was called from, for a GPU that might come: a third of the time.
setattr(torch, "manual_seed", torch.default_generator.manual_seed)
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # No CUDA is no news.

from dataclasses import replace  # noqa: E402

from torch.utils import cpp_extension  # noqa: E402, F401

from harness.candidate import process  # noqa: E402
from harness.candidate.aten import AtenRecorder  # noqa: E402
from harness.candidate.emulator import DEVICE, Emulator  # noqa: E402
from harness.forge.gate import (  # noqa: E402
    complaints,
    complaints_of_other_values,
    passes_unit_test,
)
from harness.judge.judge import Judge  # noqa: E402
from harness.worker import region  # noqa: E402
from harness.worker.place import HOST_PLACE  # noqa: E402
from harness.worker.wire import Channel, Json, Question, describe  # noqa: E402

RUN_S = 20  # The limit of one solution, all trials together.


class _CandidateProcess(process.CandidateProcess):
    """Finds its extension in a library that many solutions share."""

    def serve(self, solution: Json, is_guarded: bool) -> None:
        self._solution = solution
        self._is_guarded = is_guarded

    def _end_init(self) -> None:
        if self._is_guarded:
            super()._end_init()

    def _find(self, extension: Json) -> ModuleType:
        if [text.strip() for text in extension["cuda_sources"]] != [self._solution["cuda"].strip()]:
            raise RuntimeError("the module asks for other source than was compiled")
        library = self._solution["library"]
        name = str(library["module"])
        module = process._import(name, name, str(library["path"]))
        function = getattr(module, str(self._solution["function"]))
        return SimpleNamespace(f=function)  # type: ignore[return-value]


class _Report:
    """The emulator's findings (emu/runtime/report.h): both ends are ours."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        key = os.urandom(32)
        self._ours.send(key)
        first, second, weight, offset = struct.unpack("<4Q", key)
        self._lead = f'{{"key":"{first:016x}{second:016x}",'.encode()
        self.weight, self.offset = weight | 1, offset
        self._lines: list[str] = []

    def next_call(self) -> list[str]:
        """What came up to the end of a call, and no more: the fork may be ahead of its messages."""
        self._receive()
        for number, line in enumerate(self._lines):
            if '"call":' in line:
                return self._taken(number + 1)
        return []

    def rest(self) -> list[str]:
        self._receive()
        return self._taken(len(self._lines))

    def _taken(self, count: int) -> list[str]:
        taken, self._lines = self._lines[:count], self._lines[count:]
        return taken

    def _receive(self) -> None:
        # A fork that died may have left the connection with something unread.
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            while line := self._ours.recv(4096, socket.MSG_DONTWAIT):
                self._lines.append("{" + line.removeprefix(self._lead).decode("utf-8", "replace"))


class _Prepared:
    """A task that was opened, and the trials that all of its solutions get."""

    def __init__(self, source: str, seed: int, explains: bool) -> None:
        self.judge = Judge()
        options = {"specials": False, "explains": explains}
        self.judge.answer(Question({"op": "open", "source": source, "options": options}))
        self.begun = self.judge.answer(Question({"op": "begin", "seed": seed})).body
        self.plan = self.begun["plan"]
        shapes = sorted({trial["shape"] for trial in self.plan["trials"]})
        # In the order in which a judge is asked: weights first, as they are built.
        self.inits = {s: self.judge.answer(Question({"op": "init", "shape": s})) for s in shapes}
        self.asked: list[Json] = []  # The judge's answer for each trial.
        for index in range(len(self.plan["trials"])):
            answer = self.judge.answer(Question({"op": "trial", "index": index}))
            self.asked.append(answer.body)
            for descriptor in answer.descriptors:
                os.close(descriptor)
        assert self.judge._opened is not None
        self.given = list(self.judge._opened.given.values())
        self.judge._opened.given.clear()

    def regions(self) -> list[tuple[Json, int]]:
        """Each trial's inputs once more, for one solution: it may write to them."""
        return [region.pack(given.outcome.inputs) for given in self.given]

    def check(self, trials: list[tuple[Json, int]], question: Question, report: _Report) -> Json:
        """What the judge says of one call's outputs."""
        body = question.body
        index, reply = body["index"], body["reply"]
        tree, descriptor = trials[index]
        given = replace(
            self.given[index], trees=region.tensor_nodes(tree), descriptor=os.dup(descriptor)
        )
        assert self.judge._opened is not None
        self.judge._opened.given[index] = given  # The judge forgets it with the check.
        calls = [json.loads(line) for line in body["report"] if '"call":' in line]
        digest = {"weight": report.weight, "offset": report.offset}
        digest["value"] = calls[-1]["digest"] if calls else ""
        asked = {"op": "check", "index": index, "digest": digest}
        asked.update(outputs=reply["outputs"], buffers=reply["buffers"])
        return _ok(self.judge.answer(Question(asked, question.descriptors)).body)

    def close(self) -> None:
        for answer in self.inits.values():
            for descriptor in answer.descriptors:
                os.close(descriptor)
        assert self.judge._opened is not None
        for given in [*self.given, *self.judge._opened.given.values()]:
            os.close(given.descriptor)


class _Verifier:
    def __init__(self, emulator: Emulator, policy: Json) -> None:
        self._emulator = emulator
        operators: list[str] = policy["operators"]
        self._operators = operators
        self._init_operators: list[str] = policy["init_operators"]
        self._allowed = {"aten::" + name for name in operators}
        self._recorder = AtenRecorder(emulator.shim)

    def task(self, body: Json) -> Json:
        try:
            prepared = _Prepared(str(body["source"]), int(body["seed"]), bool(body["explains"]))
        except BaseException as error:
            return {"gate": [f"does not run: {type(error).__name__}: {error}"], "runs": []}
        try:
            with torch.no_grad():
                gate = complaints(prepared.judge, body.get("probe"))
                gate = gate or complaints_of_other_values(prepared.judge)
                case = prepared.judge._opened
                assert case is not None
                tests = [not gate and passes_unit_test(case.task, test) for test in body["tests"]]
            solutions = [] if gate else body["solutions"]
            runs = [self._run_of(prepared, one) for one in solutions]
            made: Json = {"gate": gate, "tests": tests, "begun": _ok(prepared.begun)}
            return {**made, "given": [_ok(one) for one in prepared.asked], "runs": runs}
        finally:
            prepared.close()

    def _run_of(self, prepared: _Prepared, solution: Json) -> Json:
        """Taking the operators that it may not call from a fork costs more than all else that it
        does, and changes nothing for a solution that calls none of them.
        """
        run = self._in_fork(prepared, solution, is_guarded=False)
        if self._keeps_to_operators(run):
            return run
        return self._in_fork(prepared, solution, is_guarded=True)

    def _keeps_to_operators(self, run: Json) -> bool:
        replies = [one["reply"] for one in run["events"] if one["at"] == "forward"]
        if run["died"] or not all(reply["ok"] for reply in replies):
            return False
        called = {name for reply in replies for name in reply["aten"]}
        return called <= self._allowed

    def _in_fork(self, prepared: _Prepared, solution: Json, is_guarded: bool) -> Json:
        """What the fork tells, and what the judge, who stays here, says of its outputs."""
        report = _Report()
        ours, theirs = socket.socketpair()
        trials = prepared.regions()
        child = os.fork()
        if child == 0:
            self._run_child(prepared, trials, solution, is_guarded, report, theirs)
        theirs.close()
        report.theirs.close()
        channel = Channel(ours.detach())
        run: Json = {"events": [], "died": None}
        is_late = False
        try:
            while question := _next(channel):
                event = question.body
                if event["at"] == "forward":
                    event["report"] = report.next_call()
                    if event["reply"]["ok"] and not event["reply"]["sticky"]:
                        event["check"] = prepared.check(trials, question, report)
                for descriptor in question.descriptors:
                    os.close(descriptor)
                run["events"].append(event)
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            is_late = True
        _, status = os.waitpid(child, 0)
        if status or is_late:
            run["died"] = {"is_late": is_late, "signal": status & 127, "exit_code": status >> 8}
        run["report"] = report.rest()
        for _, descriptor in trials:
            os.close(descriptor)
        return run

    def _run_child(
        self,
        prepared: _Prepared,
        trials: list[tuple[Json, int]],
        solution: Json,
        is_guarded: bool,
        report: _Report,
        theirs: socket.socket,
    ) -> NoReturn:
        status = 1
        try:
            null = os.open("/dev/null", os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            # One worker, since samples quote findings and a seed gives the same samples each time.
            self._emulator.start(report.theirs.fileno(), workers=1)
            self._run(prepared, trials, solution, is_guarded, Channel(theirs.detach()))
            status = 0
        finally:
            os._exit(status)

    def _run(
        self,
        prepared: _Prepared,
        trials: list[tuple[Json, int]],
        solution: Json,
        is_guarded: bool,
        channel: Channel,
    ) -> None:
        place = replace(HOST_PLACE, device=DEVICE)
        one = _CandidateProcess(self._emulator, place, self._recorder)
        one.serve(solution, is_guarded)
        allowed = {"device_allowed": self._operators, "host_allowed": self._operators}
        allowed["init_allowed"] = self._operators + self._init_operators
        load = {"op": "load", "source": solution["source"], "artifacts": {}}
        load["policy"] = {"name": "musacoder", **allowed}
        load["schedule_seed"] = solution.get("schedule_seed", 0)
        reply = _ask(one, load, ())[0]
        channel.send({"at": "load", "reply": reply})
        if not reply["ok"]:
            return
        for shape, init in prepared.inits.items():
            build = {**init.body, "op": "build", "shape": shape}
            reply = _ask(one, build, init.descriptors)[0]
            channel.send({"at": "init", "reply": reply})
            if not reply["ok"]:
                return
        for plan, (tree, descriptor) in zip(prepared.plan["trials"], trials):
            run = {"op": "run", "shape": plan["shape"], "inputs": tree}
            run["written"] = prepared.asked[plan["index"]]["written"]
            reply, descriptors = _ask(one, run, [descriptor])
            channel.send({"at": "forward", "index": plan["index"], "reply": reply}, descriptors)
            if reply["sticky"] if reply["ok"] else plan["shape"] == 0:
                return  # No later call tells more.


def _next(channel: Channel) -> Question | None:
    """The fork's next message; None where it ended. Raises TimeoutError after RUN_S."""
    if not select.select([channel.fileno()], [], [], RUN_S)[0]:
        raise TimeoutError
    try:
        return channel.receive()
    except (EOFError, ConnectionError):
        return None


def _ask(one: Any, body: Json, descriptors: Any) -> tuple[Json, list[int]]:
    """The answer as a candidate process would send it, and the descriptors that go with it."""
    try:
        answer = one.answer(Question(body, [os.dup(descriptor) for descriptor in descriptors]))
        return _ok(answer.body), answer.descriptors
    except BaseException as error:
        return {"ok": False, "error": describe(error)}, []


def _ok(body: Json) -> Json:
    return {"ok": True, **body}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--emu-lib", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--sandbox-lib", required=True)
    arguments = parser.parse_args()
    policy = json.loads(arguments.policy.read_text())
    verifier = _Verifier(Emulator.load(arguments.emu_lib, arguments.shim), policy)
    # Forking is most of the work: what is shared with the forks stays as it is, in large pages.
    gc.collect()
    gc.freeze()
    ctypes.CDLL(arguments.sandbox_lib).mc_sandbox_compact_memory()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(verifier.task(json.loads(line))), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
