# SPDX-License-Identifier: Apache-2.0
"""A module of the user's as a task, and its best kernel as a module (docs/optimize.md).

Nothing here runs code of the user's or of a model's: texts are parsed and written.
"""
