# SPDX-License-Identifier: Apache-2.0
"""Makes a task from a user's module, and a module from its best kernel (docs/optimize.md).

This package never runs code of the user or of a model: it parses and writes texts.
"""
