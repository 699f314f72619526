# SPDX-License-Identifier: Apache-2.0
"""MooreEval's verdict and reward for Python programs (docs/serve.md).

    evaluate, evaluate_async   by a service ($MUSACODER_URL), or by a child of this process
    Client, AsyncClient        one or more services
    Program                    a child, with options
    musacoder.trl              reward, as TRL calls it
    musacoder.openenv          the environment for OpenEnv (`musacoder[openenv]`)
    musacoder.verl             compute_score, as verl loads it
    musacoder.slime            reward, generate and post_process_rewards, as slime loads them
    musacoder.components       the parts of a reward, for hosts that name them
    musacoder.kernelbench      eval_kernel_against_ref, shaped like KernelBench's
    musacoder.mcp              tools for coding agents (`musacoder mcp`)
    musacoder.server           the service itself (`musacoder serve`; needs aiohttp)

Evaluation, Client and Program need only the standard library.
"""

from musacoder.async_client import AsyncClient
from musacoder.client import Client
from musacoder.judged import Judged, Refused, Unreachable
from musacoder.local import Program, evaluate, evaluate_async
from musacoder.version import VERSION as __version__

__all__ = [
    "AsyncClient",
    "Client",
    "Judged",
    "Program",
    "Refused",
    "Unreachable",
    "__version__",
    "evaluate",
    "evaluate_async",
]
