// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder musify`: ports sources between CUDA and MUSA (docs/musify.md).
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "core/check.h"
#include "core/file.h"
#include "core/layout.h"
#include "musify/port.h"
#include "musify/project.h"
#include "musify/rules.h"
#include "musify/tree.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using musify::Port;

struct MusifyArguments {
  std::vector<std::string> paths;
  std::string target;
  std::string out;
  bool check = false;
  bool diff = false;  // Implies check.
  bool report = false;
  std::string architecture{musify::kArchitectureDefault};
};

struct DirectedRules {
  musify::Rules forth;
  musify::Rules back;
};

struct Totals {
  std::map<Port::Status, int> files;
  int num_unread = 0;
  int num_irreversible = 0;
};

struct Input {
  std::string text;
  musify::SourceFacts facts;
};

Result<DirectedRules> load_both(const std::string& target) {
  MC_TRY(const Layout layout, find_layout(), "musify");
  MC_CHECK(musify::target_named(target).has_value());  // The option's check accepted the name.
  const bool to_musa = musify::target_named(target) == musify::Target::kMusa;
  const fs::path folder = layout.share("data/musify");
  MC_TRY(musify::Rules to, musify::load_rules(folder, musify::Target::kMusa), "musify");
  MC_TRY(musify::Rules from, musify::load_rules(folder, musify::Target::kCuda), "musify");
  if (!to_musa) std::swap(to, from);
  return DirectedRules{std::move(to), std::move(from)};
}

std::string shown(std::string text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

void print_change(std::ostream& out, const fs::path& file, const musify::Change& change) {
  const std::string what = change.before.empty()  ? "added " + shown(change.after)
                           : change.after.empty() ? "removed " + shown(change.before)
                                                  : change.before + " -> " + change.after;
  out << fmt::format("{}:{}:{}: {} ({})\n", file.string(), change.location.line,
                     change.location.column, what, change.rule);
}

// A reason often occurs many times in a file, so it is printed once, with its first position and
// its count.
void print_findings(const fs::path& file, const char* kind,
                    const std::vector<musify::Finding>& findings) {
  std::map<std::string, int> counts;
  for (const musify::Finding& finding : findings) ++counts[finding.message];
  for (const musify::Finding& finding : findings) {
    const int count = std::exchange(counts[finding.message], 0);
    if (count == 0) continue;
    const std::string times = count == 1 ? "" : fmt::format(", {} times", count);
    std::cerr << fmt::format("{}:{}:{}: {}: {} ({}){}\n", file.string(), finding.location.line,
                             finding.location.column, kind, finding.message, finding.rule, times);
  }
}

// The reasons in one line: the first position of each obstacle; without obstacles, the number of
// uses of each rule.
std::string reasons_of(const Port& port) {
  const auto& findings = port.refusals.empty() ? port.remnants : port.refusals;
  std::vector<std::string> parts;
  std::map<std::string, int> counts;
  for (const musify::Finding& finding : findings) {
    if (counts[finding.message]++ > 0) continue;
    parts.push_back(fmt::format("line {}: {}", finding.location.line, finding.message));
  }
  if (!parts.empty()) return fmt::format("{}", fmt::join(parts, "; "));
  for (const musify::Change& change : port.changes) ++counts[change.rule];
  for (const auto& [rule, count] : counts) parts.push_back(fmt::format("{} {}", count, rule));
  return parts.empty() ? "nothing of the other side" : fmt::format("{}", fmt::join(parts, ", "));
}

// The reason why a file cannot be source; "" if it can.  Bytes that are not UTF-8 are allowed,
// because comments may contain them.
std::string why_no_text(const std::string& text) {
  static constexpr std::string_view kSpaces = "\t\n\v\f\r";
  const auto is_binary = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && kSpaces.find(c) == std::string_view::npos;
  };
  const auto found = std::ranges::find_if(text, is_binary);
  if (found == text.end()) return "";
  return fmt::format("it is no source: its byte {} is {:#04x}, which no text has",
                     found - text.begin() + 1, static_cast<unsigned char>(*found));
}

// One run over all files.  All are read before the first is ported, since the port of a file
// depends on facts of the others (ProjectIndex).
class Run {
 public:
  // REQUIRES: the arguments and rules outlive this object.
  Run(const MusifyArguments& arguments, const DirectedRules& rules,
      const std::vector<musify::Source>& sources)
      : arguments_(arguments),
        rules_(rules),
        sources_(sources),
        report_(prints_text() ? std::cerr : std::cout) {
    options_.architecture = arguments.architecture;
  }

