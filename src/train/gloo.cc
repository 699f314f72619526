// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's package contains the header of its process group, but not the gloo headers that it
// includes. The build creates empty ones instead, and the names that the header needs are declared
// here.  Our code uses none of these names; all code and layouts that depend on them are in
// PyTorch's library.
#include "train/gloo.h"

#include <chrono>
#include <string>
#include <vector>

namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
namespace rendezvous {
class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace rendezvous
namespace transport {
class Device;
class UnboundBuffer;
}  // namespace transport
}  // namespace gloo

#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace mc::train {
namespace {

class GlooReducer : public Reducer {
 public:
  explicit GlooReducer(c10::intrusive_ptr<c10d::ProcessGroupGloo> group)
      : group_(std::move(group)) {}

  void sum(const at::Tensor& tensor) override {
    std::vector<at::Tensor> tensors = {tensor};
    group_->allreduce(tensors)->wait();
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

}  // namespace

std::unique_ptr<Reducer> join_by_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                      const RankSetup& setup) {
  using Group = c10d::ProcessGroupGloo;
  const auto options = Group::Options::create(setup.timeout);
  options->devices = {setup.local_count == setup.count ? Group::createDeviceForHostname("127.0.0.1")
                                                       : Group::createDefaultDevice()};
  return std::make_unique<GlooReducer>(
      c10::make_intrusive<Group>(store, setup.rank, setup.count, options));
}

}  // namespace mc::train
