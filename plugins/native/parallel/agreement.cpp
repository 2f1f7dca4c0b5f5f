#include "plugins/native/parallel/agreement.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <hexad/services.hpp>

#include <algorithm>
#include <cstring>

#include "plugins/native/device_scope.hpp"

namespace hexad::native {
namespace {

// What a rank says: a code, and a text with a NUL behind it.
struct Outcome {
  int32_t code;
  char text[1020];
};

// [sizeof(Outcome)] bytes.
at::Tensor message_of(hexad_code code, const std::string& text) {
  const at::Tensor message = at::zeros({sizeof(Outcome)}, at::kByte);
  auto* outcome = static_cast<Outcome*>(message.data_ptr());
  outcome->code = code;
  std::memcpy(outcome->text, text.data(), std::min(text.size(), sizeof(outcome->text) - 1));
  return message;
}

// A lost rank is not told of: the others will find out, and none of them can go on.
at::Tensor outcome_of(const std::function<void()>& body) {
  try {
    body();
    return message_of(HEXAD_OK, "");
  } catch (const c10::DistError&) {
    throw;
  } catch (const std::exception&) {
    try {
      with_sdk_errors([] { throw; });
    } catch (const sdk::Error& error) {
      return message_of(error.code(), error.what());
    } catch (const std::exception& error) {
      return message_of(HEXAD_INTERNAL, error.what());
    }
    throw;
  }
}

}  // namespace

void Agreement::together(const std::function<void()>& body) const {
  if (replica_.alone()) return body();
  const at::Tensor own = outcome_of(body), all = at::empty({replica_.shard().ranks, own.numel()}, at::kByte);
  group_.all_gather(all, own).wait();
  for (int64_t rank = 0; rank < all.size(0); ++rank) {
    const at::Tensor message = all[rank];
    const auto* outcome = static_cast<const Outcome*>(message.const_data_ptr());
    if (outcome->code == HEXAD_OK) continue;
    throw sdk::Error(static_cast<hexad_code>(outcome->code),
                     fmt::format("rank {} of {}: {}", rank, replica_.name(), outcome->text));
  }
}

void Agreement::decline(const std::string& reason) const {
  if (replica_.alone()) return;
  const at::Tensor own = message_of(HEXAD_CANCELLED, reason);
  group_.all_gather(at::empty({replica_.shard().ranks, own.numel()}, at::kByte), own);
}

}  // namespace hexad::native
