# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scatter_add_kernel(
    index_ptr, message_ptr, out_ptr, edges, features, EDGES: tl.constexpr, FEATURES: tl.constexpr
):
    edge = tl.program_id(0) * EDGES + tl.arange(0, EDGES)
    feature = tl.arange(0, FEATURES)
    node = tl.load(index_ptr + edge, mask=edge < edges, other=0)
    inside = (edge[:, None] < edges) & (feature[None, :] < features)
    message = tl.load(message_ptr + edge[:, None] * features + feature[None, :], mask=inside)
    target = out_ptr + node[:, None] * features + feature[None, :]
    tl.atomic_add(target, message, mask=inside, sem="relaxed")


class ModelNew(nn.Module):
    def forward(
        self, nodes: torch.Tensor, index: torch.Tensor, messages: torch.Tensor
    ) -> torch.Tensor:
        out = nodes.contiguous().clone()
        index, messages = index.contiguous(), messages.contiguous()
        edges, features = messages.shape
        scatter_add_kernel[(triton.cdiv(edges, 16),)](
            index,
            messages,
            out,
            edges,
            features,
            EDGES=16,
            FEATURES=triton.next_power_of_2(features),
        )
        return out
