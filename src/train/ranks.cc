// SPDX-License-Identifier: Apache-2.0
#include "train/ranks.h"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <ATen/ops/full.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/check.h"
#include "core/fd.h"
#include "train/gloo.h"
#include "train/nccl.h"

namespace mc::train {
namespace {

Result<int> number_of(const char* name, std::optional<int> otherwise, int least, int most) {
  const char* text = std::getenv(name);
  if (text == nullptr && otherwise) return *otherwise;
  const std::string_view view = text == nullptr ? "" : text;
  int value = 0;
  const auto [end, failure] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (failure != std::errc() || end != view.data() + view.size() || value < least || value > most) {
    return invalid("the environment has WORLD_SIZE, as from torchrun, but " + std::string(name) +
                   " is \"" + std::string(view) + "\"");
  }
  return value;
}

std::string text_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

Result<RankSetup> setup_of_environment() {
  RankSetup setup;
  if (std::getenv("WORLD_SIZE") == nullptr) return setup;
  constexpr int kMost = 1 << 16;
  MC_TRY(setup.count, number_of("WORLD_SIZE", {}, 1, kMost), "ranks");
  if (setup.count == 1) return setup;
  MC_TRY(setup.rank, number_of("RANK", {}, 0, setup.count - 1), "ranks");
  MC_TRY(setup.local, number_of("LOCAL_RANK", setup.rank, 0, setup.count - 1), "ranks");
  MC_TRY(setup.local_count, number_of("LOCAL_WORLD_SIZE", setup.count, 1, setup.count), "ranks");
  MC_TRY(const int port, number_of("MASTER_PORT", {}, 1, UINT16_MAX), "ranks");
  setup.port = static_cast<uint16_t>(port);
  setup.host = text_of("MASTER_ADDR");
  // With torchrun, the agent serves the rendezvous itself, also for ranks that it restarts.
  setup.serves = setup.rank == 0 && text_of("TORCHELASTIC_USE_AGENT_STORE") != "True";
  setup.prefix = "musacoder " + text_of("TORCHELASTIC_RESTART_COUNT");
  return setup;
}

Result<std::vector<RankSetup>> setups_here(int count) {
  MC_CHECK(count > 0);
  Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd.is_open() || ::bind(fd.get(), generic, size) != 0 ||
      ::getsockname(fd.get(), generic, &size) != 0) {
    return system_error(ErrorCode::kUnavailable, "no port for the ranks to meet");
  }
  std::vector<RankSetup> setups;
  for (int rank = 0; rank < count; ++rank) {
    RankSetup setup;
    setup.rank = setup.local = rank;
    setup.count = setup.local_count = count;
    setup.host = "127.0.0.1";
    setup.port = ntohs(address.sin_port);
    setup.prefix = "musacoder";
    setups.push_back(setup);
  }
  setups[0].serves = true;
  setups[0].listen_fd = fd.release();
  return setups;
}

struct Ranks::Rendezvous {
  c10::intrusive_ptr<c10d::Store> store;
};

Ranks::Ranks() = default;
Ranks::Ranks(Ranks&&) noexcept = default;
Ranks::~Ranks() = default;

Ranks Ranks::join(const RankSetup& setup, at::Device device) {
  MC_CHECK(0 <= setup.rank && setup.rank < setup.count);
  Ranks ranks;
  if (setup.count == 1) return ranks;
  c10d::TCPStoreOptions options;
  options.port = setup.port;
  options.isServer = setup.serves;
  options.timeout = setup.timeout;
  if (setup.listen_fd >= 0) options.masterListenFd = setup.listen_fd;
  ranks.rank_ = setup.rank;
  ranks.count_ = setup.count;
  ranks.device_ = device;
  const auto store = c10::make_intrusive<c10d::PrefixStore>(
      setup.prefix, c10::make_intrusive<c10d::TCPStore>(setup.host, options));
  ranks.rendezvous_ = std::make_unique<Rendezvous>(Rendezvous{store});
  ranks.reducer_ =
      device.is_cuda() ? join_by_nccl(store, setup, device) : join_by_gloo(store, setup);
  return ranks;
}

void Ranks::sum(const at::Tensor& tensor) {
  if (reducer_) reducer_->sum(tensor);
}

double Ranks::sum(double value) {
  if (!reducer_) return value;
  const at::Tensor tensor = at::full({1}, value, at::TensorOptions(at::kDouble).device(device_));
  sum(tensor);
  return tensor.item<double>();
}

// The first rank is the last to leave, because it may serve the rendezvous.
void Ranks::finish() {
  if (!reducer_) return;
  MC_CHECK(rendezvous_ != nullptr);
  std::vector<std::string> here, gone;
  for (int rank = 0; rank < count_; ++rank) here.push_back("here " + std::to_string(rank));
  for (int rank = 1; rank < count_; ++rank) gone.push_back("gone " + std::to_string(rank));
  rendezvous_->store->set(here[static_cast<size_t>(rank_)], std::vector<uint8_t>{1});
  rendezvous_->store->wait(here);
  if (is_first()) {
    rendezvous_->store->wait(gone);
  } else {
    rendezvous_->store->set(gone[static_cast<size_t>(rank_) - 1], std::vector<uint8_t>{1});
  }
}

}  // namespace mc::train
