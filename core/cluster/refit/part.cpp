#include "core/cluster/refit/part.hpp"

#include "lib/base/json_integer.hpp"

namespace hexad::cluster {

RefitPart refit_part_from(const Json& json) {
  RefitPart part;
  part.needed = json.at("needed").get<Layout>();
  const auto box = [](const Json& piece) {
    return Box{integers<int64_t>(piece.at(2)), integers<int64_t>(piece.at(3))};
  };
  for (const Json& from : json.at("steps")) {
    RefitPart::Step& step = part.steps.emplace_back();
    for (const Json& piece : from.at("sends"))
      step.sends.push_back({piece.at(0).get<std::string>(), integer<int>(piece.at(1)), box(piece)});
    for (const Json& piece : from.at("receives"))
      step.receives.push_back({integer<size_t>(piece.at(0)), integer<int>(piece.at(1)), box(piece)});
  }
  return part;
}

}  // namespace hexad::cluster
