// SPDX-License-Identifier: Apache-2.0
// All PyTorch operators that the facade has: MC_AT_EACH_OPERATOR(row) expands to row(name,
// overload, entry) for each.
#ifndef MC_AT_OPERATORS_H_
#define MC_AT_OPERATORS_H_

#include "mc_at/abi.h"

// clang-format off
#define MC_AT_EACH_OPERATOR(row)                                             \
  /* Made of sizes and options. */                                           \
  row("empty", "memory_format", empty_memory_format)                         \
  row("empty_strided", "", empty_strided)                                    \
  row("zeros", "", zeros)                                                    \
  row("ones", "", ones)                                                      \
  row("full", "", full)                                                      \
  row("arange", "", arange)                                                  \
  row("arange", "start", arange_start)                                       \
  row("arange", "start_step", arange_start_step)                             \
  row("rand", "", rand)                                                      \
  row("randn", "", randn)                                                    \
  row("scalar_tensor", "", scalar_tensor)                                    \
  /* Made like another. */                                                   \
  row("empty_like", "", empty_like)                                          \
  row("zeros_like", "", zeros_like)                                          \
  row("ones_like", "", ones_like)                                            \
  row("full_like", "", full_like)                                            \
  row("rand_like", "", rand_like)                                            \
  row("randn_like", "", randn_like)                                          \
  row("new_empty", "", new_empty)                                            \
  row("new_zeros", "", new_zeros)                                            \
  row("new_ones", "", new_ones)                                              \
  row("new_full", "", new_full)                                              \
  /* Views. */                                                               \
  row("view", "", view)                                                      \
  row("view", "dtype", view_dtype)                                           \
  row("view_as", "", view_as)                                                \
  row("reshape", "", reshape)                                                \
  row("reshape_as", "", reshape_as)                                          \
  row("transpose", "int", transpose_int)                                     \
  row("permute", "", permute)                                                \
  row("t", "", t)                                                            \
  row("unsqueeze", "", unsqueeze)                                            \
  row("squeeze", "", squeeze)                                                \
  row("squeeze", "dim", squeeze_dim)                                         \
  row("slice", "Tensor", slice_Tensor)                                       \
  row("select", "int", select_int)                                           \
  row("narrow", "", narrow)                                                  \
  row("flatten", "using_ints", flatten_using_ints)                           \
  row("expand", "", expand)                                                  \
  row("expand_as", "", expand_as)                                            \
  row("as_strided", "", as_strided)                                          \
  row("chunk", "", chunk)                                                    \
  row("split", "Tensor", split_Tensor)                                       \
  row("unbind", "int", unbind_int)                                           \
  row("detach", "", detach)                                                  \
  row("alias", "", alias)                                                    \
  /* Copies and fills. */                                                    \
  row("contiguous", "", contiguous)                                          \
  row("clone", "", clone)                                                    \
  row("to", "dtype", to_dtype)                                               \
  row("to", "dtype_layout", to_dtype_layout)                                 \
  row("to", "device", to_device)                                             \
  row("to", "other", to_other)                                               \
  row("type_as", "", type_as)                                                \
  row("copy_", "", copy_)                                                    \
  row("fill_", "Scalar", fill__Scalar)                                       \
  row("zero_", "", zero_)                                                    \
  row("resize_", "", resize_)                                                \
  row("requires_grad_", "", requires_grad_)                                  \
  row("item", "", item)                                                      \
  row("cat", "", cat)                                                        \
  row("stack", "", stack)                                                    \
  row("repeat", "", repeat)                                                  \
  row("pad", "", pad)                                                        \
  /* What computes: policies that want a kernel of the candidate's own refuse these. */ \
  row("add", "Tensor", add_Tensor)                                           \
  row("add", "Scalar", add_Scalar)                                           \
  row("add_", "Tensor", add__Tensor)                                         \
  row("add_", "Scalar", add__Scalar)                                         \
  row("sub", "Tensor", sub_Tensor)                                           \
  row("sub", "Scalar", sub_Scalar)                                           \
  row("mul", "Tensor", mul_Tensor)                                           \
  row("mul", "Scalar", mul_Scalar)                                           \
  row("mul_", "Tensor", mul__Tensor)                                         \
  row("mul_", "Scalar", mul__Scalar)                                         \
  row("div", "Tensor", div_Tensor)                                           \
  row("div", "Scalar", div_Scalar)                                           \
  row("div_", "Tensor", div__Tensor)                                         \
  row("div_", "Scalar", div__Scalar)                                         \
  row("neg", "", neg)                                                        \
  row("sqrt", "", sqrt)                                                      \
  row("rsqrt", "", rsqrt)                                                    \
  row("exp", "", exp)                                                        \
  row("relu", "", relu)                                                      \
  row("sigmoid", "", sigmoid)                                                \
  row("tanh", "", tanh)                                                      \
  row("silu", "", silu)                                                      \
  row("mm", "", mm)                                                          \
  row("matmul", "", matmul)                                                  \
  row("bmm", "", bmm)                                                        \
  row("sum", "", sum)                                                        \
  row("sum", "dim_IntList", sum_dim_IntList)                                 \
  row("mean", "", mean)                                                      \
  row("mean", "dim", mean_dim)                                               \
  row("var", "", var)                                                        \
  row("var", "dim", var_dim)                                                 \
  row("max", "", max)                                                        \
  row("min", "", min)
// clang-format on

#pragma GCC visibility push(default)
extern "C" {
#define MC_AT_DECLARE(name, overload, entry) McAtOperator mc_at_op_##entry;
MC_AT_EACH_OPERATOR(MC_AT_DECLARE)
#undef MC_AT_DECLARE
}  // extern "C"
#pragma GCC visibility pop

#endif  // MC_AT_OPERATORS_H_
