// SPDX-License-Identifier: Apache-2.0
#include "lex/unsupported.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace mc::lex {
namespace {

enum class Match : std::uint8_t {
  kWord,        // The identifier is this.
  kWordPrefix,  // The identifier starts with this.
  kHeader,      // The included header starts with this.
};

struct Row {
  Match match;
  std::string_view text;
  std::string_view construct;
};

constexpr std::string_view kTensorCores = "tensor-core instructions (wgmma)";
constexpr std::string_view kBulkCopy = "bulk asynchronous copies (TMA)";
constexpr std::string_view kClusters = "thread block clusters";
constexpr std::string_view kTextures = "texture and surface objects";
constexpr std::string_view kDriver = "the CUDA driver interface";
constexpr std::string_view kNvrtc = "run-time compilation (NVRTC)";
constexpr std::string_view kPeers = "other devices";

// The names of CUDA's own headers and functions are not listed: compile/cpu_lacks.h knows them.
// Nor are those of CUTLASS and CuTe: their headers belong neither to CUDA nor to PyTorch.
constexpr std::array kRows = {
    Row{Match::kWordPrefix, "wgmma", kTensorCores},
    Row{Match::kHeader, "cuda/ptx", "PTX wrappers (cuda::ptx)"},
    Row{Match::kWord, "CUtensorMap", kBulkCopy},
    Row{Match::kWordPrefix, "cuTensorMap", kBulkCopy},
    Row{Match::kWordPrefix, "cp_async_bulk", kBulkCopy},
    Row{Match::kWord, "map_shared_rank", kClusters},
    Row{Match::kWord, "cudaTextureObject_t", kTextures},
    Row{Match::kWord, "cudaSurfaceObject_t", kTextures},
    Row{Match::kWord, "cudaCreateTextureObject", kTextures},
    Row{Match::kWord, "cudaCreateSurfaceObject", kTextures},
    Row{Match::kWordPrefix, "tex1D", kTextures},
    Row{Match::kWordPrefix, "tex2D", kTextures},
    Row{Match::kWordPrefix, "tex3D", kTextures},
    Row{Match::kWordPrefix, "surf2D", kTextures},
    Row{Match::kWord, "cuLaunchKernel", kDriver},
    Row{Match::kWordPrefix, "cuModuleLoad", kDriver},
    Row{Match::kHeader, "nvrtc.h", kNvrtc},
    Row{Match::kWordPrefix, "nvrtcCompile", kNvrtc},
    Row{Match::kWordPrefix, "nvshmem", kPeers},
    Row{Match::kWordPrefix, "ncclAll", kPeers},
};

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool matches(const Row& row, std::string_view source, const Code& code, std::size_t i) {
  const Token& token = code.tokens[i];
  const std::string_view text = text_of(source, token);
  if (row.match == Match::kHeader) {
    return token.kind == Kind::kHeader && starts_with(text.substr(1), row.text);
  }
  if (token.kind != Kind::kIdentifier) return false;
  if (row.match == Match::kWordPrefix) return starts_with(text, row.text);
  return text == row.text;
}

// The construct that the token at `i` stands for, or "".
std::string_view construct_at(std::string_view source, const Code& code, std::size_t i) {
  const auto* const row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& candidate) {
    return matches(candidate, source, code, i);
  });
  return row == kRows.end() ? "" : row->construct;
}

class Collector {
 public:
  explicit Collector(std::string_view source) : source_(source) {}

  void add(std::string_view construct, const Token& token) {
    if (construct.empty() || !seen_.emplace(construct, token.line).second) return;
    found_.push_back({std::string(construct), std::string(text_of(source_, token).substr(0, 80)),
                      token.line, token.column});
  }
  std::vector<Unsupported> take() { return std::move(found_); }

 private:
  std::string_view source_;
  std::set<std::pair<std::string_view, std::uint32_t>> seen_;
  std::vector<Unsupported> found_;
};

// A brace without a partner leaves open which function a launch stands in; such text does
// not compile anyway, and the compiler's word is the one to give.
bool has_stray_brace(std::string_view source, const Code& code) {
  for (std::size_t i = 0; i < code.tokens.size(); ++i) {
    const std::string_view text = text_of(source, code.tokens[i]);
    if ((text == "{" || text == "}") && code.partners[i] == kNone) return true;
  }
  return false;
}

void collect_nested_launches(std::string_view source, const Code& code, Collector& found) {
  if (has_stray_brace(source, code)) return;
  const std::vector<Scope> scopes = scopes_of(source, code);
  for (const Launch& launch : launches_in(source, code)) {
    if (scopes[launch.open] == Scope::kDevice) {
      found.add("dynamic parallelism (a launch in device code)", code.tokens[launch.open]);
    }
  }
}

}  // namespace

std::vector<Unsupported> unsupported_in(std::string_view source, const std::vector<Code>& regions) {
  Collector found(source);
  for (const Code& code : regions) {
    for (std::size_t i = 0; i < code.tokens.size(); ++i) {
      if (code.tokens[i].kind != Kind::kIdentifier && code.tokens[i].kind != Kind::kHeader)
        continue;
      found.add(construct_at(source, code, i), code.tokens[i]);
    }
    collect_nested_launches(source, code, found);
  }
  return found.take();
}

}  // namespace mc::lex
