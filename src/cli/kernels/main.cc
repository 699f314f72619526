// SPDX-License-Identifier: Apache-2.0
//
// A compiler of device code for the kernels that a host object needs, by the toolkit's NVRTC or
// nvcc. It also writes the code that registers the kernels (src/compile/quick.h).  It runs in the
// sandbox of compilers, because it processes a candidate's text.
//
//   $ musacoder-kernels --version LIBNVRTC
//     "13.0"
//   $ musacoder-kernels COMPILER OBJECT SOURCE KERNELS OUT OPTION...
//     COMPILER libnvrtc.so, for PTX and machine code; nvcc, for machine code alone
//     OBJECT   holds the stand-ins of kernels; its symbols tell which templates are instantiated
//     SOURCE   device code
//     KERNELS  qualified names, a line each; templates without arguments
//     OUT      gets OUT.s, to be linked with OBJECT, and OUT.fatbin, which that includes
//
// Messages of ptxas about resources go to standard output, all others to standard error.  Exit
// codes: 0 success; 1 nvcc must compile the whole source, with the reason; 2 invalid arguments.
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

// The limit exists because demangling takes longer than linear time.
constexpr size_t kSymbolBytesMax = 1024;

constexpr std::string_view kShown = "(anonymous namespace)", kUnnamed = "_GLOBAL__N_1";

struct Failure {
  std::string why;
};

// ---- The library's functions (nvrtc.h) ----------------------------------------------------------

class Nvrtc {
 public:
  explicit Nvrtc(const char* path) : library_(dlopen(path, RTLD_NOW)) {
    if (library_ == nullptr) throw Failure{dlerror()};
    load_builtins(std::filesystem::path(path).parent_path());
  }
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    const int error = call_unchecked(name, arguments...);
    if (error != 0) throw Failure{std::string(name) + ": " + std::to_string(error)};
  }
  template <class... Arguments>
  int call_unchecked(const char* name, Arguments... arguments) const {
    void* const function = dlsym(library_, name);
    if (function == nullptr) throw Failure{dlerror()};
    return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
  }

 private:
  // NVRTC opens its second library by its bare name when it compiles.  If a library of this name is
  // already loaded, it is used, so NVRTC's folder need not be on the loader's path.
  static void load_builtins(const std::filesystem::path& folder) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (!entry.path().filename().string().starts_with("libnvrtc-builtins.so")) continue;
      if (dlopen(entry.path().c_str(), RTLD_NOW) != nullptr) return;
    }
  }

  void* library_;
};

using Program = void*;

std::string text_from(const Nvrtc& nvrtc, Program program, const char* size, const char* get) {
  size_t bytes = 0;
  nvrtc.call(size, program, &bytes);
  std::string text(bytes, '\0');
  nvrtc.call(get, program, text.data());
  return text;
}

// ---- The object's kernels -----------------------------------------------------------------------

struct Kernel {
  std::string symbol;
  std::string expression;  // The C++ expression that names the kernel: "ns::k<float, 256>".
};

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure{std::string("cannot read ") + path};
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.flush()) throw Failure{"cannot write " + path};
}

template <class Value>
Value value_at(std::string_view bytes, size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Value)) throw Failure{"no object"};
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The functions that the object defines with external linkage.
std::vector<std::string> functions_in(std::string_view object) {
  const auto header = value_at<Elf64_Ehdr>(object, 0);
  std::vector<std::string> names;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = value_at<Elf64_Shdr>(object, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_SYMTAB) continue;
    const auto strings =
        value_at<Elf64_Shdr>(object, header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = value_at<Elf64_Sym>(object, section.sh_offset + at);
      const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
      if (!is_function || symbol.st_shndx == SHN_UNDEF) continue;
      if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
      const size_t begin = strings.sh_offset + symbol.st_name;
      if (begin >= object.size()) throw Failure{"no object"};
      names.emplace_back(object.substr(begin, object.substr(begin).find('\0')));
    }
  }
  return names;
}

std::optional<std::string> demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0) return std::nullopt;
  std::string name = text.get();
  for (size_t at = 0; (at = name.find(kShown, at)) != std::string::npos;) {
    name.replace(at, kShown.size(), kUnnamed);
  }
  return name;
}

