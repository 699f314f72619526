// SPDX-License-Identifier: Apache-2.0
#include "forge/types.h"

#include <fmt/format.h>

#include "forge/text.h"

namespace mc::forge {
namespace {

struct Row {
  const char* name;
  const char* element;
  const char* compute;
  const char* load;
  const char* store;
};
constexpr Row kRows[] = {
    {"float32", "float", "float", "", ""},
    {"float16", "__half", "float", "__half2float", "__float2half"},
    {"bfloat16", "__nv_bfloat16", "float", "__bfloat162float", "__float2bfloat16"},
    {"int32", "int", "int", "", ""},
    {"int64", "int64_t", "int64_t", "", ""},
};

const Row& row_of(Type type) { return kRows[static_cast<size_t>(type)]; }

std::string called(const char* function, std::string_view argument) {
  return *function == 0 ? std::string(argument) : fmt::format("{}({})", function, argument);
}

}  // namespace

const char* to_string(Type type) { return row_of(type).name; }

std::optional<Type> type_of(std::string_view name) {
  for (const Type type : kTypes) {
    if (name == to_string(type)) return type;
  }
  return std::nullopt;
}

bool is_whole(Type type) { return type == Type::kInt32 || type == Type::kInt64; }
bool is_half(Type type) { return type == Type::kFloat16 || type == Type::kBfloat16; }
int bytes_of(Type type) { return is_half(type) ? 2 : type == Type::kInt64 ? 8 : 4; }

const char* element_text(Type type) { return row_of(type).element; }
const char* compute_text(Type type) { return row_of(type).compute; }

std::string load_text(Type type, std::string_view element) {
  return called(row_of(type).load, element);
}

std::string store_text(Type type, std::string_view value) {
  return called(row_of(type).store, value);
}

std::string pointer_text(Type type, std::string_view tensor) {
  // PyTorch's half types differ from CUDA's, but have the same bits.
  if (is_half(type)) return fmt::format("({}*){}.data_ptr()", element_text(type), tensor);
  return fmt::format("{}.data_ptr<{}>()", tensor, element_text(type));
}

std::string includes_of(std::string_view cuda) {
  std::string text;
  if (has_word(cuda, "__half")) text += "#include <cuda_fp16.h>\n";
  if (has_word(cuda, "__nv_bfloat16")) text += "#include <cuda_bf16.h>\n";
  return text;
}

}  // namespace mc::forge
