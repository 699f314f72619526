# SPDX-License-Identifier: Apache-2.0
"""Tasks from existing code: `musacoder import` and `musacoder task operators`."""