// The index after the template arguments that begin at `i`.
size_t after_arguments(std::string_view text, size_t i) {
  int depth = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && --depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

// The expression for a function: "k" for "k(int)", "k<int>" for "void k<int>(int)".
std::optional<std::string> expression_of(std::string_view text, std::string_view kernel) {
  if (text.starts_with(kernel) && text.substr(kernel.size()).starts_with('(')) {
    return std::string(kernel);
  }
  constexpr std::string_view kResult = "void ";
  if (!text.starts_with(kResult)) return std::nullopt;
  text.remove_prefix(kResult.size());
  const bool is_its = text.starts_with(kernel) && text.substr(kernel.size()).starts_with('<');
  if (!is_its) return std::nullopt;
  const size_t end = after_arguments(text, kernel.size());
  if (end == std::string_view::npos || !text.substr(end).starts_with('(')) return std::nullopt;
  return std::string(text.substr(0, end));
}

std::vector<Kernel> kernels_in(std::string_view object, const std::vector<std::string>& names) {
  std::vector<Kernel> kernels;
  for (const std::string& symbol : functions_in(object)) {
    if (symbol.size() > kSymbolBytesMax) throw Failure{"a symbol is too long"};
    const std::string text = demangled(symbol).value_or(symbol + "(");  // The kernel is extern "C".
    for (const std::string& name : names) {
      if (auto expression = expression_of(text, name)) {
        kernels.push_back({symbol, std::move(*expression)});
      }
    }
  }
  if (kernels.empty()) throw Failure{"no kernel is used"};
  return kernels;
}

// ---- The device's code --------------------------------------------------------------------------

struct Code {
  std::string ptx, machine_code;
};

Code compile_by_nvrtc(const Nvrtc& nvrtc, const std::string& source,
                      const std::vector<Kernel>& kernels, const std::vector<const char*>& options) {
  Program program = nullptr;
  nvrtc.call("nvrtcCreateProgram", &program, source.c_str(), "cuda.cu", 0,
             static_cast<const char* const*>(nullptr), static_cast<const char* const*>(nullptr));
  for (const Kernel& kernel : kernels) {
    nvrtc.call("nvrtcAddNameExpression", program, kernel.expression.c_str());
  }
  const int error = nvrtc.call_unchecked("nvrtcCompileProgram", program,
                                         static_cast<int>(options.size()), options.data());
  const std::string log = text_from(nvrtc, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
  if (error != 0) throw Failure{log.c_str()};
  std::puts(log.c_str());
  for (const Kernel& kernel : kernels) {
    const char* symbol = nullptr;
    nvrtc.call("nvrtcGetLoweredName", program, kernel.expression.c_str(), &symbol);
    if (kernel.symbol != symbol) throw Failure{kernel.expression + " is " + symbol};
  }
  return {text_from(nvrtc, program, "nvrtcGetPTXSize", "nvrtcGetPTX"),
          text_from(nvrtc, program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")};
}

// Runs a program; its standard error goes to standard output, as messages about resources do.
void run_program(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw Failure{words[0] + ": " + std::strerror(error)};
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) throw Failure{words[0] + " failed"};
}

// Uses of the kernels are appended to the source, because they instantiate templates.
Code compile_by_nvcc(const std::string& nvcc, const std::string& source,
                     const std::vector<Kernel>& kernels, const std::vector<const char*>& options,
                     const std::string& out) {
  std::string uses = "\nnamespace mc_at_uses {\nconst void* const kernels[] = {\n";
  for (const Kernel& kernel : kernels) uses += "(const void*)&::" + kernel.expression + ",\n";
  write_file(out + ".cu", source + uses + "};\n}\n");
  std::vector<std::string> words = {nvcc};
  words.insert(words.end(), options.begin(), options.end());
  for (const std::string& word :
       {std::string("-cubin"), out + ".cu", std::string("-o"), out + ".cubin"}) {
    words.push_back(word);
  }
  run_program(words);
  Code code{.ptx = "", .machine_code = read_file((out + ".cubin").c_str())};
  const std::vector<std::string> made = functions_in(code.machine_code);
  for (const Kernel& kernel : kernels) {
    const bool is_there = std::find(made.begin(), made.end(), kernel.symbol) != made.end();
    if (!is_there) throw Failure{kernel.expression + " is not " + kernel.symbol};
  }
  return code;
}

// ---- The fat binary, as the fatbinary program writes it -----------------------------------------

enum class EntryKind : uint16_t { kPtx = 1, kMachineCode = 2 };

template <class Value>
void put(std::string& bytes, Value value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string entry(EntryKind kind, uint32_t architecture, std::string code) {
  constexpr uint32_t kHeaderBytes = 64;
  constexpr uint64_t kFlags = 0x11;  // 64 bits, Linux; not compressed.
  code.resize((code.size() + 7) / 8 * 8);
  std::string bytes;
  put(bytes, kind), put(bytes, uint16_t{0x101}), put(bytes, kHeaderBytes);
  put(bytes, uint64_t{code.size()}), put(bytes, uint32_t{0}), put(bytes, uint32_t{0});
  put(bytes, uint16_t{0}), put(bytes, uint16_t{0}), put(bytes, architecture);
  put(bytes, uint32_t{0}), put(bytes, uint32_t{0}), put(bytes, kFlags);
  put(bytes, uint64_t{0}), put(bytes, uint64_t{0});
  return bytes + code;
}

std::string fat_binary(const Code& code, uint32_t architecture) {
  std::string entries = entry(EntryKind::kMachineCode, architecture, code.machine_code);
  if (!code.ptx.empty()) entries += entry(EntryKind::kPtx, architecture, code.ptx);
  std::string bytes;
  put(bytes, uint32_t{0xBA55ED50}), put(bytes, uint16_t{1}), put(bytes, uint16_t{16});
  put(bytes, uint64_t{entries.size()});
  return bytes + entries;
}

std::string table_of(const std::vector<Kernel>& kernels, const std::string& fat_binary_path) {
  std::string text =
      "\t.section .nv_fatbin,\"a\"\n\t.balign 16\n\t.globl mc_at_device_code\n"
      "\t.hidden mc_at_device_code\nmc_at_device_code:\n\t.incbin \"" +
      fat_binary_path +
      "\"\n\t.section .data.rel.ro,\"aw\"\n\t.balign 8\n"
      "\t.globl mc_at_kernels\n\t.hidden mc_at_kernels\nmc_at_kernels:\n";
  for (size_t i = 0; i < kernels.size(); ++i) {
    text += "\t.quad " + kernels[i].symbol + "\n\t.quad .Lname" + std::to_string(i) + "\n";
  }
  text += "\t.quad 0\n\t.quad 0\n\t.section .rodata\n";
  for (size_t i = 0; i < kernels.size(); ++i) {
    text += ".Lname" + std::to_string(i) + ":\n\t.asciz \"" + kernels[i].symbol + "\"\n";
  }
  return text + "\t.section .note.GNU-stack,\"\",@progbits\n";
}

// The number in "-arch=sm_90a" and "-gencode=arch=compute_90a,code=sm_90a".
uint32_t architecture_in(const std::vector<const char*>& options) {
  constexpr std::string_view kName = "=sm_";
  for (const std::string_view option : options) {
    const size_t at = option.find(kName);
    if (at == std::string_view::npos) continue;
    return static_cast<uint32_t>(std::atoi(option.data() + at + kName.size()));
  }
  throw Failure{"no architecture is given"};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void print_version(const char* library) {
  int major = 0, minor = 0;
  Nvrtc(library).call("nvrtcVersion", &major, &minor);
  std::printf("%d.%d\n", major, minor);
}

void run(const char* const* argv, const std::vector<const char*>& options) {
  const std::vector<Kernel> kernels = kernels_in(read_file(argv[2]), lines_of(read_file(argv[4])));
  const std::string compiler = argv[1], source = read_file(argv[3]), out = argv[5];
  const Code code = compiler.ends_with("/nvcc")
                        ? compile_by_nvcc(compiler, source, kernels, options, out)
                        : compile_by_nvrtc(Nvrtc(argv[1]), source, kernels, options);
  write_file(out + ".fatbin", fat_binary(code, architecture_in(options)));
  write_file(out + ".s", table_of(kernels, out + ".fatbin"));
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kFixed = 6;
  const bool is_asked = argc == 3 && std::string_view(argv[1]) == "--version";
  if (argc < kFixed && !is_asked) {
    std::fputs("musacoder-kernels COMPILER OBJECT SOURCE KERNELS OUT OPTION...\n", stderr);
    return 2;
  }
  try {
    if (is_asked) return print_version(argv[2]), 0;
    run(argv, std::vector<const char*>(argv + kFixed, argv + argc));
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.why.c_str());
    return 1;
  }
  return 0;
}
