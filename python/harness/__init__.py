# SPDX-License-Identifier: Apache-2.0
"""The Python side of the judge and of the candidate process (docs/architecture.md)."""
