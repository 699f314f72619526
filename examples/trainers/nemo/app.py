# SPDX-License-Identifier: Apache-2.0
"""A resources server of NeMo Gym in front of the route /verify of `musacoder serve`.

Copy it to resources_servers/musacoder in NeMo Gym's checkout.
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
