// SPDX-License-Identifier: Apache-2.0
//
// Two visitors of a verdict's fields: Writer turns them into JSON; Reader sets them from JSON,
// tracks the path of the current field, and stops at the first error.
#include "task/verdict_json.h"

#include <cmath>
#include <limits>
#include <set>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "task/verdict_fields.h"

namespace mc::task {
namespace {

using Json = nlohmann::json;                 // For reading: an object of n fields costs n log n.
using OrderedJson = nlohmann::ordered_json;  // For writing: fields keep their order.

// The text form of a double that JSON has no number for.
const char* non_finite_name(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// ---- Writing ------------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(OrderedJson& out) : out_(out) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    out_[name] = json_of(value);
  }

 private:
  static OrderedJson json_of(std::string& value) { return value; }
  static OrderedJson json_of(bool& value) { return value; }
  static OrderedJson json_of(int& value) { return value; }
  static OrderedJson json_of(int64_t& value) { return value; }
  static OrderedJson json_of(WideRef& ref) { return std::to_string(ref.value); }
  static OrderedJson json_of(Backend& value) { return to_string(value); }
  static OrderedJson json_of(Dialect& value) { return to_string(value); }

  static OrderedJson json_of(double& value) {
    return std::isfinite(value) ? OrderedJson(value) : OrderedJson(non_finite_name(value));
  }
  static OrderedJson json_of(std::map<std::string, int64_t>& map) {
    OrderedJson out = OrderedJson::object();
    for (auto& [key, value] : map) out[key] = value;
    return out;
  }
  template <typename T>
  static OrderedJson json_of(std::optional<T>& value) {
    return value ? json_of(*value) : OrderedJson(nullptr);
  }
  template <typename T>
  static OrderedJson json_of(std::vector<T>& values) {
    return list_of(values);
  }
  static OrderedJson json_of(std::array<int64_t, 3>& values) { return list_of(values); }
  static OrderedJson json_of(Outcome& outcome) {
    OrderedJson out = {{"kind", outcome_name(outcome)}};
    std::visit([&](auto& value) { write_fields(out, value); }, outcome);
    return out;
  }
  template <typename T>
    requires std::is_class_v<T>
  static OrderedJson json_of(T& value) {
    OrderedJson out = OrderedJson::object();
    write_fields(out, value);
    return out;
  }

  template <typename List>
  static OrderedJson list_of(List& values) {
    OrderedJson out = OrderedJson::array();
    for (auto& value : values) out.push_back(json_of(value));
    return out;
  }
  template <typename T>
  static void write_fields(OrderedJson& out, T& value) {
    Writer writer(out);
    fields(writer, value);
  }

