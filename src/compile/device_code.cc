// SPDX-License-Identifier: Apache-2.0
//
// A function in the dump is a line with its attributes, where it has some; a line with its type,
// name and parameters; and a body in braces at the beginning of lines:
//
//   __attribute__((noclone, noinline))
//   void sort_rows (const float * x, int rows)
//   {
//     float D.1;
//
//     [cuda.cu:13:12] std::sort<float*> (x, _2);
//   }
#include "compile/device_code.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "lex/token.h"

namespace mc::compile {
namespace {

struct Location {
  std::string_view file;
  std::string_view text;  // "file:line:column"
};

struct Use {
  std::string_view name;
  Location location;
  bool is_call = false;
};

struct Function {
  bool is_for_device = false;
  bool is_for_host_too = false;
  std::string_view file;
  std::string_view parameters;
  std::vector<std::string_view> declarations;
  std::vector<Use> uses;
};

// Overloads of one name are one entry.
using Functions = std::unordered_map<std::string_view, Function>;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_operator_symbol(char c) {
  return std::string_view("+-*/%^&|~!=<>,").find(c) != std::string_view::npos;
}

// The end of a function's name that begins at `at`: before " (" outside of brackets.
size_t name_end(std::string_view text, size_t at) {
  constexpr std::string_view kOperator = "operator";
  int depth = 0;
  while (at < text.size()) {
    if (text.substr(at).starts_with(kOperator) && (at == 0 || !is_word(text[at - 1])) &&
        at + kOperator.size() < text.size() && !is_word(text[at + kOperator.size()])) {
      at += kOperator.size();
      if (text.substr(at).starts_with("()") || text.substr(at).starts_with("[]")) {
        at += 2;
      } else {
        while (at < text.size() && is_operator_symbol(text[at])) ++at;
      }
      continue;
    }
    const char c = text[at];
    if (c == '"') return std::string_view::npos;
    if (depth == 0 && text.substr(at).starts_with(" (")) return at;
    if (depth == 0 && (c == ';' || c == ',')) return std::string_view::npos;
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' || c == ')' || c == '}' || c == ']') --depth;
    if (depth < 0) return std::string_view::npos;
    ++at;
  }
  return std::string_view::npos;
}

// Takes "[file:line:column] " from the front.
std::optional<Location> take_location(std::string_view& text) {
  if (!text.starts_with('[')) return std::nullopt;
  const size_t end = text.find("] ");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inner = text.substr(1, end - 1);
  const size_t column = inner.rfind(':');
  const size_t line = column == std::string_view::npos || column == 0
                          ? std::string_view::npos
                          : inner.rfind(':', column - 1);
  if (line == std::string_view::npos) return std::nullopt;
  text.remove_prefix(end + 2);
  return Location{inner.substr(0, line), inner};
}

// The names in a statement: of what it calls, and of what else it mentions.
void read_statement(std::string_view text, Function* function) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  Location location;
  bool has_location = false;
  while (const auto found = take_location(text)) {
    if (!has_location) location = *found;
    has_location = true;
  }
  if (!has_location) {
    if (text.ends_with(';') && !has(text, "(")) function->declarations.push_back(text);
    return;
  }
  if (function->file.empty()) function->file = location.file;
  const size_t quote = std::min(text.find('"'), text.size());
  const size_t assigned = text.substr(0, quote).find(" = ");
  const size_t begin = assigned == std::string_view::npos ? 0 : assigned + 3;
  const size_t end = name_end(text, begin);
  if (end != std::string_view::npos && end > begin) {
    function->uses.push_back({text.substr(begin, end - begin), location, true});
  }
  // Plain names anywhere: functions whose address is taken, and variables.
  for (size_t i = 0; i < quote;) {
    if (i == begin && end != std::string_view::npos) i = end;
    // A file's name in a location is no name of the program.
    if (std::string_view rest = text.substr(i); take_location(rest)) {
      i = text.size() - rest.size();
      continue;
    }
    if (i >= quote || !is_word(text[i])) {
      ++i;
      continue;
    }
    const size_t from = i;
    while (i < quote && (is_word(text[i]) || text.substr(i).starts_with("::") ||
                         (i > from && text[i] == ':' && text[i - 1] == ':'))) {
      ++i;
    }
    const bool is_member = from > 0 && (text[from - 1] == '.' || text[from - 1] == '>');
    const bool is_scope = i < quote && text[i] == '(';
    if (!is_member && !is_scope) {
      function->uses.push_back({text.substr(from, i - from), location, false});
    }
  }
}

