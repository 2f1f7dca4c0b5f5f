// Datasets: which there are, and the keys that each of them reads.
#include <algorithm>

#include "core/config/load/defaults.hpp"
#include "core/config/rules/rules.hpp"
#include "lib/base/text.hpp"

namespace hexad::config {
namespace {

// A validation set that says neither would be read from the folder that hexad is started in.
void check_validation_names(RuleContext& c) {
  const yaml::Node* validation = c.root().find("data.validation");
  const auto named = [&](const char* key, const yaml::Node& set) {
    return set.has(key) || c.root().has(std::string("data.default.") + key);
  };
  const auto check = [&](const yaml::Node& set, const std::string& path) {
    if (set.is_map() && !named("dataset_name", set) && !named("data_path", set) && !c.root().has("data.data_path"))
      c.error(path, "has no dataset_name; null is no validation set");
  };
  if (!validation) return;
  check(*validation, "data.validation");
  for (size_t i = 0; validation->is_list() && i < validation->items().size(); ++i)
    check(validation->items()[i], fmt::format("data.validation.{}", i));
}

void check_train(RuleContext& c) {
  const yaml::Node* train = c.root().find("data.train");
  if (train && !train->is_null()) {
    const yaml::Node::List one = {*train};
    const yaml::Node::List& sets = train->is_list() ? train->items() : one;
    if (sets.empty()) c.error("data.train", "an empty list; wanted at least one dataset");
    for (const yaml::Node& set : sets) {
      if (set.is_map() && !set.has("dataset_name") && !c.root().has("data.default.dataset_name")) {
        c.error("data.train", "a dataset has no dataset_name");
      }
    }
    return;
  }
  if (!c.text("data.dataset_name")) {
    c.error("data.train", "there is no training data: give data.train with a dataset_name (or data.dataset_name)");
  }
}

// Any other name's rows are read as those of a ResponseDataset.
const char* const kResponse = "ResponseDataset";
const std::vector<std::string> kReaders = {
    kResponse,    "openai_format", "PreferenceDataset", "BinaryPreferenceDataset",
    "arithmetic", "puzzle",        "sliding_puzzle"};

struct ColumnKey {
  const char* key;
  std::vector<std::string> readers;
};

const std::vector<ColumnKey>& column_keys() {
  static const std::vector<ColumnKey> keys = {{"input_key", {kResponse}},
                                              {"output_key", {kResponse, "openai_format"}},
                                              {"chat_key", {"openai_format"}},
                                              {"system_key", {"openai_format"}},
                                              {"system_prompt", {"openai_format"}},
                                              {"tool_key", {"openai_format"}},
                                              {"prompt_key", {"BinaryPreferenceDataset"}},
                                              {"chosen_key", {"BinaryPreferenceDataset"}},
                                              {"rejected_key", {"BinaryPreferenceDataset"}}};
  return keys;
}

// A column that a dataset names and does not read would be missing without a word. Keys of data.default are for the
// datasets that read them.
void check_columns(RuleContext& c, const yaml::Node& set, const std::string& path) {
  if (!set.is_map()) return;
  const yaml::Node* own = set.child("dataset_name");
  const std::string given =
      own && own->is_string() ? own->as_string() : c.text("data.default.dataset_name").value_or("");
  const std::string reader = std::ranges::find(kReaders, given) == kReaders.end() ? kResponse : given;
  for (const ColumnKey& column : column_keys()) {
    const yaml::Node* value = set.child(column.key);
    if (!value || value->is_null() || std::ranges::find(column.readers, reader) != column.readers.end()) continue;
    c.error(path + "." + column.key, fmt::format("got {}, and dataset_name: {} does not read it; {} does",
                                                 value->describe(), reader, joined(column.readers, " or ")));
  }
}

}  // namespace

void check_data_rules(RuleContext& c) {
  if (trains(c.root())) check_train(c), check_validation_names(c);
  for (const char* list : {"data.train", "data.validation"}) {
    const yaml::Node* sets = c.root().find(list);
    if (!sets) continue;
    check_columns(c, *sets, list);
    for (size_t i = 0; sets->is_list() && i < sets->items().size(); ++i)
      check_columns(c, sets->items()[i], fmt::format("{}.{}", list, i));
  }
}

}  // namespace hexad::config
