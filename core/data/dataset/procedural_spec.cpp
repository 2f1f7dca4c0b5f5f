#include "core/data/dataset/procedural_spec.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;

// Keys of every dataset, read elsewhere.
const std::vector<std::string> kCommonKeys = {"dataset_name",
                                              "data_path",
                                              "split",
                                              "subset",
                                              "seed",
                                              "repeat",
                                              "env_name",
                                              "prompt_file",
                                              "processor",
                                              "split_validation_size",
                                              "system_prompt_file",
                                              "input_key",
                                              "output_key",
                                              "task_name"};

constexpr uint64_t kSideStream = 0x5349444500000000;  // apart from the streams of the draws

// FNV-1a, as the stream of a counter-based generator: an even hash of text and seed.
bool held_out(const std::string& key, uint64_t seed, double share) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : key) hash = (hash ^ c) * 0x100000001b3;
  const double uniform = static_cast<double>(CounterRandom(seed, hash ^ kSideStream).at(0) >> 11) * 0x1p-53;
  return uniform < share;
}

Record record_of(const Question& question, const std::string& source) {
  Record record;
  record.messages = Json::array(
      {Json{{"role", "user"}, {"content", question.text}}, Json{{"role", "assistant"}, {"content", question.answer}}});
  record.answer = question.answer;
  record.metadata = question.metadata;
  record.source = source;
  return record;
}

}  // namespace

ProceduralSpec::ProceduralSpec(const Json& spec, std::string dataset)
    : spec_(spec), dataset_(std::move(dataset)), known_(kCommonKeys) {}

const Json* ProceduralSpec::find(const std::string& key) {
  known_.push_back(key);
  const auto found = spec_.find(key);
  return found == spec_.end() || found->is_null() ? nullptr : &*found;
}

void ProceduralSpec::refuse(const std::string& key, const std::string& want) const {
  const std::string got = spec_.contains(key) ? json_text(spec_.at(key)) : "nothing";
  fail(ErrorKind::config, "dataset {}: {}: want {}, got {}", dataset_, key, want, got);
}

int64_t ProceduralSpec::integer(const std::string& key, int64_t otherwise, int64_t min, int64_t max) {
  const Json* value = find(key);
  if (!value) return otherwise;
  const bool good = value->is_number_integer() && value->get<int64_t>() >= min && value->get<int64_t>() <= max;
  if (!good) refuse(key, fmt::format("an integer from {} to {}", min, max));
  return value->get<int64_t>();
}

std::optional<int64_t> ProceduralSpec::optional_integer(const std::string& key, int64_t min) {
  if (!find(key)) return std::nullopt;
  return integer(key, 0, min, std::numeric_limits<int64_t>::max());
}

double ProceduralSpec::share(const std::string& key, double otherwise) {
  const Json* value = find(key);
  if (!value) return otherwise;
  const bool good = value->is_number() && value->get<double>() >= 0 && value->get<double>() < 1;
  if (!good) refuse(key, "a share of at least 0 and under 1");
  return value->get<double>();
}

std::string ProceduralSpec::text(const std::string& key, const std::string& otherwise) {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (!value->is_string()) refuse(key, "text");
  return value->get<std::string>();
}

std::vector<std::string> ProceduralSpec::texts(const std::string& key, std::vector<std::string> otherwise) {
  const Json* value = find(key);
  if (!value) return otherwise;
  const bool good = value->is_array() && !value->empty() &&
                    std::all_of(value->begin(), value->end(), [](const Json& v) { return v.is_string(); });
  if (!good) refuse(key, "a list of texts");
  return value->get<std::vector<std::string>>();
}

std::pair<int64_t, int64_t> ProceduralSpec::range(const std::string& key, std::pair<int64_t, int64_t> otherwise,
                                                  int64_t min) {
  const Json* value = find(key);
  if (!value) return otherwise;
  std::pair<int64_t, int64_t> result = {min - 1, min - 1};
  if (value->is_number_integer()) result = {value->get<int64_t>(), value->get<int64_t>()};
  if (value->is_array() && value->size() == 2 && (*value)[0].is_number_integer() && (*value)[1].is_number_integer()) {
    result = {(*value)[0].get<int64_t>(), (*value)[1].get<int64_t>()};
  }
  if (result.first < min || result.second < result.first || result.second > 100000) {
    refuse(key, fmt::format("a number of at least {}, or [min, max]", min));
  }
  return result;
}

void ProceduralSpec::finish() const {
  for (const auto& entry : spec_.items()) {
    if (std::find(known_.begin(), known_.end(), entry.key()) != known_.end()) continue;
    fail(ErrorKind::config, "dataset {}: unknown key '{}'{}", dataset_, entry.key(), did_you_mean(entry.key(), known_));
  }
}

Sizes read_sizes(ProceduralSpec& spec) {
  Sizes sizes;
  sizes.train = spec.optional_integer("size", 1);
  sizes.validation = spec.optional_integer("validation_size", 0);
  sizes.held_out = spec.share("held_out", 0.1);
  return sizes;
}

DatasetSplit draw(const std::string& task_name, const Sizes& sizes, uint64_t seed,
                  const std::function<Question(CounterRandom&)>& generate) {
  // So many draws in a row without a new question mean that there are no more (or too few to look for).
  constexpr int64_t kPatience = 20000;
  const int64_t want_train = sizes.train.value_or(Sizes::kDefaultTrain);
  const int64_t want_validation = sizes.held_out == 0 ? 0 : sizes.validation.value_or(Sizes::kDefaultValidation);
  std::vector<Record> train, validation;
  std::unordered_set<std::string> seen;
  CounterRandom random(seed, 1);
  int64_t idle = 0;
  while (idle < kPatience && (static_cast<int64_t>(train.size()) < want_train ||
                              static_cast<int64_t>(validation.size()) < want_validation)) {
    const Question question = generate(random);
    const std::string& side_key = question.side_key.empty() ? question.key : question.side_key;
    const bool for_validation = held_out(side_key, seed, sizes.held_out);
    std::vector<Record>& side = for_validation ? validation : train;
    const int64_t want = for_validation ? want_validation : want_train;
    ++idle;
    if (static_cast<int64_t>(side.size()) >= want || !seen.insert(question.key).second) continue;
    side.push_back(
        record_of(question, fmt::format("{}{}#{}", task_name, for_validation ? " (held out)" : "", side.size())));
    idle = 0;
  }
  const bool short_train = sizes.train && static_cast<int64_t>(train.size()) < want_train;
  const bool short_validation = sizes.validation && static_cast<int64_t>(validation.size()) < want_validation;
  if (train.empty() || short_train || short_validation) {
    fail(ErrorKind::config,
         "dataset {}: {} training and {} held-out questions asked for, but only {} and {} distinct ones were found; "
         "lower size or validation_size, change held_out ({}), or widen the task",
         task_name, want_train, want_validation, train.size(), validation.size(), sizes.held_out);
  }
  DatasetSplit split{{task_name, std::move(train)}, std::nullopt};
  if (!validation.empty()) split.validation = Dataset{task_name, std::move(validation)};
  return split;
}

}  // namespace hexad::data