// The name in "void sort_rows (const float * x)", and its parameters.
std::optional<std::pair<std::string_view, std::string_view>> name_in_header(
    std::string_view line, const std::unordered_set<std::string_view>& called) {
  if (!line.ends_with(')')) return std::nullopt;
  size_t open = line.size();
  int depth = 0;
  while (open > 0) {
    --open;
    if (line[open] == ')') ++depth;
    if (line[open] == '(' && --depth == 0) break;
  }
  if (depth != 0 || open < 2 || line[open - 1] != ' ') return std::nullopt;
  const std::string_view front = line.substr(0, open - 1);
  const std::string_view parameters = line.substr(open);
  // The longest end of it that is called somewhere; else the last word.
  for (size_t at = 0; at < front.size(); ++at) {
    if ((at == 0 || front[at - 1] == ' ') && called.contains(front.substr(at))) {
      return std::pair{front.substr(at), parameters};
    }
  }
  depth = 0;
  size_t at = front.size();
  while (at > 0 && (depth > 0 || front[at - 1] != ' ')) {
    --at;
    if (front[at] == '>' || front[at] == ')') ++depth;
    if (front[at] == '<' || front[at] == '(') --depth;
  }
  return std::pair{front.substr(at), parameters};
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Functions read_functions(std::string_view dump) {
  struct Raw {
    std::string_view header;
    Function function;
  };
  std::vector<Raw> raw;
  std::string_view attributes;
  for (const std::string_view line : lines_of(dump)) {
    if (line.starts_with("__attribute__((")) {
      attributes = line;
    } else if (line.empty() || line == "{" || line == "}" || line.starts_with('[')) {
      continue;
    } else if (line.starts_with(' ')) {
      if (!raw.empty()) read_statement(line, &raw.back().function);
    } else {
      raw.push_back({line, {}});
      raw.back().function.is_for_device = has(attributes, "noclone");
      raw.back().function.is_for_host_too = has(attributes, "no_profile_instrument_function");
      attributes = {};
    }
  }
  std::unordered_set<std::string_view> called;
  for (const Raw& entry : raw) {
    for (const Use& use : entry.function.uses) {
      if (use.is_call) called.insert(use.name);
    }
  }
  Functions functions;
  for (Raw& entry : raw) {
    const auto found = name_in_header(entry.header, called);
    if (!found) continue;
    Function& function = functions[found->first];
    const bool is_for_host_too =
        entry.function.is_for_host_too || (function.is_for_device && function.is_for_host_too);
    function.is_for_device |= entry.function.is_for_device;
    function.is_for_host_too = is_for_host_too;
    if (function.file.empty()) function.file = entry.function.file;
    function.parameters = found->second;
    function.uses.insert(function.uses.end(), entry.function.uses.begin(),
                         entry.function.uses.end());
    function.declarations.insert(function.declarations.end(), entry.function.declarations.begin(),
                                 entry.function.declarations.end());
  }
  return functions;
}

// --- Names.

// "ns::F<float>::run" without template arguments and scopes: "run".
std::string_view base_name(std::string_view name) {
  if (const size_t at = name.rfind("operator");
      at != std::string_view::npos && (at == 0 || !is_word(name[at - 1]))) {
    return "operator";
  }
  size_t end = name.size();
  if (name.ends_with('>')) {
    int depth = 0;
    while (end > 0) {
      --end;
      if (name[end] == '>') ++depth;
      if (name[end] == '<' && --depth == 0) break;
    }
  }
  size_t begin = end;
  while (begin > 0 && is_word(name[begin - 1])) --begin;
  return name.substr(begin, end - begin);
}

// "ns::F<float>::F", "ns::F::~F" and operator=, which the compiler may have made, and what is
// local to a function: lambdas, and members of its classes.
bool is_made_or_local(std::string_view name) {
  if (has(name, "<lambda") || has(name, ")::")) return true;
  const std::string_view base = base_name(name);
  const size_t begin = static_cast<size_t>(base.data() - name.data());
  if (base == "operator") return name.ends_with("operator=");
  if (begin > 0 && name[begin - 1] == '~') return true;
  const std::string_view scope = name.substr(0, begin);
  return scope.ends_with("::") && base_name(scope.substr(0, scope.size() - 2)) == base;
}

// Algorithms that are constexpr from C++20 on only.
constexpr std::string_view kHostAlgorithms =
    " accumulate adjacent_difference adjacent_find all_of any_of binary_search copy "
    "copy_backward copy_if copy_n count count_if equal equal_range exclusive_scan fill "
    "fill_n find find_first_of find_if find_if_not for_each for_each_n generate generate_n "
    "includes inclusive_scan inner_product inplace_merge iota is_heap is_sorted "
    "is_sorted_until lexicographical_compare lower_bound make_heap merge mismatch "
    "move_backward next_permutation none_of nth_element partial_sort partial_sort_copy "
    "partial_sum partition pop_heap prev_permutation push_heap reduce remove remove_if "
    "replace replace_if reverse reverse_copy rotate search set_difference set_intersection "
    "set_union shuffle sort sort_heap stable_partition stable_sort swap_ranges transform "
    "transform_reduce unique unique_copy upper_bound ";

constexpr std::string_view kHostClasses =
    " basic_fstream basic_ifstream basic_ios basic_iostream basic_istream basic_ofstream "
    "basic_ostream basic_ostringstream basic_string basic_stringstream "
    "atomic "
    "__atomic_base condition_variable deque forward_list function future list lock_guard "
    "map mersenne_twister_engine multimap multiset mutex normal_distribution "
    "priority_queue promise queue random_device set shared_ptr stack string thread "
    "uniform_int_distribution uniform_real_distribution unique_lock unique_ptr "
    "unordered_map unordered_multimap unordered_multiset unordered_set valarray vector ";

// Lists are words between single spaces.
bool is_listed(std::string_view list, std::string_view word) {
  const size_t at = word.empty() ? std::string_view::npos : list.find(word);
  for (size_t i = at; i != std::string_view::npos; i = list.find(word, i + 1)) {
    if (i > 0 && list[i - 1] == ' ' && list[i + word.size()] == ' ') return true;
  }
  return false;
}

// "std::sort<int*>" without what is before and behind the word: "sort".
std::string_view word_of_std(std::string_view name) {
  for (const std::string_view scope : {"std::", "__cxx11::"}) {
    if (name.starts_with(scope)) {
      name.remove_prefix(scope.size());
    } else if (scope == "std::") {
      return {};
    }
  }
  const auto end = std::ranges::find_if_not(name, is_word);
  return name.substr(0, static_cast<size_t>(end - name.begin()));
}

// Only the function itself, not a class that is named after it.
bool is_host_algorithm(std::string_view name) {
  const std::string_view word = word_of_std(name);
  return is_listed(kHostAlgorithms, word) && base_name(name) == word;
}

bool is_of_host_class(std::string_view name) { return is_listed(kHostClasses, word_of_std(name)); }

// Functions of the C library that are the host's.  Those that CUDA has, and mathematics, are not
// here: a list of what is allowed would refuse a name that was forgotten.
constexpr std::string_view kHostOfC =
    " __sigsetjmp _exit _longjmp _setjmp accept access aligned_alloc atexit atof atoi atol "
    "backtrace bcmp bcopy bind brk bsearch bzero calloc chdir chmod clock_gettime clone "
    "close closedir connect creat dlclose dlopen dlsym dprintf drand48 dup dup2 environ "
    "execl execle execlp execv execve execvp exit fclose fdopen fflush fgets fopen fork "
    "fprintf fputc fputs fread freopen fscanf fseek fsync ftell ftruncate fwrite getchar "
    "getcwd getenv getpid getppid gettimeofday ioctl kill listen localtime longjmp lrand48 "
    "lseek madvise memccpy memfd_create mempcpy mkdir mkstemp mlock mmap mmap64 mprotect "
    "mremap msync munmap nanosleep open open64 openat opendir pause pclose perror pipe "
    "pipe2 popen posix_memalign prctl pread pread64 process_vm_readv process_vm_writev "
    "pthread_cond_signal pthread_cond_wait pthread_create pthread_getspecific pthread_join "
    "pthread_key_create pthread_mutex_lock pthread_mutex_unlock pthread_once pthread_self "
    "pthread_setspecific ptrace putchar putenv puts pwrite pwrite64 qsort qsort_r raise "
    "rand rand_r random read readlink readv realloc recv recvfrom recvmsg remove rename "
    "rmdir scanf sched_yield select send sendmsg sendto setenv setjmp setsockopt shm_open "
    "shmat shmget sigaction signal sigsetjmp sleep snprintf socket socketpair sprintf "
    "srand srandom sscanf stat stpcpy strcat strcpy strdup strncat strncpy strtod strtof "
    "strtol strtoll strtoul swab syscall system time tmpfile truncate unlink usleep vfork "
    "vfprintf vsnprintf wait waitpid write writev ";

// Names of these that a variable may well have: only calls of them count.
constexpr std::string_view kCommonWords =
    " accept access bind clone close connect environ exit kill listen open pause pipe "
    "raise rand random read recv remove rename select send signal sleep socket stat system "
    "time truncate wait write ";

// --- The candidate's own words.

// The names of its constexpr functions, and of its thread_local variables.
struct Words {
  std::unordered_set<std::string_view> constexpr_functions;
  std::unordered_set<std::string_view> thread_locals;
};

bool is_punctuation(std::string_view text) {
  return text == ";" || text == "{" || text == "}" || text == "=" || text == "[";
}

void read_words(std::string_view source, Words* words) {
  std::vector<std::string_view> tokens;
  for (const lex::Token& token : lex::tokenize(source)) {
    if (token.kind == lex::Kind::kWhitespace || token.kind == lex::Kind::kComment) continue;
    tokens.push_back(lex::text_of(source, token));
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_constexpr = tokens[i] == "constexpr" || tokens[i] == "consteval";
    const bool is_thread_local = tokens[i] == "thread_local" || tokens[i] == "__thread";
    if (!is_constexpr && !is_thread_local) continue;
    for (size_t k = i + 1; k < tokens.size() && !is_punctuation(tokens[k]); ++k) {
      // In an operator's name the word itself is the name.
      if (is_constexpr && tokens[k] == "operator") words->constexpr_functions.insert(tokens[k]);
      if (is_constexpr && tokens[k] == "(") {
        words->constexpr_functions.insert(tokens[k - 1]);
        break;
      }
      const bool ends = k + 1 == tokens.size() || is_punctuation(tokens[k + 1]) ||
                        tokens[k + 1] == "(" || tokens[k + 1] == ",";
      if (is_thread_local && ends) {
        words->thread_locals.insert(tokens[k]);
        break;
      }
    }
  }
}

// --- The rule.

class Rule {
 public:
  Rule(const Functions& functions, const Words& words, const DeviceCodeContext& context)
      : functions_(functions), words_(words), context_(context) {
    for (const auto& [name, function] : functions_) by_base_name_[base_name(name)].push_back(name);
  }

  std::string errors() {
    for (const auto& [name, function] : functions_) {
      if (function.is_for_device && !function.is_for_host_too && is_own(function.file)) {
        visit(name, function);
      }
    }
    while (!queue_.empty()) {
      const auto [name, function] = queue_.front();
      queue_.pop_front();
      for (const Use& use : function->uses) check(name, *function, use);
    }
    std::string text;
    for (const auto& [location, message] : errors_) text += location + ": error: " + message + "\n";
    return text;
  }

 private:
  struct Entry {
    std::string_view name;
    const Function* function = nullptr;
  };

  void visit(std::string_view name, const Function& function) {
    if (visited_.insert(name).second) queue_.push_back({name, &function});
  }

  bool is_own(std::string_view file) const {
    if (file.empty()) return false;
    if (!file.starts_with('/')) return true;
    return std::ranges::any_of(context_.own_folders,
                               [&](const std::string& folder) { return file.starts_with(folder); });
  }

  bool is_trusted(std::string_view file) const {
    return std::ranges::any_of(context_.trusted_folders,
                               [&](const std::string& folder) { return file.starts_with(folder); });
  }

  bool is_host_of_std(std::string_view name) const {
    return is_of_host_class(name) ||
           (!context_.has_constexpr_algorithms && is_host_algorithm(name));
  }

  void refuse(const Use& use, std::string message) {
    errors_.emplace(std::string(use.location.text), std::move(message));
  }

  void refuse_call(std::string_view caller, const Use& use, std::string_view kind) {
    // Arguments of a template say nothing new, and may be long.
    const bool has_operator = base_name(use.name) == "operator";
    const std::string_view name = has_operator ? use.name : use.name.substr(0, use.name.find('<'));
    refuse(use, "calling a __host__ function (\"" + std::string(name) + "\"" + std::string(kind) +
                    ") from device code (\"" + std::string(base_name(caller)) +
                    "\") is not allowed");
  }

  void check(std::string_view caller, const Function& function, const Use& use) {
    // A variable may have the name of a function.
    if (!use.is_call && declares(function, use.name)) return;
    const auto found = functions_.find(use.name);
    if (found != functions_.end()) {
      follow(caller, use, found->first, found->second);
      return;
    }
    if (!is_own(use.location.file)) return;
    // A function whose address is taken goes by its last name alone.
    if (const auto same = by_base_name_.find(use.name);
        same != by_base_name_.end() && !use.is_call) {
      for (const std::string_view name : same->second) {
        follow(caller, use, name, functions_.at(name));
      }
    }
    check_other(caller, use);
  }

  void follow(std::string_view caller, const Use& use, std::string_view name,
              const Function& callee) {
    if (callee.is_for_device) {
      if (callee.is_for_host_too) visit(name, callee);
      return;
    }
    const bool is_hosts_own = is_own(callee.file) && !is_made_or_local(name) &&
                              !words_.constexpr_functions.contains(base_name(name));
    if (is_own(use.location.file) && (is_hosts_own || is_host_of_std(name))) {
      refuse_call(caller, {name, use.location, use.is_call}, "");
    } else if (!is_trusted(callee.file)) {
      visit(name, callee);
    }
  }

  // Names without a body here: functions of libraries, and variables.
  void check_other(std::string_view caller, const Use& use) {
    const std::string_view name = use.name;
    if (name == "__cxa_throw" || name == "__cxa_rethrow") {
      refuse(use, "device code cannot throw: exceptions are not supported there");
    } else if (name == "__cxa_begin_catch") {
      refuse(use, "device code cannot catch: exceptions are not supported there");
    } else if (use.is_call && is_host_of_std(name)) {
      refuse_call(caller, use, "");
    } else if (is_listed(kHostOfC, name)) {
      if (use.is_call || !is_listed(kCommonWords, name)) {
        refuse_call(caller, use, " of the C library");
      }
    } else if (words_.thread_locals.contains(base_name(name))) {
      refuse(use, "device code cannot use the thread_local variable \"" + std::string(name) + "\"");
    }
  }

  // True when the function has a variable of that name, or a parameter.
  static bool declares(const Function& function, std::string_view name) {
    const auto names_it = [&](std::string_view text) {
      for (size_t at = text.find(name); at != std::string_view::npos;
           at = text.find(name, at + 1)) {
        const size_t end = at + name.size();
        const bool is_whole =
            (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
        if (is_whole && !text.starts_with("static ")) return true;
      }
      return false;
    };
    return names_it(function.parameters) ||
           std::ranges::any_of(function.declarations, [&](std::string_view line) {
             return names_it(line.substr(std::min(line.find_first_not_of(' '), line.size())));
           });
  }

  const Functions& functions_;
  const Words& words_;
  const DeviceCodeContext& context_;
  std::unordered_map<std::string_view, std::vector<std::string_view>> by_base_name_;
  std::unordered_set<std::string_view> visited_;
  std::deque<Entry> queue_;
  std::set<std::pair<std::string, std::string>> errors_;
};

}  // namespace

std::string device_code_errors(std::string_view dump, std::span<const std::string_view> sources,
                               const DeviceCodeContext& context) {
  const Functions functions = read_functions(dump);
  Words words;
  for (const std::string_view source : sources) read_words(source, &words);
  return Rule(functions, words, context).errors();
}

}  // namespace mc::compile
