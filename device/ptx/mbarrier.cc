// SPDX-License-Identifier: Apache-2.0
#include "ptx/mbarrier.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>
#include <vector>

namespace mc::ptx {
namespace {

constexpr size_t kStatementMax = 400;  // Characters, so that long texts take no long time.
constexpr std::string_view kName = "mbarrier";
constexpr std::string_view kRegisters =
    "{ .reg .b64 %mc_word, %mc_state; .reg .b32 %mc_count, %mc_phase, %mc_other; ";
// Words of instructions that change nothing for one block.
constexpr std::string_view kPlainWords[] = {"arrive",  "noComplete", "release", "acquire",
                                            "relaxed", "cta",        "cluster", "parity",
                                            "noinc",   "shared",     "b64",     "shared::cta"};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

struct Statement {
  std::string guard;
  std::vector<std::string> words;  // The opcode and its modifiers.
  std::vector<std::string> operands;

  bool has(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }
  std::string space() const { return has("shared") || has("shared::cta") ? ".shared" : ""; }
};

Statement read(std::string_view text) {
  Statement statement;
  std::istringstream stream{std::string(text)};
  std::string opcode, operands;
  stream >> opcode;
  if (opcode.starts_with('@')) {
    statement.guard = opcode;
    stream >> opcode;
  }
  std::getline(stream, operands, '\0');
  statement.words = split(opcode, '.');
  statement.operands = split(operands, ',');
  return statement;
}

using Lines = std::vector<std::string>;

Lines arrival(const Statement& one, const std::string& state, const std::string& address,
              const std::string& count) {
  return {"mov.u32 %mc_count, " + count, "cvt.u64.u32 %mc_word, %mc_count",
          "shl.b64 %mc_word, %mc_word, 32",
          "atom.release.cta" + one.space() + ".add.u64 " + state + ", " + address + ", %mc_word"};
}

Lines wait(const Statement& one) {
  const std::vector<std::string>& given = one.operands;
  Lines lines = {"ld.acquire.cta" + one.space() + ".b64 %mc_word, " + given[1],
                 "cvt.u32.u64 %mc_count, %mc_word", "shr.u64 %mc_word, %mc_word, 32",
                 "cvt.u32.u64 %mc_phase, %mc_word", "div.u32 %mc_phase, %mc_phase, %mc_count"};
  const Lines by_parity = {"and.b32 %mc_phase, %mc_phase, 1", "mov.u32 %mc_other, " + given[2]};
  const Lines by_state = {"shr.u64 %mc_state, " + given[2] + ", 32",
                          "cvt.u32.u64 %mc_other, %mc_state",
                          "div.u32 %mc_other, %mc_other, %mc_count"};
  const Lines& last = one.has("parity") ? by_parity : by_state;
  lines.insert(lines.end(), last.begin(), last.end());
  lines.push_back("setp.ne.u32 " + given[0] + ", %mc_phase, %mc_other");
  return lines;
}

// Nothing for an instruction that stays.
std::optional<Lines> lines_of(const Statement& one) {
  const std::vector<std::string>& words = one.words;
  const bool is_copy = words.size() > 3 && words[0] == "cp" && words[1] == "async" &&
                       words[2] == kName && words[3] == "arrive";
  if (!is_copy && (words.size() < 2 || words[0] != kName)) return std::nullopt;
  const bool is_plain = std::all_of(words.begin() + (is_copy ? 3 : 2), words.end(), [](auto& word) {
    return std::ranges::find(kPlainWords, word) != std::end(kPlainWords);
  });
  const size_t count = one.operands.size();
  if (!is_plain || count == 0) return std::nullopt;
  if (is_copy) {
    // Without noinc the object expects one arrival more.
    Lines lines = {"cp.async.wait_all"};
    if (!one.has("noinc")) return lines;
    std::ranges::copy(arrival(one, "_", one.operands[0], "1"), std::back_inserter(lines));
    return lines;
  }
  const std::string& kind = words[1];
  if (kind == "inval") return Lines{};
  if (kind == "init" && count == 2) {
    return Lines{"mov.u32 %mc_count, " + one.operands[1], "cvt.u64.u32 %mc_word, %mc_count",
                 "st" + one.space() + ".b64 " + one.operands[0] + ", %mc_word"};
  }
  if (kind == "arrive" && count >= 2) {
    return arrival(one, one.operands[0], one.operands[1], count > 2 ? one.operands[2] : "1");
  }
  if ((kind == "test_wait" || kind == "try_wait") && count >= 3) return wait(one);
  return std::nullopt;
}

}  // namespace

std::string without_mbarriers(std::string_view text) {
  std::string whole;
  size_t done = 0;
  for (size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    const size_t first = std::max(done, at < kStatementMax ? 0 : at - kStatementMax);
    if (at < done) continue;
    const size_t before = text.substr(first, at - first).find_last_of(";{}\n");
    const size_t begin = before == std::string_view::npos ? first : first + before + 1;
    const size_t end = text.substr(at, kStatementMax).find(';');
    if (end == std::string_view::npos) continue;
    const std::string_view given = text.substr(begin, at + end - begin);
    const Statement statement = read(given);
    const std::optional<Lines> lines = lines_of(statement);
    if (!lines || given.find('\n') != std::string_view::npos) continue;
    whole += text.substr(done, begin - done);
    whole += kRegisters;
    for (const std::string& line : *lines) whole += statement.guard + " " + line + "; ";
    whole += "}";
    done = at + end + 1;
  }
  return whole += text.substr(done);
}

}  // namespace mc::ptx
