# SPDX-License-Identifier: Apache-2.0
"""A resources server of NeMo Gym in front of the route /verify of `musacoder serve`.

It belongs into resources_servers/musacoder of NeMo Gym's checkout; its configs/musacoder.yaml is
that of example_tool_call_multireward with the names changed. A row has `responses_create_params`,
`verifier_metadata` (`task`, `options`?) and `agent_ref`; the recipe is
grpo_workplace_assistant_nemotron_nano_v2_9b.yaml. `reward_components` are `correct` and `speed`,
which add up to the reward; `memory` and `general` are members for metrics. /seed_session and
/close_session keep nothing; /aggregate_metrics is NeMo Gym's. GDPO:
`grpo.adv_estimator: {name: gdpo, reward_weights: [1.0, 1.0]}`.
"""

import os

import aiohttp
from nemo_gym.base_resources_server import (
    BaseMultiRewardVerifyResponse,
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    SimpleResourcesServer,
)


class KernelRequest(BaseVerifyRequest):
    verifier_metadata: dict


class KernelResponse(BaseMultiRewardVerifyResponse):
    correct: float
    speed: float
    memory: float
    general: float
    outcome: str
    feedback: str


class KernelServer(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    async def verify(self, body: KernelRequest) -> KernelResponse:
        token = os.environ.get("MUSACODER_TOKEN", "")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = os.environ["MUSACODER_URL"] + "/verify"
        async with aiohttp.ClientSession(headers=headers) as session:
            async with session.post(url, json=body.model_dump(mode="json")) as response:
                response.raise_for_status()
                return KernelResponse.model_validate(await response.json())


if __name__ == "__main__":
    KernelServer.run_webserver()
