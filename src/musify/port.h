// SPDX-License-Identifier: Apache-2.0
//
// The port of one source text between CUDA and MUSA.  It works on words without their meaning: it
// runs no preprocessor and resolves no names.  No result has been run on MUSA hardware.
//
// - Comments, docstrings and messages are not changed, nor are lines that MUSIFY_EXCL_LINE, or a
//   pair of MUSIFY_EXCL_START and MUSIFY_EXCL_STOP, excludes.
// - A name that the source defines is not changed, nor are its uses.
// - A construct without a counterpart makes the port fail: `refusals` has its position and reason.
// - A name of the source platform that no rule knows is a remnant: the port is partial.
//
// Example:
//   Port port = port_source(text, Language::kPython, rules, {});
//   if (port.status() == Port::Status::kRefused) report(port.refusals);
#ifndef MC_MUSIFY_PORT_H_
#define MC_MUSIFY_PORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "musify/rules.h"
#include "musify/words.h"

namespace mc::musify {

inline constexpr std::string_view kArchitectureDefault = "mp_31";

// The architectures that torch_musa knows.
std::vector<std::string> architectures();

struct Location {
  std::size_t line = 1;
  std::size_t column = 1;  // In bytes.
};

struct Change {
  Location location;
  std::string before;  // Empty for an insertion.
  std::string after;   // Empty for a removal.
  std::string rule;
};

struct Finding {
  Location location;
  std::string message;
  std::string rule;
};

// Information about the other files of the same run (musify/project.h).
struct Project {
  std::set<std::string, std::less<>> names;  // Names that the included files define.
  std::set<std::string, std::less<>> files;  // File names, without folders.
};

// The treatment of lines: removals may delete whole lines, or each line keeps its number.
enum class Lines : std::uint8_t { kMayGo, kStay };

struct PortOptions {
  std::string architecture{kArchitectureDefault};  // The architecture of MUSA, such as mp_22.
  Embedded embedded = Embedded::kUnits;  // C++ inside Python: ported too, or left unchanged.
  Lines lines = Lines::kMayGo;
  Project project;
};

struct Port {
  enum class Status : std::uint8_t { kUnchanged, kPorted, kPartial, kRefused };

  std::string text;
  std::vector<Change> changes;    // The changes, in the order of their positions.
  std::vector<Finding> refusals;  // All findings are in the order of their positions.
  std::vector<Finding> remnants;  // Empty if the text is refused.
  std::vector<Finding> warnings;
  Status status() const;
};

const char* name_of(Port::Status status);

// Ports `text` to the target of the rules.  A refused text is returned unchanged. REQUIRES:
// text.size() <= lex::kSourceBytesMax.
Port port_source(std::string_view text, Language language, const Rules& rules,
                 const PortOptions& options);

// A message of a compiler or a runtime, with its names ported to the target of the rules.
std::string port_message(std::string_view message, const Rules& rules);

// The first position at which porting the result back with `back`, the rules of the other
// direction, differs from `text`; empty if the port is reversible byte for byte.
std::optional<Location> first_loss(std::string_view text, const Port& port, Language language,
                                   const Rules& back, PortOptions options);

}  // namespace mc::musify

#endif  // MC_MUSIFY_PORT_H_
