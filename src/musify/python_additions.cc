// SPDX-License-Identifier: Apache-2.0
#include "musify/python_additions.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "musify/apply_rules.h"

namespace mc::musify {
namespace {

using Kind = Word::Kind;
using Words = std::vector<Word>;

constexpr const char* kArchitecture = "python.architecture";
constexpr const char* kImport = "python.import";
constexpr std::size_t kImportWordsMax = 256;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

// The keyword argument `name` of the call to which the argument at `at` belongs.
std::size_t sibling(const Words& words, std::size_t at, std::string_view name) {
  std::ptrdiff_t depth = 0;
  std::size_t begin = at;
  for (; begin > 0; --begin) {
    if (closes_bracket(words, begin - 1)) ++depth;
    if (opens_bracket(words, begin - 1) && --depth < 0) break;
  }
  depth = 0;
  for (std::size_t i = begin; i < words.size() && depth >= 0; ++i) {
    if (depth == 0 && is_name(words, i, name) && is_mark(words, i + 1, "=")) return i;
    if (opens_bracket(words, i)) ++depth;
    if (closes_bracket(words, i)) --depth;
  }
  return kNowhere;
}

bool is_argument(const Words& words, std::size_t i, std::string_view name) {
  return is_name(words, i, name) && is_mark(words, i + 1, "=") && i > 0 &&
         (is_mark(words, i - 1, "(") || is_mark(words, i - 1, ","));
}

bool names_architecture(const Words& words, std::size_t list, const std::string& flag) {
  for (std::size_t i = list; i < words.size() && !is_mark(words, i, "]"); ++i) {
    if (words[i].kind == Kind::kString && words[i].text.starts_with(flag)) return true;
  }
  return false;
}

bool is_import_of_torch(const Words& words, std::size_t i) {
  return (i == 0 || ends_line(words, i - 1)) &&
         (is_name(words, i, "import") || is_name(words, i, "from")) &&
         is_name(words, i + 1, "torch");
}

std::size_t line_start(std::string_view text, std::size_t offset) {
  const std::size_t before = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  return before == std::string_view::npos ? 0 : before + 1;
}

// The first statement `import torch`; if there is none, the first import from torch.
std::size_t first_import(const Words& words) {
  std::size_t found = kNowhere;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_import_of_torch(words, i)) continue;
    if (is_name(words, i, "import") && ends_line(words, i + 2)) return i;
    if (found == kNowhere) found = i;
  }
  return found;
}

// True where the name at `i` begins an item of a statement `import a.b as c, d`.
bool is_in_import(const Words& words, std::size_t i) {
  if (i > 0 && !is_mark(words, i - 1, ",") && !is_name(words, i - 1, "import")) return false;
  const std::size_t first = i - std::min(i, kImportWordsMax);
  while (i > first + 1 && !is_name(words, i - 1, "import") &&
         (words[i - 1].kind == Kind::kName || is_mark(words, i - 1, ",") ||
          is_mark(words, i - 1, "."))) {
    --i;
  }
  return i > 0 && is_name(words, i - 1, "import") &&
         (i == 1 || ends_line(words, i - 2) || is_mark(words, i - 2, ";") ||
          is_mark(words, i - 2, ":"));
}

}  // namespace

std::vector<Finding> add_architecture(const Words& words, const Rules& rules,
                                      const std::string& architecture, Edits& edits) {
  std::vector<Finding> warnings;
  const std::string flag = "\"" + rules.architecture_flag + architecture + "\"";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_argument(words, i, "cuda_sources")) continue;
    const std::size_t flags = sibling(words, i, "extra_cuda_cflags");
    if (flags == kNowhere) {
      edits.insert(words[i].offset, "extra_musa_cflags=[" + flag + "], ", kArchitecture);
    } else if (!is_mark(words, flags + 2, "[")) {
      warnings.push_back({edits.location_of(words[flags].offset),
                          "the flags are no list here: add " + flag + " to them", kArchitecture});
    } else if (!names_architecture(words, flags + 2, rules.architecture_flag)) {
      const bool is_empty = is_mark(words, flags + 3, "]");
      edits.insert(words[flags + 2].end(), flag + (is_empty ? "," : ", "), kArchitecture);
    }
  }
  return warnings;
}

void add_import(std::string_view text, const Words& words, Edits& edits) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (is_name(words, i, "import") && is_name(words, i + 1, "torch_musa")) return;
  }
  const std::size_t found = first_import(words);
  if (found == kNowhere) return;
  std::size_t end = found;
  while (!ends_line(words, end)) ++end;
  if (end == words.size()) return;
  const std::size_t start = line_start(text, words[found].offset);
  const std::string indent(text.substr(start, words[found].offset - start));
  const bool has_return = words[end].offset > 0 && text[words[end].offset - 1] == '\r';
  edits.insert(words[end].end(), indent + "import torch_musa" + (has_return ? "\r\n" : "\n"),
               kImport);
}

