# SPDX-License-Identifier: Apache-2.0
"""The package torch_musa for a recorder, which has no device: MUSA's names for cuda_on_cpu.py.

A recorder of the MUSA backend runs modules that import torch_musa. The package needs a driver, so
this stand-in replaces it even if it is installed.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace

import torch
from torch.utils.backend_registration import rename_privateuse1_backend

_PACKAGE = "torch_musa"


def builder_named(name: str) -> ModuleType:
    """The module that builds extensions, with a stand-in for its package if there is one."""
    if name.partition(".")[0] == _PACKAGE:
        _install(name)
    return importlib.import_module(name)


def device_of(builder: ModuleType) -> torch.device:
    """The device for whose candidates the module builds."""
    is_musa = builder.__name__.partition(".")[0] == _PACKAGE
    return torch.device("musa", 0) if is_musa else torch.device("cuda", 0)


def _install(builder: str) -> None:
    rename_privateuse1_backend("musa")
    parts = builder.split(".")
    modules = [ModuleType(".".join(parts[: end + 1])) for end in range(len(parts))]
    for outer, inner in zip(modules, modules[1:]):
        setattr(outer, inner.__name__.rpartition(".")[2], inner)
    sys.modules.update({module.__name__: module for module in modules})
    setattr(torch, "musa", torch.cuda)
    sys.modules["torch.musa"] = torch.cuda
    setattr(torch.backends, "mudnn", SimpleNamespace(allow_tf32=False, enabled=True))
    setattr(torch.Tensor, "musa", torch.Tensor.cuda)
    setattr(torch.Tensor, "is_musa", property(lambda tensor: tensor.is_cuda))
    setattr(torch.nn.Module, "musa", lambda module, *_: module)
