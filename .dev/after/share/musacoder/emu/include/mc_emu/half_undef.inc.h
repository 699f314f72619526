// SPDX-License-Identifier: Apache-2.0
// Ends what half_type.inc.h was told, so that it can be told again.  No guard.
#undef MC_T
#undef MC_T2
#undef MC_RAW
#undef MC_RAW2
#undef MC_OTHER
#undef MC_NAME
#undef MC_NAME2
#undef MC_REPEATED
#undef MC_FORMAT
#undef MC_CONVERSIONS
#undef MC_OPERATORS
#undef MC_OPERATORS2
