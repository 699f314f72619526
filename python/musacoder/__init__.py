# SPDX-License-Identifier: Apache-2.0
"""MooreEval's reward where Python programs can call it (docs/serve.md).

    musacoder.client       evaluate(task, answer) -> Judged, and the same for asyncio
    musacoder.verl         compute_score, as verl loads it
    musacoder.slime        reward, generate and post_process_rewards, as slime loads them
    musacoder.kernelbench  eval_kernel_against_ref, shaped like KernelBench's
    musacoder.server       the service itself (`musacoder serve`; needs aiohttp)

All but the server need the standard library alone.
"""

from musacoder.client import Client, Judged, Refused, Unreachable, evaluate, evaluate_async

__all__ = ["Client", "Judged", "Refused", "Unreachable", "evaluate", "evaluate_async"]
