#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the .ptx files of the tests from the .cu files beside them. Needs nvcc 13.0.
set -e
cd "$(dirname "$0")"
for source in *.cu; do
  nvcc -ptx -lineinfo -arch=compute_80 -I ../.. "$source" -o - |
    sed -E '/^\t\.file/s,"[^"]*/,",' > "${source%.cu}.ptx"
done
