#include "plugins/vllm_bridge/protocol/capabilities.hpp"

#include <charconv>
#include <compare>
#include <optional>

namespace hexad::vllm {
namespace {

struct Version {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const Version&) const = default;
};

// Up to the first character that is neither a digit nor a dot; nothing if it does not begin with numbers.
std::optional<Version> parse(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  Version version;
  int* parts[] = {&version.major, &version.minor, &version.patch};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (int i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, *parts[i]);
    if (error != std::errc()) return i > 1 ? std::optional(version) : std::nullopt;
    at = next;
    if (at == end || *at != '.') return i > 0 ? std::optional(version) : std::nullopt;
    ++at;
  }
  return version;
}

// Since. Weight transfer has more than two calls since 0.22; this bridge's were tried with 0.24, and so was FP8.
constexpr Version kCacheSalt{0, 10, 2}, kWeightTransfer{0, 24, 0}, kReloadsFp8{0, 24, 0}, kIpcPackedAtInit{0, 27, 0},
    kNcclPackedAtInit{0, 28, 0}, kNcclIdAtInit{0, 30, 0};

}  // namespace

Capabilities capabilities_of(std::string_view version) {
  Capabilities result;
  result.version = version;
  const std::optional<Version> parsed = parse(version);
  const auto since = [&](const Version& version) { return parsed && *parsed >= version; };
  result.cache_salt = since(kCacheSalt);
  result.weight_transfer = since(kWeightTransfer);
  result.reloads_fp8 = since(kReloadsFp8);
  result.ipc_packed_at_init = since(kIpcPackedAtInit);
  result.nccl_packed_at_init = since(kNcclPackedAtInit);
  result.nccl_id_at_init = since(kNcclIdAtInit);
  return result;
}

bool too_old(std::string_view version) {
  const std::optional<Version> parsed = parse(version);
  return parsed && *parsed < *parse(kOldestVersion);
}

}  // namespace hexad::vllm
