# SPDX-License-Identifier: Apache-2.0
"""A folder in which an agent writes one kernel (docs/workspace.md)."""
