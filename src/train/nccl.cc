// SPDX-License-Identifier: Apache-2.0
//
// The NCCL functions and constants that we need are declared here, without NCCL's header.  NCCL
// does not notice the death of a peer, so the host polls its stream, up to the timeout.
#include "train/nccl.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

namespace mc::train {
namespace {

constexpr int kInProgress = 7;
constexpr int kFloat32 = 7, kFloat64 = 8;
constexpr int kSum = 0;
constexpr std::chrono::microseconds kPoll{20};
constexpr const char* kIdKey = "nccl";

struct UniqueId {
  char bytes[128];
};

struct Nccl {
  Nccl() {
    void* library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    TORCH_CHECK(library != nullptr, "several GPUs need NCCL, which does not load: ", ::dlerror());
    const auto find = [&]<typename Function>(Function*& function, const char* name) {
      function = reinterpret_cast<Function*>(::dlsym(library, name));
      TORCH_CHECK(function != nullptr, "there is no ", name, " in NCCL's library");
    };
    find(get_unique_id, "ncclGetUniqueId");
    find(init_rank, "ncclCommInitRank");
    find(all_reduce, "ncclAllReduce");
    find(get_async_error, "ncclCommGetAsyncError");
    find(abort, "ncclCommAbort");
    find(error_string, "ncclGetErrorString");
  }
  int (*get_unique_id)(UniqueId*);
  int (*init_rank)(void** communicator, int count, UniqueId id, int rank);
  int (*all_reduce)(const void* from, void* to, size_t count, int type, int operation,
                    void* communicator, void* stream);
  int (*get_async_error)(void* communicator, int* error);
  int (*abort)(void* communicator);
  const char* (*error_string)(int error);
};

// The communicator is never destroyed, because its destruction would wait for peers; the end of the
// process frees it.
class NcclReducer : public Reducer {
 public:
  NcclReducer(const c10::intrusive_ptr<c10d::Store>& store, const RankSetup& setup,
              at::Device device)
      : device_(device), timeout_(setup.timeout) {
    UniqueId id{};
    if (setup.rank == 0) {
      check(nccl_.get_unique_id(&id));
      store->set(kIdKey, std::vector<uint8_t>(id.bytes, id.bytes + sizeof(id.bytes)));
    } else {
      const std::vector<uint8_t> bytes = store->get(kIdKey);
      TORCH_CHECK(bytes.size() == sizeof(id.bytes), "the ranks met with another program");
      std::memcpy(id.bytes, bytes.data(), bytes.size());
    }
    check(nccl_.init_rank(&communicator_, setup.count, id, setup.rank));
  }

  void sum(const at::Tensor& tensor) override {
    const c10::impl::VirtualGuardImpl cuda(at::kCUDA);
    const c10::Stream stream = cuda.getStream(device_);
    void* data = tensor.mutable_data_ptr();
    const int type = tensor.scalar_type() == at::kDouble ? kFloat64 : kFloat32;
    check(nccl_.all_reduce(data, data, static_cast<size_t>(tensor.numel()), type, kSum,
                           communicator_, cuda.getStreamNativeHandle(stream)));
    wait_for(cuda, stream);
  }

 private:
  void check(int error) const {
    TORCH_CHECK(error == 0 || error == kInProgress, "NCCL: ", nccl_.error_string(error));
  }

  void wait_for(const c10::impl::VirtualGuardImpl& cuda, const c10::Stream& stream) const {
    const auto end = std::chrono::steady_clock::now() + timeout_;
    while (!cuda.queryStream(stream)) {
      int error = 0;
      check(nccl_.get_async_error(communicator_, &error));
      const bool is_late = std::chrono::steady_clock::now() > end;
      if (is_late || (error != 0 && error != kInProgress)) {
        nccl_.abort(communicator_);
        TORCH_CHECK(!is_late, "the other GPUs did not answer in ", timeout_.count() / 1000, " s");
        check(error);
      }
      std::this_thread::sleep_for(kPoll);
    }
  }

  const Nccl nccl_;
  const at::Device device_;
  const std::chrono::milliseconds timeout_;
  void* communicator_ = nullptr;
};

}  // namespace

std::unique_ptr<Reducer> join_by_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                      const RankSetup& setup, at::Device device) {
  return std::make_unique<NcclReducer>(store, setup, device);
}

}  // namespace mc::train