  OrderedJson& out_;
};

// ---- Reading ------------------------------------------------------------------------------------

// A value in a message: a string in quotes, cut where it is long; of any other value its type.
std::string shown(const Json& value) {
  constexpr size_t kShownBytesMax = 60;
  if (!value.is_string()) return value.type_name();
  const std::string text = value.get<std::string>().substr(0, kShownBytesMax);
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

class Reader {
 public:
  const std::string& error() const { return error_; }

  // Reads `value` from an object that has exactly its fields, and those of `extra`.
  template <typename T>
  void read_object(const Json& in, T& value, std::set<std::string> extra = {}) {
    if (!in.is_object()) return fail("not an object");
    const Json* outer = std::exchange(object_, &in);
    std::set<std::string> outer_known = std::exchange(known_, std::move(extra));
    fields(*this, value);
    for (const auto& [key, ignored] : in.items()) {
      if (!known_.contains(key)) fail("has a field that does not belong: " + shown(key));
    }
    object_ = outer;
    known_ = std::move(outer_known);
  }

  // Called by fields() for each member of the object being read.
  template <typename T>
  void operator()(const char* name, T& value) {
    if (!error_.empty()) return;
    known_.insert(name);
    const auto found = object_->find(name);
    if (found == object_->end()) return fail(std::string("lacks the field \"") + name + '"');
    const Scope scope(*this, path_.empty() ? name : std::string(".") + name);
    read(*found, value);
  }

 private:
  // Extends the path during its lifetime.
  class Scope {
   public:
    Scope(Reader& reader, const std::string& step) : reader_(reader), size_(reader.path_.size()) {
      reader_.path_ += step;
    }
    ~Scope() { reader_.path_.resize(size_); }

   private:
    Reader& reader_;
    size_t size_;
  };

  void fail(const std::string& what) {
    if (error_.empty()) error_ = (path_.empty() ? "verdict" : path_) + ": " + what;
  }

  void read(const Json& in, std::string& out) {
    if (!in.is_string()) return fail("not a string");
    out = in.get<std::string>();
  }
  void read(const Json& in, bool& out) {
    if (!in.is_boolean()) return fail("not a boolean");
    out = in.get<bool>();
  }
  void read(const Json& in, int64_t& out) {
    constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
    if (!in.is_number_integer()) return fail("not an integer");
    if (in.is_number_unsigned() && in.get<uint64_t>() > kMax) return fail("too large");
    out = in.get<int64_t>();
  }
  void read(const Json& in, int& out) {
    int64_t wide = 0;
    read(in, wide);
    if (wide != static_cast<int>(wide)) return fail("too large");
    out = static_cast<int>(wide);
  }
  void read(const Json& in, double& out) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (in.is_number())
      out = in.get<double>();
    else if (in == "nan")
      out = std::numeric_limits<double>::quiet_NaN();
    else if (in == "inf")
      out = kInfinity;
    else if (in == "-inf")
      out = -kInfinity;
    else
      fail("not a number, \"nan\", \"inf\" or \"-inf\"");
  }
  void read(const Json& in, WideRef& out) {
    std::string digits;
    read(in, digits);
    if (!error_.empty()) return;
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) {
      return fail("not a string of decimal digits");
    }
    uint64_t value = 0;
    for (const char digit : digits) {
      if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
          __builtin_add_overflow(value, static_cast<uint64_t>(digit - '0'), &value)) {
        return fail("needs more than 64 bits");
      }
    }
    out.value = value;
  }
  void read(const Json& in, Backend& out) {
    for (const Backend backend : {Backend::kCpu, Backend::kCuda, Backend::kMusa}) {
      if (in == to_string(backend)) {
        out = backend;
        return;
      }
    }
    fail("not a backend: " + shown(in));
  }
  void read(const Json& in, Dialect& out) {
    for (const Dialect dialect : kDialects) {
      if (in == to_string(dialect)) {
        out = dialect;
        return;
      }
    }
    fail("not a dialect: " + shown(in));
  }
  void read(const Json& in, std::map<std::string, int64_t>& out) {
    if (!in.is_object()) return fail("not an object");
    for (const auto& [key, value] : in.items()) {
      const Scope scope(*this, "[" + shown(key) + "]");
      read(value, out[key]);
    }
  }
  void read(const Json& in, std::array<int64_t, 3>& out) {
    if (!in.is_array() || in.size() != out.size()) return fail("not an array of 3");
    for (size_t i = 0; i < out.size(); ++i) read_item(in, i, out[i]);
  }
  template <typename T>
  void read(const Json& in, std::vector<T>& out) {
    if (!in.is_array()) return fail("not an array");
    out.resize(in.size());
    for (size_t i = 0; i < out.size(); ++i) read_item(in, i, out[i]);
  }
  template <typename T>
  void read_item(const Json& in, size_t i, T& out) {
    const Scope scope(*this, "[" + std::to_string(i) + "]");
    read(in[i], out);
  }
  template <typename T>
  void read(const Json& in, std::optional<T>& out) {
    if (in.is_null()) return out.reset();
    read(in, out.emplace());
  }
  template <typename T>
    requires std::is_class_v<T>
  void read(const Json& in, T& out) {
    read_object(in, out);
  }

  void read(const Json& in, Outcome& out) {
    if (!in.is_object() || !in.contains("kind")) return fail("not an object with a \"kind\"");
    const auto& names = outcome_names();
    for (size_t i = 0; i < names.size(); ++i) {
      if (in["kind"] == names[i]) return read_alternative<0>(in, i, out);
    }
    fail("not an outcome: " + shown(in["kind"]));
  }
  template <size_t I>
  void read_alternative(const Json& in, size_t index, Outcome& out) {
    if constexpr (I < std::variant_size_v<Outcome>) {
      if (index != I) return read_alternative<I + 1>(in, index, out);
      read_object(in, out.emplace<I>(), {"kind"});
    }
  }

  std::string path_;
  std::string error_;  // The first one.
  const Json* object_ = nullptr;
  std::set<std::string> known_;  // Names of the object's fields so far.
};

// Throws nlohmann's parse_error.
Result<Verdict> verdict_of(std::string_view text) {
  Json in = Json::parse(text);
  if (!in.is_object()) return invalid("verdict: not an object");
  if (!in.contains("schema") || in["schema"] != kVerdictSchema) {
    return invalid(std::string("schema: not \"") + kVerdictSchema + '"');
  }
  Verdict verdict;
  Reader reader;
  reader.read_object(in, verdict, {"schema"});
  if (!reader.error().empty()) return invalid(reader.error());
  return verdict;
}

}  // namespace

std::string to_json(const Verdict& verdict, Indent indent) {
  OrderedJson out = {{"schema", kVerdictSchema}};
  Writer writer(out);
  // A copy, since fields() also serves readers and so takes a mutable value.
  Verdict copy = verdict;
  fields(writer, copy);
  return out.dump(indent == Indent::kPretty ? 2 : -1, ' ', false,
                  OrderedJson::error_handler_t::replace);
}

Result<Verdict> verdict_from_json(std::string_view text) {
  if (text.size() > kVerdictBytesMax) {
    return invalid("verdict: more than " + std::to_string(kVerdictBytesMax) + " bytes");
  }
  try {
    return verdict_of(text);
  } catch (const Json::parse_error& error) {
    return invalid("verdict: not JSON at byte " + std::to_string(error.byte));
  } catch (const Json::exception& error) {
    return invalid(std::string("verdict: ") + error.what());
  }
}

}  // namespace mc::task
