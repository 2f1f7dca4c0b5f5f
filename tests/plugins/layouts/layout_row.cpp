#include "tests/plugins/layouts/layout_row.hpp"

#include <regex>
#include <stdexcept>

#include "tests/plugins/megatron/expert_model.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

namespace layouts_test {
namespace {

const std::map<std::string, std::string>& size_keys(const std::string& backend) {
  static const std::map<std::string, std::string> megatron = {{"tp", "tensor_model_parallel_size"},
                                                              {"cp", "context_parallel_size"},
                                                              {"pp", "pipeline_model_parallel_size"},
                                                              {"vpp", "virtual_pipeline_model_parallel_size"},
                                                              {"ep", "expert_model_parallel_size"},
                                                              {"etp", "expert_tensor_parallel_size"},
                                                              {"dp", ""}};
  static const std::map<std::string, std::string> dtensor = {{"tp", "tensor_parallel_size"},
                                                             {"cp", "context_parallel_size"},
                                                             {"hsdp", "dp_replicate_size"},
                                                             {"ep", "expert_parallel_size"},
                                                             {"dp", ""}};
  return backend == "megatron" ? megatron : dtensor;
}

void set_path(json& document, const std::string& path, const json& value) {
  const size_t dot = path.find('.');
  if (dot == std::string::npos) {
    document[path] = value;
  } else {
    set_path(document[path.substr(0, dot)], path.substr(dot + 1), value);
  }
}

Packing packing_of(const std::string& word) {
  std::smatch found;
  if (!std::regex_match(word, found, std::regex("(pack|pad)([1-9][0-9]*)")))
    throw std::runtime_error("\"" + word + "\" is not packN or padN");
  return {std::stoul(found[2]), found[1] == "pad", false};
}

std::vector<Row> read_matrix() {
  std::ifstream in(rank_process::environment("HEXAD_SOURCE_DIR") + "/tests/plugins/layouts/matrix.txt");
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') rows.push_back(Row::parse(line));
  return rows;
}

}  // namespace

Row Row::parse(const std::string& line) {
  std::istringstream in(line);
  Row row;
  std::string packing;
  in >> row.backend >> row.family >> packing;
  if (row.backend != "megatron" && row.backend != "dtensor")
    throw std::runtime_error("\"" + row.backend + "\" is no backend of the matrix");
  row.packing = packing_of(packing);
  row.text = row.backend + " " + row.family + " " + packing;
  for (std::string word; in >> word;) {
    row.read_word(word);
    if (word != "short") row.text += " " + word;
  }
  return row;
}

void Row::read_word(const std::string& word) {
  std::smatch found;
  if (const size_t equals = word.find('='); equals != std::string::npos) {
    const std::string value = word.substr(equals + 1);
    const json parsed = json::parse(value, nullptr, /*allow_exceptions=*/false);
    set_path(settings, word.substr(0, equals), parsed.is_discarded() ? json(value) : parsed);
  } else if (word == "sp" || word == "recompute" || word == "bf16" || word == "short") {
    words.insert(word);
  } else if (std::regex_match(word, found, std::regex("([a-z]+)([1-9][0-9]*)")) && size_keys(backend).count(found[1])) {
    sizes[found[1]] = std::stoi(found[2]);
  } else {
    throw std::runtime_error("\"" + word + "\" is no word of a layout of " + backend);
  }
}

bool Row::has_experts() const { return backend_test::has_experts(family) || family == "deepseek_v3"; }

int Row::expert_tensor() const {
  if (!has_experts()) return 1;
  return sizes.count("etp") || backend == "dtensor" ? size("etp") : size("tp");
}

std::set<std::string> Row::dimensions() const {
  std::set<std::string> found;
  for (const auto& [name, size] : sizes)
    if (size > 1) found.insert(name);
  if (has("sp")) found.insert("sp");
  found.erase("etp");
  if (expert_tensor() > 1) found.insert("etp");
  return found;
}

json Row::model() const {
  if (family == "latent" || family == "latent_direct") return backend_test::latent_model(family == "latent_direct");
  if (family == "deepseek_v3") return backend_test::latent_expert_model();
  return backend_test::has_experts(family) ? backend_test::expert_model(family) : backend_test::divisible_model(family);
}

json Row::policy(const std::filesystem::path& model) const {
  json result = backend_test::policy(model, has("bf16") ? "bfloat16" : "float32");
  result.erase("dtensor_cfg");
  json& section = result[backend + "_cfg"] = settings;
  for (const auto& [name, size] : sizes)
    if (const std::string& key = size_keys(backend).at(name); !key.empty()) section[key] = size;
  if (has("sp")) section["sequence_parallel"] = true;
  if (has("recompute")) section["activation_checkpointing"] = true;
  if (backend == "megatron") section = backend_test::megatron_section(section);
  return result;
}

const std::vector<Row>& matrix() {
  static const std::vector<Row> rows = read_matrix();
  return rows;
}

}  // namespace layouts_test
