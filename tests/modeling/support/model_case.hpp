// A golden model: config, weights that require gradients, recorded inputs and outputs.
#pragma once
#include <fstream>
#include <map>

#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include "lib/model/family/families.hpp"
#include "modeling/family/batch_attention.hpp"
#include "modeling/family/model_config.hpp"
#include "modeling/family/weight_table.hpp"
#include "modeling/weight/safetensors_reader.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/golden_tensor.hpp"

namespace hexad::modeling {

struct ModelCase {
  ModelConfig config;
  std::map<std::string, at::Tensor> weights;   // fp32 leaves
  std::map<std::string, at::Tensor> recorded;  // inputs and outputs
  golden::Json expected;

  ModelCase(const std::filesystem::path& folder, at::Device device) : config(load_model_config(folder)) {
    const SafetensorsReader reader(folder);
    for (const WeightInfo& info : weight_table(config)) {
      weights[info.hf_name] = reader.tensor(info.hf_name).to(device, at::kFloat, false, true).set_requires_grad(true);
    }
    const SafetensorsReader cases(folder / "cases.safetensors");
    for (const auto& [name, entry] : cases.entries()) recorded[name] = cases.tensor(name).to(device);
    std::ifstream in(folder / "cases.json");
    expected = golden::Json::parse(in);
  }

  WeightLookup lookup() const {
    return [this](const std::string& name) { return weights.at(name); };
  }
  // Zero for an expert that no token went to.
  at::Tensor grad(const std::string& name) const {
    const at::Tensor& weight = weights.at(name);
    return weight.grad().defined() ? weight.grad() : at::zeros_like(weight);
  }
  std::vector<std::string> trained() const {
    std::vector<std::string> names;
    for (const WeightInfo& info : weight_table(config))
      if (info.trainable) names.push_back(info.hf_name);
    return names;
  }
  at::Tensor head() const { return weights.at(head_weight_name(config)); }
};

// Calls check(case) for every folder below models/ whose family is supported, and counts its cases; names the others.
template <typename Check>
void for_each_model(size_t cases_each, const Check& check) {
  std::vector<std::string> unknown;
  for (const std::filesystem::path& folder : golden::models()) {
    std::ifstream in(folder / "config.json");
    const std::string type = nlohmann::json::parse(in).at("model_type");
    const std::string name = "models/" + folder.filename().string();
    const auto& known = model::families();
    if (std::none_of(known.begin(), known.end(),
                     [&](const model::Family& family) { return family.model_type == type; })) {
      unknown.push_back(name);
      continue;
    }
    INFO("golden " << name);
    for (const at::Device device : test_devices()) {
      INFO("device " << device.str());
      check(ModelCase(folder, device));
    }
    golden::count(name, cases_each);
  }
  golden::skip(unknown, "the family is not in lib/model/family/families.hpp");
}

}  // namespace hexad::modeling
