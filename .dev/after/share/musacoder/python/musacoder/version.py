# SPDX-License-Identifier: Apache-2.0
"""The project's version.  CMakeLists.txt and pyproject.toml read it here."""

VERSION = "0.1.0"
