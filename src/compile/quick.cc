// SPDX-License-Identifier: Apache-2.0
#include "compile/quick.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "compile/tool.h"
#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "lex/split.h"
#include "lex/token.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

bool is_among(std::string_view word, const auto& words) {
  return std::ranges::find(words, word) != words.end();
}

// Flags without effect on the result: line information is always generated, and sources with device
// lambdas are not split.
constexpr std::array<std::string_view, 9> kWithoutEffect = {"-lineinfo",
                                                            "--generate-line-info",
                                                            "--expt-relaxed-constexpr",
                                                            "-expt-relaxed-constexpr",
                                                            "--expt-extended-lambda",
                                                            "--extended-lambda",
                                                            "--ptxas-options=-v",
                                                            "-Xptxas=-v",
                                                            "-w"};
constexpr std::array<std::string_view, 4> kOptimising = {"-O0", "-O1", "-O2", "-O3"};

bool takes(const std::string& flag, SidesFlags& sides) {
  const std::string_view text = flag;
  if (is_among(text, kWithoutEffect)) return true;
  if (is_among(text, kOptimising)) {
    sides.host.push_back(flag);
    return true;
  }
  if (text == "--use_fast_math" || text == "-use_fast_math") {
    sides.device.push_back("--use_fast_math");
    return true;
  }
  if (text.starts_with("--std=c++") || text.starts_with("-std=c++")) {
    const std::string standard = "-std=" + std::string(text.substr(text.find("c++")));
    if (standard != "-std=c++17" && standard != "-std=c++20") return false;
    sides.host.push_back(standard), sides.device.push_back(standard);
    return true;
  }
  if (text.size() > 2 && (text.starts_with("-D") || text.starts_with("-U"))) {
    sides.host.push_back(flag), sides.device.push_back(flag);
    return true;
  }
  return false;
}

// Adds the flag that -Xcompiler or -Xptxas passes on; false where it is unknown.
bool takes_passed_on(std::string_view option, const std::string& value, SidesFlags& sides) {
  const bool is_plain = is_among(value, kOptimising);
  if (option == "-Xptxas") return value == "-v" || value == "-O3";
  if (is_plain) sides.host.push_back(value);
  return is_plain || value == "-fPIC";
}

// The macros that a text defines, if it consists of directives only; nothing for another text.
std::optional<std::set<std::string>> macros_in(std::string_view text) {
  std::set<std::string> macros;
  bool is_name = false;
  for (const lex::Token& token : lex::tokenize(text)) {
    if (lex::is_trivia(token)) continue;
    if (!token.in_directive) return std::nullopt;
    if (is_name) macros.emplace(lex::text_of(text, token));
    is_name = lex::text_of(text, token) == "define";
  }
  return macros;
}

}  // namespace

std::optional<SidesFlags> flags_of_sides(const std::vector<std::string>& nvcc_flags) {
  SidesFlags sides;
  for (size_t i = 0; i < nvcc_flags.size(); ++i) {
    const std::string& flag = nvcc_flags[i];
    const bool is_passing = flag == "-Xcompiler" || flag == "-Xptxas";
    if (is_passing && i + 1 == nvcc_flags.size()) return std::nullopt;
    const bool is_taken =
        is_passing ? takes_passed_on(flag, nvcc_flags[++i], sides) : takes(flag, sides);
    if (!is_taken) return std::nullopt;
  }
  return sides;
}

std::optional<QuickCompiler> quick_compiler(const Layout& layout, const fs::path& nvcc) {
  const fs::path folder = fs::weakly_canonical(layout.share("device/facade"));
  QuickCompiler quick;
  quick.program = layout.prefix / "bin/musacoder-kernels";
  if (!path_exists(quick.program)) return std::nullopt;
  quick.compiler = nvcc;
  quick.prelude = folder / "device/prelude.cuh";
  quick.halves = folder / "include/mc_at/half.h";
  return quick;
}

std::optional<QuickCompiler> find_quick_compiler(const Layout& layout, const fs::path& toolkit,
                                                 const fs::path& pytorch,
                                                 const std::string& release) {
  std::optional<QuickCompiler> quick = quick_compiler(layout, {});
  if (!quick) return quick;
  std::error_code failure;
  const std::string name = "libnvrtc.so." + release.substr(0, release.find('.'));
  for (const fs::path& library : {toolkit / "lib64" / name, toolkit / "lib" / name,
                                  pytorch.parent_path() / "nvidia/cu13/lib" / name}) {
    if (!fs::exists(library, failure)) continue;
    const auto version = run_tool({quick->program.string(), "--version", library.string()});
    if (!version) break;
    if (*version != release + "\n") continue;
    quick->compiler = fs::canonical(library, failure);
    return quick;
  }
  log_debug(fmt::format("compile: no NVRTC {}: nvcc compiles all", release));
  return std::nullopt;
}

std::optional<QuickSource> quick_source(const QuickCompiler& quick, const Unit& unit,
                                        const Extension& extension) {
  MC_CHECK(!unit.pieces.empty());
  const bool has_macros = !extension.prelude.empty();
  const auto flags = flags_of_sides(extension.extra_cuda_cflags);
  const auto macros = macros_in(extension.prelude);
  const bool is_one_source = unit.pieces.size() == (has_macros ? 3u : 2u);
  if (!flags || !macros || !is_one_source || !extension.files.empty()) {
    log_debug("compile: nvcc, for flags or several sources");
    return std::nullopt;
  }
  const SourceFile& piece = unit.pieces.back();
  lex::Split split = lex::split_cuda(piece.text, *macros);
  if (!split.refusal.empty()) {
    log_debug(fmt::format("compile: nvcc, for {}", split.refusal));
    return std::nullopt;
  }
  const std::string line = "#line 1 \"" + piece.name + "\"\n";
  QuickSource source;
  source.flags = *flags;
  source.uses_header = piece.text.find("<torch/extension.h>") != std::string::npos;
  source.host = "#include <mc_at/kernels.h>\n" + unit.pieces.front().text + "\n" +
                extension.prelude + line + std::move(split.host) + "\n";
  for (const std::string& header : split.device_headers) {
    source.device += "#include " + header + "\n";
  }
  source.device += "#include \"" + quick.prelude.string() + "\"\n";
  const bool has_halves = piece.text.find("Half") != std::string::npos ||
                          piece.text.find("HALF") != std::string::npos ||
                          piece.text.find("BFloat16") != std::string::npos;
  if (has_halves) source.device += "#include \"" + quick.halves.string() + "\"\n";
  source.device += extension.prelude + line + std::move(split.device) + "\n";
  for (const std::string& kernel : split.kernels) source.kernels += kernel + "\n";
  return source;
}

}  // namespace mc::compile
