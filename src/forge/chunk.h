// SPDX-License-Identifier: Apache-2.0
//
// Chunk: several tasks that are created and verified together, as JSON with all rows of the data
// sets.
#ifndef MC_FORGE_CHUNK_H_
#define MC_FORGE_CHUNK_H_

#include <string>

#include "forge/batch.h"
#include "forge/library.h"
#include "forge/run.h"

namespace mc::forge {

// {"tasks": [{"id", "source", "structure", "split", "sft": [row], "row", "unit_tests": row or null,
//             "counts": {name: n}}],
//  "rejected": {reason: n}, "errors": [a solution of the forge that does not compile]}.
Result<std::string> make_chunk(const Settings& settings, const Library& library, int number,
                               const Verify& verify, double audit_share, task::Evaluator& auditor);

}  // namespace mc::forge

#endif  // MC_FORGE_CHUNK_H_
