# SPDX-License-Identifier: Apache-2.0
"""Tasks in the form of Harbor (docs/trainers.md)."""
