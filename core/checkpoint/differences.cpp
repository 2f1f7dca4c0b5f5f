#include "core/checkpoint/store.hpp"

#include <fmt/format.h>

#include <set>

#include "lib/base/json.hpp"

namespace hexad::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

void list(const Json& saved, const Json& now, const std::string& path, std::vector<std::string>& out) {
  if (saved.is_object() && now.is_object()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : saved.items()) keys.insert(key);
    for (const auto& [key, value] : now.items()) keys.insert(key);
    for (const std::string& key : keys)
      list(saved.value(key, Json()), now.value(key, Json()), path.empty() ? key : path + "." + key, out);
  } else if (saved != now) {
    out.push_back(fmt::format("{}: saved {}, now {}", path, json_text(saved), json_text(now)));
  }
}

}  // namespace

std::vector<std::string> differences(const Json& saved, const Json& now) {
  std::vector<std::string> out;
  list(saved, now, "", out);
  return out;
}

}  // namespace hexad::checkpoint
