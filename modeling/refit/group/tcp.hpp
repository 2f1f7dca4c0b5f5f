// What LibTorch has of a Store; for this folder.
#pragma once
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "modeling/refit/group/store.hpp"

namespace hexad::refit {

struct Store::Tcp {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

}  // namespace hexad::refit
