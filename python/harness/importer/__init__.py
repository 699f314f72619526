# SPDX-License-Identifier: Apache-2.0
"""Tasks from code that others wrote: `musacoder import` and `musacoder task operators`."""
