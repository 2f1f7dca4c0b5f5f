// The store by which the ranks of a run find each other: LibTorch's TCPStore on one address, shut once all have come.
#pragma once
#include <chrono>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace hexad::runtime {

// TCPStore by itself listens on every interface, and asks nobody for a secret. Rank 0 listens on `address` alone (an
// address of its host, or a name of one), and accepts nobody more once all `world` ranks are connected; so a rank has
// one connection, which its clones share and no wait holds for long. Throws Error(HEXAD_UNAVAILABLE) where rank 0
// cannot listen, and what TCPStore throws.
c10::intrusive_ptr<c10d::Store> make_run_store(const std::string& address, int port, int rank, int world,
                                               std::chrono::milliseconds timeout);

}  // namespace hexad::runtime
