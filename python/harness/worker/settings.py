# SPDX-License-Identifier: Apache-2.0
"""Values whose members are attributes, as tasks pass them to a model that wants a `config`.

KernelBook's tasks import `_mock_config` for this from a module of the tool that collected them.
"""

from __future__ import annotations

import argparse
import sys
from types import ModuleType, SimpleNamespace
from typing import Any


class Config(dict[Any, Any]):
    """A dict whose items are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


NAMESPACES = (SimpleNamespace, argparse.Namespace)


def provide() -> None:
    """Makes `from _paritybench_helpers import _mock_config` work."""
    module = ModuleType("_paritybench_helpers")
    setattr(module, "_mock_config", Config)
    sys.modules.setdefault(module.__name__, module)
