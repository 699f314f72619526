// SPDX-License-Identifier: Apache-2.0
//
// Bugs: edits of a solution at its recorded sites, each with the expected verdict, its cause and
// its fix.  The faults are data: those of a template are in its manifest, those of formulas in
// data/forge/templates/faults.json.  An expected verdict is confirmed only by a run of the bug
// (chunk.cc).
#ifndef MC_FORGE_MUTATE_H_
#define MC_FORGE_MUTATE_H_

#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/kernels.h"
#include "forge/random.h"

namespace mc::forge {

struct Bug {
  std::string kind;      // "off_by_one", "missing_syncthreads", …
  std::string expected;  // The name of the expected outcome: "compile", "runtime", "wrong".
  std::string cause;     // One sentence.
  std::string fix;       // One sentence.
  size_t offset = 0;     // The offset of the edit in the solution's CUDA text.
  size_t size = 0;       // The number of characters that are replaced.
  std::string text;      // The new characters.
  size_t shown = 0;      // The offset in `text` of the line that shows the bug.
};

// All bugs that are possible at the solution's sites for the task's sizes, in a fixed order.
std::vector<Bug> bugs_of(const TaskGraph& graph, const Solution& solution,
                         const TemplateLibrary& library);

// The CUDA text with the given bugs.  REQUIRES: they do not overlap.
std::string with_bugs(const Solution& solution, std::vector<Bug> bugs);

bool overlap(const Bug& one, const Bug& other);

}  // namespace mc::forge

#endif  // MC_FORGE_MUTATE_H_
