// SPDX-License-Identifier: Apache-2.0
//
// Types of a graph's values, and how they are written.  Halves are stored as such and computed in
// float; integers are computed as they are stored.
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
int bytes_of(Type type);  // An element has as many.

// "__half": an element in CUDA.
const char* element_text(Type type);
// "float": what kernels compute in.
const char* compute_text(Type type);
// "__half2float(x[i])" of "x[i]".
std::string load_text(Type type, std::string_view element);
// "__float2half(v)" of "v".
std::string store_text(Type type, std::string_view value);
// "x.data_ptr<float>()".
std::string pointer_text(Type type, std::string_view tensor);
// The lines that a text with such elements has to begin with.
std::string includes_of(std::string_view cuda);

}  // namespace mc::forge

#endif  // MC_FORGE_TYPES_H_