  Result<int> run() {
    read_all();
    MC_CHECK(inputs_.size() == sources_.size());
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (!inputs_[i]) continue;
      options_.project = index_.project_of(inputs_[i]->facts);
      if (const Status done = port(sources_[i], inputs_[i]->text); !done) return done.error();
    }
    print_summary();
    return exit_code();
  }

 private:
  bool prints_text() const { return arguments_.out.empty() && !arguments_.check; }

  // All files are read before the first is ported, because a name that an included file defines is
  // not changed.
  void read_all() {
    for (const musify::Source& source : sources_) {
      Result<std::string> text = read_file(source.path, musify::kSourceBytesMax);
      inputs_.emplace_back();
      if (const std::string why = text ? why_no_text(*text) : ""; !why.empty()) {
        text = invalid(source.path.string() + ": " + why);
      }
      if (!text) {
        report_error(text.error());
        ++totals_.num_unread;
        continue;
      }
      inputs_.back() = Input{std::move(*text), {}};
      inputs_.back()->facts = musify::facts_of(inputs_.back()->text, source.language, rules_.forth);
      index_.add(source.path.filename(), inputs_.back()->facts);
    }
  }

  Status port(const musify::Source& source, const std::string& text) {
    const Port port = musify::port_source(text, source.language, rules_.forth, options_);
    const Port::Status status = port.status();
    ++totals_.files[status];
    if (arguments_.diff) {
      report_ << fmt::format("{}: {}: {}\n", source.path.string(), name_of(status),
                             reasons_of(port));
      return ok();
    }
    print_findings(source.path, "refused", port.refusals);
    print_findings(source.path, "left over", port.remnants);
    print_findings(source.path, "warning", port.warnings);
    if (arguments_.report) {
      for (const musify::Change& change : port.changes) print_change(report_, source.path, change);
    }
    if (arguments_.check && status != Port::Status::kUnchanged) {
      report_ << fmt::format("{}: {}\n", source.path.string(), name_of(status));
    }
    if (status == Port::Status::kRefused) return ok();
    check_way_back(source, text, port);
    return write(source, port.text);
  }

  void check_way_back(const musify::Source& source, const std::string& text, const Port& port) {
    const auto loss = musify::first_loss(text, port, source.language, rules_.back, options_);
    if (!loss) return;
    ++totals_.num_irreversible;
    if (!arguments_.report) return;
    report_ << fmt::format("{}:{}:{}: not reversible from here on\n", source.path.string(),
                           loss->line, loss->column);
  }

  Status write(const musify::Source& source, const std::string& text) {
    if (arguments_.check) return ok();
    if (arguments_.out.empty()) {
      std::cout << text << std::flush;
      return ok();
    }
    const fs::path path = fs::path(arguments_.out) / source.relative;
    std::error_code problem;
    fs::create_directories(path.parent_path(), problem);
    if (problem) {
      return Error{ErrorCode::kIo,
                   "--out: cannot make " + path.parent_path().string() + ": " + problem.message()};
    }
    MC_TRY_VOID(write_output(path, text), "--out");
    return ok();
  }

  void print_summary() {
    const auto count = [&](Port::Status status) { return totals_.files[status]; };
    report_ << fmt::format("{} file{}: {} ported, {} unchanged, {} partial, {} refused",
                           sources_.size(), sources_.size() == 1 ? "" : "s",
                           count(Port::Status::kPorted), count(Port::Status::kUnchanged),
                           count(Port::Status::kPartial), count(Port::Status::kRefused));
    if (!arguments_.diff) report_ << "; " << totals_.num_irreversible << " not reversible";
    report_ << "\n";
  }

  int exit_code() {
    if (totals_.num_unread > 0) return kExitInput;
    const int num_bad =
        totals_.files[Port::Status::kRefused] + totals_.files[Port::Status::kPartial];
    const bool would_change = arguments_.check && totals_.files[Port::Status::kPorted] > 0;
    return num_bad > 0 || would_change ? kExitFound : kExitDone;
  }

  const MusifyArguments& arguments_;
  const DirectedRules& rules_;
  const std::vector<musify::Source>& sources_;
  std::ostream& report_;
  musify::PortOptions options_;
  musify::ProjectIndex index_;
  std::vector<std::optional<Input>> inputs_;  // Empty for files that could not be read.
  Totals totals_;
};

Result<int> run_musify(const MusifyArguments& arguments) {
  MC_TRY(const DirectedRules rules, load_both(arguments.target), "musify");
  auto sources = musify::find_sources(arguments.paths, rules.forth);
  if (!sources) return sources.error();
  for (const musify::Source& ported : musify::take_ported(*sources)) {
    std::cerr << fmt::format("{}: left out: its port {} is beside it\n", ported.path.string(),
                             ported.relative.filename().string());
  }
  if (arguments.out.empty() && !arguments.check) {
    std::error_code ignored;
    if (sources->size() > 1 || fs::is_directory(arguments.paths[0], ignored)) {
      return invalid("--out is missing: only a single file goes to standard output");
    }
  }
  if (!arguments.out.empty()) {
    if (const Status fit = musify::check_outputs(*sources, arguments.out); !fit) return fit.error();
  }
  return Run(arguments, rules, *sources).run();
}

}  // namespace

void add_musify(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<MusifyArguments>();
  CLI::App* command = app.add_subcommand("musify", "Port sources from CUDA to MUSA, or back");
  command
      ->add_option("path", arguments->paths,
                   "Sources (.py, .cu, .cuh, .mu, .muh, .cpp, .cc, .h, .hpp) or folders of them")
      ->required();
  command->add_option("--to", arguments->target, "The dialect to port to: musa or cuda")
      ->default_val(musify::kTargetDefault)
      ->check([](const std::string& name) {
        return musify::target_named(name) ? "" : "expected musa or cuda, got \"" + name + "\"";
      });
  CLI::Option* out = command->add_option(
      "--out,-o", arguments->out, "Folder for the ports (default for one file: standard output)");
  out->check(kOutputFolder);
  command
      ->add_flag("--check", arguments->check,
                 "Write nothing; exit with 3 where a file would change or cannot be ported")
      ->excludes(out);
  command
      ->add_flag("--diff", arguments->diff,
                 "As --check, with one line for each file: why it would change, or cannot")
      ->excludes(out);
  command->add_flag("--report", arguments->report, "Print every change with its place and rule");
  command
      ->add_option("--musa-arch", arguments->architecture,
                   "MUSA architecture that extensions are compiled for")
      ->check(one_of(musify::architectures()));
  command->footer(
      "Examples:\n"
      "  musacoder musify kernel.cu\n"
      "  musacoder musify src/ --out ported/ --report\n"
      "Exit code: 0 all are ported or need no change; 2 bad input; 3 a file is refused or ported "
      "in part.");
  command->callback([arguments, &exit_code] {
    arguments->check |= arguments->diff;
    exit_code = code_of(run_musify(*arguments));
  });
}

}  // namespace mc::cli
