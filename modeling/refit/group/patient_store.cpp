#include "modeling/refit/group/patient_store.hpp"

#include <chrono>
#include <hexad/services.hpp>
#include <thread>

namespace hexad::refit {

void PatientStore::await(const Names& keys) {
  while (!store_->check(keys)) {
    if (const std::string why = give_up_(); !why.empty())
      sdk::fail(HEXAD_UNAVAILABLE, "the others did not join: %s", why.c_str());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace hexad::refit
