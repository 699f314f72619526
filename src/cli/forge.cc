// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "forge/run.h"

namespace mc::cli {
namespace {

constexpr const char* kBothDialects = "both";
const std::map<std::string, forge::Size> kSizes = {{"small", forge::Size::kSmall},
                                                   {"native", forge::Size::kNative},
                                                   {"large", forge::Size::kLarge}};

struct ForgeArguments {
  std::vector<std::string> families = {"elementwise", "reduction"};
  std::vector<std::string> operators;
  std::string style = "compact";
  std::vector<std::string> types = {forge::to_string(forge::Type::kFloat32)};
  std::string dialect = to_string(task::Dialect::kCuda);
  forge::RunOptions options;
};

Status read_families(const ForgeArguments& arguments, const forge::Library& library,
                     std::set<std::string>& families) {
  const std::set<std::string> known = library.families();
  families.clear();
  for (const std::string& name : arguments.families) {
    if (known.contains(name)) {
      families.insert(name);
    } else if (name == "all") {
      families = known;
    } else {
      return Error{ErrorCode::kInvalidInput,
                   fmt::format("no family {}: there are {} and all", name, fmt::join(known, ", "))};
    }
  }
  return ok();
}

Status read_operators(const ForgeArguments& arguments, const forge::Library& library,
                      std::set<std::string>& operators) {
  operators = {arguments.operators.begin(), arguments.operators.end()};
  for (const std::string& name : operators) {
    if (library.find(name) != nullptr) continue;
    return Error{ErrorCode::kInvalidInput, "no operator " + name + ": docs/forge.md lists them"};
  }
  return ok();
}

Status read_types(const ForgeArguments& arguments, std::set<forge::Type>& types) {
  types.clear();
  for (const std::string& name : arguments.types) {
    const auto type = forge::type_of(name);
    if (!type || forge::is_whole(*type)) {
      return Error{ErrorCode::kInvalidInput,
                   fmt::format("no type {}: there are float32, float16 and bfloat16", name)};
    }
    types.insert(*type);
  }
  return ok();
}

class Ticker {
 public:
  void show(const forge::Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(5)) return;
    last_ = now;
    const double minutes = std::chrono::duration<double>(now - start_).count() / 60;
    std::cerr << fmt::format("musacoder: {} tasks, {} solutions, {:.0f} solutions a minute\n",
                             progress.tasks, progress.solutions, progress.solutions / minutes);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
};

void note(std::string_view step) { std::cerr << "musacoder: " << step << std::endl; }

Status run_forge(ForgeArguments& arguments) {
  forge::RunOptions& options = arguments.options;
  options.settings.draw.style =
      arguments.style == "full" ? forge::Style::kFull : forge::Style::kCompact;
  if (arguments.dialect == to_string(task::Dialect::kMusa)) {
    options.dialects = forge::Dialects::kMusa;
  }
  if (arguments.dialect == kBothDialects) options.dialects = forge::Dialects::kBoth;
  MC_TRY(const Layout layout, find_layout(), "forge");
  MC_TRY(const forge::Library library, forge::load_library(layout.share("forge")), "forge");
  options.library = &library;
  MC_TRY_VOID(read_families(arguments, library, options.settings.draw.families), "--families");
  MC_TRY_VOID(read_operators(arguments, library, options.settings.draw.operators), "--operators");
  MC_TRY_VOID(read_types(arguments, options.settings.draw.types), "--types");
  std::unique_ptr<eval::Pipeline> auditor;
  if (options.audit_share > 0) {
    MC_TRY(auditor, eval::Pipeline::create({}, note), "audit");
    options.auditor = auditor.get();
  }
  Ticker ticker;
  MC_TRY(const forge::Counts counts,
         forge::run(options, note, [&](const forge::Progress& made) { ticker.show(made); }),
         "forge");
  for (const auto& [name, count] : counts) std::cout << fmt::format("{:<40} {}\n", name, count);
  return ok();
}

}  // namespace

void add_forge(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ForgeArguments>();
  forge::RunOptions& options = arguments->options;
  CLI::App* command =
      app.add_subcommand("forge", "Make tasks with verified kernels: data to train on");
  command->add_option("--tasks,-n", options.settings.tasks, "How many tasks")
      ->check(CLI::Range(1, 10'000'000))
      ->required();
  command->add_option("--out,-o", options.out, "Folder; a run that was stopped goes on there")
      ->required();
  command->add_option("--seed", options.settings.seed, "The same seed gives the same bytes")
      ->check(kNotNegative)
      ->capture_default_str();
  command->add_option("--jobs,-j", options.jobs, "Verifiers at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->option_defaults()->group("What is made");
  command
      ->add_option("--families", arguments->families,
                   "elementwise, broadcast, reduction, … (docs/forge.md), or all")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--operators", arguments->operators, "Only these (default: all)")
      ->delimiter(',');
  command->add_option("--depth", options.settings.draw.depth, "Operators of a task, at most")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  command
      ->add_option("--types", arguments->types,
                   "float32, float16, bfloat16; the family integer has its own")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--size", options.settings.draw.size,
                   "Of the tasks that are written; the CPU verifies small ones")
      ->transform(CLI::CheckedTransformer(kSizes))
      ->default_str("small");
  command
      ->add_option("--views-share", options.settings.draw.views_share,
                   "Of the tasks, those with an input that is not contiguous")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--style", arguments->style, "compact, for tiny models, or full")
      ->check(CLI::IsMember({"compact", "full"}))
      ->capture_default_str();
  std::vector<std::string> dialects = {kBothDialects};
  for (const task::Dialect dialect : task::kDialects) dialects.emplace_back(to_string(dialect));
  command
      ->add_option("--dialect", arguments->dialect,
                   "cuda, musa, or both, with samples that port one to the other (docs/musa.md)")
      ->check(CLI::IsMember(dialects))
      ->capture_default_str();
  command->add_option("--test-share", options.settings.test_share, "Of the structures, held out")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  command
      ->add_option("--bugs-share", options.settings.bugs_share,
                   "Of the tasks, those with samples that review and repair kernels with bugs")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_flag_callback(
      "--bugs", [&options] { options.settings.bugs_share = 1; }, "The same as --bugs-share 1");
  command->option_defaults()->group("Checks of the data");
  command->add_option("--audit-share", options.audit_share, "Of the solutions, judged by eval too")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--kernelbench", options.kernelbench, "Its tasks, to count the overlap with")
      ->check(CLI::ExistingDirectory);
  command->callback([arguments, &exit_code] {
    const Status status = run_forge(*arguments);
    exit_code = status ? kExitDone : report_error(status.error());
  });
}

}  // namespace mc::cli
