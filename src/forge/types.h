// SPDX-License-Identifier: Apache-2.0
//
// Types of a graph's values, and their text.  Half types are stored as such and computed in float;
// integers are computed in their own type.
#ifndef MC_FORGE_TYPES_H_
#define MC_FORGE_TYPES_H_

#include <optional>
#include <string>
#include <string_view>

namespace mc::forge {

enum class Type { kFloat32, kFloat16, kBfloat16, kInt32, kInt64 };
inline constexpr Type kTypes[] = {Type::kFloat32, Type::kFloat16, Type::kBfloat16, Type::kInt32,
                                  Type::kInt64};

const char* to_string(Type type);  // "float16", as in PyTorch.
std::optional<Type> type_of(std::string_view name);

bool is_whole(Type type);
bool is_half(Type type);
int bytes_of(Type type);  // The size of an element in bytes.

// The CUDA type of an element, such as "__half".
const char* element_text(Type type);
// The type in which kernels compute, such as "float".
const char* compute_text(Type type);
// The text that loads an element: "__half2float(x[i])" for "x[i]".
std::string load_text(Type type, std::string_view element);
// The text that stores a value: "__float2half(v)" for "v".
std::string store_text(Type type, std::string_view value);
// The text of a tensor's pointer: "x.data_ptr<float>()".
std::string pointer_text(Type type, std::string_view tensor);
// The include lines that a CUDA text needs for its element types.
std::string includes_of(std::string_view cuda);

}  // namespace mc::forge

#endif  // MC_FORGE_TYPES_H_
