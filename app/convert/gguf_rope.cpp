#include "app/convert/gguf_rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "app/convert/gguf.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::convert {
namespace {

using Json = nlohmann::ordered_json;

// The keys of config.json's scaling; what stands under "ARCHITECTURE.rope.scaling.NAME" has a name.
struct ScalingKey {
  const char* type;
  const char* config;
  const char* name = nullptr;
  bool real = true;
  bool optional = false;
};

constexpr const char *kFactor = "factor", *kOriginal = "original_max_position_embeddings";
constexpr const char *kLow = "low_freq_factor", *kHigh = "high_freq_factor";

constexpr ScalingKey kScalingKeys[] = {
    {"linear", kFactor, "factor"},
    {"yarn", kFactor, "factor"},
    {"yarn", kOriginal, "original_context_length", false},
    {"yarn", "beta_fast", "yarn_beta_fast", true, true},
    {"yarn", "beta_slow", "yarn_beta_slow", true, true},
    {"llama3", kFactor},
    {"llama3", kLow},
    {"llama3", kHigh},
    {"llama3", kOriginal, nullptr, false},
};

// Llama 3.x: llama.cpp stores the divisors of the rotary frequencies as a tensor instead of the parameters that they
// were made from (transformers' rope_type "llama3"). Every published model has low_freq_factor 1 and high_freq_factor 4
// over 8192 positions; the factor is the largest divisor. The divisors are recomputed and must agree.
Json llama3_scaling(const tensorfile::Gguf& gguf, const tensorfile::GgufTensor& tensor, int64_t head_dim,
                    double theta) {
  const std::vector<float> divisors = tensorfile::dequantize(tensor);
  if (divisors.size() != static_cast<size_t>(head_dim / 2)) {
    fail(ErrorKind::data, "{}: tensor \"{}\" has {} elements, heads of size {} want {}", gguf.path().string(),
         kRopeDivisors, divisors.size(), head_dim, head_dim / 2);
  }
  double factor = 1;
  for (const float divisor : divisors) factor = std::max<double>(factor, divisor);
  Json scaling = {{"rope_type", "llama3"}, {kFactor, factor}, {kLow, 1.0}, {kHigh, 4.0}, {kOriginal, 8192}};
  const std::vector<float> expected = rope_divisors(scaling, head_dim, theta);
  for (size_t i = 0; i < divisors.size(); ++i) {
    if (std::abs(divisors[i] - expected[i]) <= 1e-4 * expected[i]) continue;
    fail(ErrorKind::data,
         "{}: tensor \"{}\" holds {} at element {}, Llama 3's rope scaling by {} would be {}: this scaling cannot be "
         "written into config.json",
         gguf.path().string(), kRopeDivisors, divisors[i], i, factor, expected[i]);
  }
  return scaling;
}

Json type_of(const Json& scaling) {
  for (const char* key : {"rope_type", "type"})
    if (scaling.contains(key)) return scaling.at(key);
  return "default";
}

}  // namespace

Json gguf_rope_scaling(const tensorfile::Gguf& gguf, const std::string& arch, int64_t head_dim, double theta) {
  if (const tensorfile::GgufTensor* divisors = gguf.find(kRopeDivisors))
    return llama3_scaling(gguf, *divisors, head_dim, theta);
  const auto type = gguf.get_or<std::string>(arch + ".rope.scaling.type", "none");
  if (type == "none") return nullptr;
  if (type != "linear" && type != "yarn") {
    fail(ErrorKind::data, "{}: metadata \"{}.rope.scaling.type\" is \"{}\", known are none, linear, yarn",
         gguf.path().string(), arch, type);
  }
  Json scaling = {{"rope_type", type}};
  for (const ScalingKey& key : kScalingKeys) {
    if (type != key.type) continue;
    const std::string name = arch + ".rope.scaling." + key.name;
    if (key.optional && !gguf.metadata().contains(name)) continue;
    scaling[key.config] = key.real ? Json(positive_real(gguf, name)) : Json(positive(gguf, name));
  }
  return scaling;
}

Json known_rope_scaling(const Json& config, const GgufArchitecture& architecture, const std::string& origin) {
  const char* place = config.value("rope_parameters", Json()).is_null() ? "rope_scaling" : "rope_parameters";
  const Json given = config.value(place, Json());
  if (given.is_null()) return nullptr;
  const Json type = given.is_object() ? type_of(given) : Json();
  if (!type.is_string()) fail(ErrorKind::data, "{}: {} is no object with a rope_type", origin, place);
  if (type == "default") return nullptr;
  Json scaling = {{"rope_type", type}};
  for (const ScalingKey& key : kScalingKeys) {
    if (type != key.type) continue;
    Json value = given.value(key.config, Json());
    if (value.is_null() && std::string_view(key.config) == kOriginal)
      value = config.value(kOriginal, config.value("max_position_embeddings", Json()));
    if (value.is_null() && key.optional) continue;
    if (!value.is_number() || !(value.get<double>() > 0) || (!key.real && !value.is_number_integer()))
      fail(ErrorKind::data, "{}: {}.{} is {}, wanted a positive number", origin, place, key.config, json_text(value));
    scaling[key.config] = key.real ? Json(value.get<double>()) : value;
  }
  if (scaling.size() == 1 || (type == "llama3" && std::string_view(architecture.name) != "llama")) {
    fail(ErrorKind::data, "{}: {} is of rope_type {}, and llama.cpp's architecture {} has {}", origin, place,
         json_text(type), architecture.name,
         std::string_view(architecture.name) == "llama" ? "default, linear, yarn and llama3"
                                                        : "default, linear and yarn");
  }
  for (const auto& [name, value] : given.items()) {
    if (scaling.contains(name) || name == "type" || name == "rope_theta" || value.is_null()) continue;
    fail(ErrorKind::data, "{}: {}.{} is {}: GGUF has no key for it", origin, place, name, json_text(value));
  }
  return scaling;
}

tensorfile::GgufEntries rope_entries(const Json& scaling, const std::string& arch) {
  tensorfile::GgufEntries entries;
  if (scaling.is_null() || scaling.at("rope_type") == "llama3") return entries;
  const std::string prefix = arch + ".rope.scaling.";
  entries.emplace_back(prefix + "type", scaling.at("rope_type").get<std::string>());
  for (const ScalingKey& key : kScalingKeys) {
    if (scaling.at("rope_type") != key.type || !scaling.contains(key.config)) continue;
    const Json& value = scaling.at(key.config);
    if (key.real)
      entries.emplace_back(prefix + key.name, value.get<float>());
    else
      entries.emplace_back(prefix + key.name, value.get<uint32_t>());
  }
  return entries;
}

// As transformers' _compute_llama3_parameters divides its inverse frequencies.
std::vector<float> rope_divisors(const Json& scaling, int64_t head_dim, double theta) {
  if (scaling.is_null() || scaling.at("rope_type") != "llama3") return {};
  const double factor = scaling.at(kFactor), low = scaling.at(kLow), high = scaling.at(kHigh);
  const auto original = scaling.at(kOriginal).get<double>();
  std::vector<float> divisors(head_dim / 2);
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double wavelength = 2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / divisors.size());
    const double smooth = std::clamp((original / wavelength - low) / (high - low), 0.0, 1.0);
    divisors[i] = static_cast<float>(1 / ((1 - smooth) / factor + smooth));
  }
  return divisors;
}

}  // namespace hexad::convert
