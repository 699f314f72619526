// SPDX-License-Identifier: Apache-2.0
//
// CUDA words in the Python literals of a MUSA candidate: data, and pieces of sources.
//
// The port turns the device name "musa" into "cuda", so a literal "cuda" of the candidate must
// become something else: a stand-in, which is not a CUDA device, as "cuda" is not a MUSA device.
// Comparisons then have the same result as on MUSA, and a call that uses the stand-in as a device
// fails.  A source that the ported module assembles has stand-ins for the candidate's CUDA words,
// and CUDA words for its MUSA words, so the source that the original module would have assembled
// can be reconstructed.
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

  // The module with stand-ins in its literals, and with False for `torch.cuda.is_available()`.
  std::string with_stand_ins() const;

  // The source that the original module assembles where its port assembled `source`.
  std::string as_written(std::string_view source) const;

  // The offsets of CUDA words that MUSA accepts: the contents of literals that are data, that is,
  // of literals that are not an argument that names a device; `cuda` of
  // `torch.cuda.is_available()`; and an extension's function with that name.
  const std::set<std::size_t>& allowed() const { return allowed_; }

  // CUDA attributes that a string names, as in getattr(x, "is_cuda"), by their offsets.
  const std::map<std::size_t, std::string>& attributes() const { return attributes_; }

 private:
  std::string module_;
  std::set<std::string, std::less<>> names_;  // The module's names with `cuda` in them.
  std::set<std::size_t> allowed_;
  std::map<std::size_t, std::string> attributes_;
  bool has_device_ = false;        // True if a literal is a device of MUSA.
  bool has_dispatch_key_ = false;  // True if a literal is the dispatch key PrivateUse1.
};

// The same two functions for C++ strings.  Data are operands of == and !=, messages, and names that
// pybind11 gives to functions; such names stay.
std::set<std::size_t> allowed_in(std::string_view source);
std::string with_stand_ins_in(std::string_view source);

// The original words in place of their stand-ins, for evidence.
std::string without_stand_ins(std::string_view text);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_OWN_WORDS_H_