void remove_architecture(const Words& words, const Rules& rules, Edits& edits) {
  for (std::size_t i = 0; i + 6 < words.size(); ++i) {
    if (!is_argument(words, i, "extra_musa_cflags") || !is_mark(words, i + 2, "[")) continue;
    const Word& flag = words[i + 3];
    if (flag.kind != Kind::kString || !flag.text.starts_with(rules.architecture_flag)) continue;
    if (is_mark(words, i + 4, "]") && is_mark(words, i + 5, ",") &&
        is_name(words, i + 6, "musa_sources")) {
      edits.replace(words[i].offset, words[i + 6].offset - words[i].offset, "", kArchitecture);
    } else {
      const Removal removal = removal_of(words, i + 3, i + 3);
      edits.replace(removal.begin, removal.end - removal.begin, "", kArchitecture);
    }
  }
}

namespace {

bool is_whole_name(const Words& words, std::size_t i) {
  return ends_line(words, i + 1) || is_mark(words, i + 1, ",") || is_mark(words, i + 1, ";");
}

void remove_import_at(std::string_view text, const Words& words, std::size_t i, Edits& edits) {
  const bool is_alone = is_name(words, i - 1, "import") && !is_mark(words, i + 1, ",");
  if (!is_alone) {
    const Removal removal = removal_of(words, i, i);
    edits.replace(removal.begin, removal.end - removal.begin, "", kImport);
  } else if (!ends_line(words, i + 1) || i + 1 == words.size()) {
    edits.replace(words[i - 1].offset, words[i].end() - words[i - 1].offset, "pass", kImport);
  } else {
    const std::size_t start = line_start(text, words[i - 1].offset);
    edits.replace(start, words[i + 1].end() - start, "", kImport);
  }
}

// The end of a call such as `importlib.import_module("torch_musa")` at `i`; `i` if there is none.
std::size_t end_of_import_call(const Words& words, std::size_t i) {
  std::size_t open = i;
  if (is_name(words, i, "__import__")) open = i + 1;
  if (is_name(words, i, "importlib")) {
    while (is_mark(words, open + 1, ".") && open + 2 < words.size()) open += 2;
    ++open;
    const bool is_known =
        is_name(words, open - 1, "import_module") || is_name(words, open - 1, "find_spec");
    if (!is_known) return i;
  }
  const bool is_call = open > i && is_mark(words, open, "(") && is_mark(words, open + 2, ")") &&
                       words[open + 1].kind == Kind::kString &&
                       words[open + 1].text == "torch_musa";
  return is_call ? open + 3 : i;
}

// Replaces calls that import torch_musa, and `import importlib` if nothing else needs it.
void change_import_calls(const Words& words, Edits& edits) {
  std::vector<std::size_t> imports;  // The positions that import importlib itself.
  std::size_t calls = 0;
  std::size_t others = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (const std::size_t end = end_of_import_call(words, i); end > i) {
      edits.replace(words[i].offset, words[end - 1].end() - words[i].offset, "torch.cuda", kImport);
      ++calls;
      i = end - 1;
    } else if (is_name(words, i, "importlib")) {
      if (is_in_import(words, i)) {
        imports.push_back(i);
      } else {
        ++others;
      }
    }
  }
  if (others > 0 || calls == 0) return;
  for (const std::size_t i : imports) {
    std::size_t last = i;
    while (is_mark(words, last + 1, ".") && last + 2 < words.size()) last += 2;
    edits.replace(words[i].offset, words[last].end() - words[i].offset, "torch", kImport);
  }
}

bool means_torch_musa(const Word& word) {
  return word.kind == Kind::kName && (word.text == "torch_musa" || word.module == "torch_musa");
}

// Changes members that torch has and torch.cuda lacks: torch_musa.utils and torch_musa.__version__.
void change_members(const Words& words, Edits& edits) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (!means_torch_musa(words[i])) continue;
    const bool is_version = is_mark(words, i + 1, ".") && is_name(words, i + 2, "__version__");
    const bool is_utils =
        is_mark(words, i + 1, ".") && is_name(words, i + 2, "utils") && !is_mark(words, i + 3, ".");
    const bool is_import = i > 0 && is_name(words, i - 1, "from") &&
                           is_name(words, i + 1, "import") && is_name(words, i + 2, "utils") &&
                           !is_mark(words, i + 3, ",");
    if (is_version || is_utils || is_import) {
      edits.replace(words[i].offset, words[i].size, "torch", kImport);
    }
  }
}

}  // namespace

void remove_import(std::string_view text, const Words& words, Lines lines, Edits& edits) {
  if (lines == Lines::kStay) {
    change_import_calls(words, edits);
    change_members(words, edits);
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!is_name(words, i, "torch_musa") || !is_in_import(words, i)) continue;
    if (is_name(words, i + 1, "as")) {
      edits.replace(words[i].offset, words[i].size, "torch.cuda", kImport);
    } else if (is_whole_name(words, i) && lines == Lines::kMayGo) {
      remove_import_at(text, words, i, edits);
    } else if (is_whole_name(words, i)) {
      edits.replace(words[i].offset, words[i].size, "torch.cuda as torch_musa", kImport);
    }
  }
}

}  // namespace mc::musify
