// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder report`: creates a page about the runs of one or more stores.  The figures
// are computed here; the Python package `report` creates the page.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/document.h"
#include "bench/figures.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/python.h"
#include "core/file.h"
#include "store/store.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> stores;
  std::vector<std::string> runs;
  std::string title = "MusaCoder benchmark";
  std::string out;
  std::string markdown;
  std::string csv;
  std::string junit;
  std::string inspect;
  std::string json;
  std::string parquet;
  std::string manifest;
  std::string kernelbench;
  bench::Missing missing = bench::Missing::kFailed;
};

// Reads the runs of a folder or of a store's file.
Status read_store(const fs::path& path, const std::vector<std::string>& wanted,
                  std::vector<bench::RunData>& runs) {
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? path / store::kStoreName : path;
  MC_TRY(const auto store, store::Store::open_to_read(file), "report");
  MC_TRY(const std::vector<store::Run> found, store->runs(), "report");
  for (const store::Run& run : found) {
    const bool is_wanted =
        wanted.empty() || std::ranges::find(wanted, run.record().name) != wanted.end();
    if (!is_wanted) continue;
    MC_TRY(bench::RunData data, bench::read_run(run), file.string());
    if (data.tasks.empty()) continue;  // Runs of the forge and of training have no tasks.
    if (data.judgements.empty()) {
      std::cerr << "musacoder: report: the run " << run.record().name << " has no verdict yet\n";
    }
    runs.push_back(std::move(data));
  }
  return ok();
}

// The arguments for the requested outputs.
std::vector<std::string> words_of(
    std::initializer_list<std::pair<const char*, std::string_view>> outputs) {
  std::vector<std::string> words;
  for (const auto& [name, path] : outputs) {
    if (!path.empty()) words.insert(words.end(), {name, std::string(path)});
  }
  return words;
}

// Creates the pages with the Python package.
Status render(const ReportArguments& arguments, const fs::path& document) {
  std::vector<std::string> words = words_of({{"--out", arguments.out},
                                             {"--markdown", arguments.markdown},
                                             {"--csv", arguments.csv},
                                             {"--junit", arguments.junit},
                                             {"--inspect", arguments.inspect}});
  words.insert(words.begin(), document.string());
  return run_report_module("report", words, "the page");
}

// True where the folders are data sets of `forge` or `import`.
bool are_data_sets(const std::vector<std::string>& folders) {
  std::error_code ignored;
  return std::ranges::all_of(folders, [&](const fs::path& folder) {
    return fs::exists(folder / "forge.json", ignored) ||
           fs::exists(folder / "import.json", ignored);
  });
}

// Creates the data card with the Python package.
Status render_card(const ReportArguments& arguments) {
  const std::vector<std::string> outputs = words_of({{"--out", arguments.out},
                                                     {"--parquet", arguments.parquet},
                                                     {"--manifest", arguments.manifest}});
  if (outputs.empty()) return invalid("give --out CARD.html, --parquet or --manifest");
  std::vector<std::string> words = arguments.stores;
  words.insert(words.end(), outputs.begin(), outputs.end());
  return run_report_module("report.card", words, "the data card");
}

// Writes FOLDER/RUN_level1/eval_results.json, and so on for each run and level.
Status write_kernelbench(const fs::path& folder, const std::vector<bench::RunData>& runs) {
  bool is_any = false;
  for (const bench::RunData& data : runs) {
    std::string name = data.record.name;
    std::ranges::replace(name, '/', '_');
    for (const auto& [level, text] : bench::kernelbench_results(data)) {
      const fs::path file = folder / (name + "_level" + level) / "eval_results.json";
      std::error_code ignored;  // An error is reported by the write that follows.
      fs::create_directories(file.parent_path(), ignored);
      MC_TRY_VOID(write_file_atomically(file, text), "--kernelbench");
      std::cout << file.string() << "\n";
      is_any = true;
    }
  }
  return is_any ? ok() : invalid("--kernelbench: no run has a verdict of a task of KernelBench");
}

