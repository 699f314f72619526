// SPDX-License-Identifier: Apache-2.0
//
// The words of CUDA in the Python literals of a candidate for MUSA: data, and pieces of sources.
//
// The port makes "cuda" of the device "musa", so a literal "cuda" of the candidate must become
// something else: a stand-in, which is no device of CUDA, as "cuda" is none of MUSA.  Comparisons
// then come out as on MUSA, and a call that takes it for a device fails.  A source that the module
// puts together has stand-ins where the candidate has words of CUDA, and words of CUDA where it has
// those of MUSA, so what the candidate's own text would have made can be told.
//
//   SOURCE.replace("@NS@", "musa")   at::cuda in the ported module's source    at::musa as written
//   SOURCE.replace("@NS@", "cuda")   at::foreigncuda                           at::cuda
#ifndef MC_EVAL_MUSA_OWN_WORDS_H_
#define MC_EVAL_MUSA_OWN_WORDS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace mc::eval {

class OwnWords {
 public:
  explicit OwnWords(std::string_view module);

  // The module with stand-ins in its literals, and False for `torch.cuda.is_available()`.
  std::string with_stand_ins() const;

  // The source that the module itself makes where its port made `source`.
  std::string as_written(std::string_view source) const;

  // The offsets of words of CUDA that MUSA lets pass: the contents of literals that are data, which
  // means no argument that names a device, `cuda` of `torch.cuda.is_available()`, and a function of
  // an extension that is called so.
  const std::set<std::size_t>& allowed() const { return allowed_; }

  // Attributes of CUDA that a string names, as in getattr(x, "is_cuda"), by their offsets.
  const std::map<std::size_t, std::string>& attributes() const { return attributes_; }

 private:
  std::string module_;
  std::set<std::string, std::less<>> names_;  // The module's names with `cuda` in them.
  std::set<std::size_t> allowed_;
  std::map<std::size_t, std::string> attributes_;
  bool has_device_ = false;        // True if a literal is a device of MUSA.
  bool has_dispatch_key_ = false;  // True if a literal is PrivateUse1.
};

// The same for the strings of C++: data are operands of == and !=, messages, and names that
// pybind11 gives to functions.  The names stay.
std::set<std::size_t> allowed_in(std::string_view source);
std::string with_stand_ins_in(std::string_view source);

// The words themselves, for evidence.
std::string without_stand_ins(std::string_view text);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_OWN_WORDS_H_