Status run_report(const ReportArguments& arguments) {
  const bool has_card = !(arguments.parquet + arguments.manifest).empty();
  if (are_data_sets(arguments.stores)) return render_card(arguments);
  if (has_card) return invalid("--parquet and --manifest are for folders of forge and import");
  std::vector<bench::RunData> runs;
  for (const std::string& path : arguments.stores) {
    MC_TRY_VOID(read_store(path, arguments.runs, runs), "report");
  }
  if (runs.empty() && arguments.runs.empty()) return invalid("no run in the stores");
  std::set<std::string> names;
  for (const bench::RunData& data : runs) names.insert(data.record.name);
  for (const std::string& name : arguments.runs) {
    if (!names.contains(name)) return invalid("--run: no run " + name + " in the stores");
  }
  const std::string document = bench::document_json(runs, {.title = arguments.title,
                                                           .created = store::now_text(),
                                                           .program = kProgram,
                                                           .missing = arguments.missing});
  if (!arguments.json.empty()) MC_TRY_VOID(write_output(arguments.json, document), "--json");
  if (!arguments.kernelbench.empty()) {
    MC_TRY_VOID(write_kernelbench(arguments.kernelbench, runs), "report");
  }
  const bool has_page =
      !(arguments.out + arguments.markdown + arguments.csv + arguments.junit + arguments.inspect)
           .empty();
  if (!has_page) return ok();
  MC_TRY(const auto folder, TemporaryDirectory::create("report"), "report");
  const fs::path path = folder.path() / "document.json";
  MC_TRY_VOID(write_file_atomically(path, document), "report");
  return render(arguments, path);
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "A page of benchmarks: figures, tasks, answers");
  command
      ->add_option("stores", arguments->stores,
                   "Folders of bench (or their store.sqlite); or of forge and import, for a card "
                   "of their data")
      ->required();
  command->add_option("--run", arguments->runs, "Only the runs of these names");
  command->add_option("--title", arguments->title, "Of the page");
  add_missing(*command, arguments->missing);
  command->add_option("--out,-o", arguments->out, "The page: one HTML file that needs no network")
      ->check(kOutputFile);
  command->add_option("--markdown", arguments->markdown, "The tables of figures, for a README")
      ->check(kOutputFile);
  command->add_option("--csv", arguments->csv, "A row a sample")->check(kOutputFile);
  command->add_option("--junit", arguments->junit, "A case a sample, as JUnit's XML")
      ->check(kOutputFile);
  command
      ->add_option("--inspect", arguments->inspect,
                   "Of one run: a log of inspect-ai, whose name ends in .json")
      ->check(kOutputFile);
  command->add_option("--json", arguments->json, "The document that all of these are made of")
      ->check(kOutputFile);
  command
      ->add_option("--kernelbench", arguments->kernelbench,
                   "KernelBench's folder of runs: RUN_level1/eval_results.json and so on in it")
      ->check(kOutputFolder);
  command
      ->add_option("--parquet", arguments->parquet,
                   "Of data sets: a folder for Parquet files (needs pyarrow)")
      ->check(kOutputFolder);
  command
      ->add_option("--manifest", arguments->manifest,
                   "Of data sets: hashes of the files, seeds and versions, as JSON")
      ->check(kOutputFile);
  command->footer(
      "Examples:\n"
      "  musacoder report bench/mine --out page.html\n"
      "  musacoder report bench/mine bench/other --markdown table.md --csv rows.csv\n"
      "  musacoder report rows --out card.html --manifest manifest.json");
  command->callback([arguments, &exit_code] {
    if ((arguments->out + arguments->markdown + arguments->csv + arguments->junit +
         arguments->inspect + arguments->json + arguments->kernelbench + arguments->parquet +
         arguments->manifest)
            .empty()) {
      exit_code = report_error(
          {ErrorCode::kInvalidInput,
           "report: give --out PAGE.html, --markdown, --csv, --junit, --inspect, --json "
           "or --kernelbench"});
      return;
    }
    exit_code = code_of(run_report(*arguments));
  });
}

}  // namespace mc::cli
