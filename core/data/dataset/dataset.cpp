#include "core/data/dataset/dataset.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>

#include "core/data/dataset/conversation.hpp"
#include "core/data/dataset/procedural.hpp"
#include "lib/base/error.hpp"
#include "lib/base/random.hpp"
#include "lib/base/text.hpp"
#include "lib/hub/hub.hpp"
#include "lib/table/container.hpp"
#include "lib/table/rows.hpp"

namespace hexad::data {
namespace {

namespace fs = std::filesystem;
using config::DatasetConfig;

constexpr uint64_t kSplitStream = 2;

// The last two components of the path without what follows the first dot: data/math/train.jsonl is math-train.
std::string task_name(const fs::path& path) {
  const std::string parent = path.parent_path().filename();
  std::string name =
      parent.empty() || parent == "." ? path.filename().string() : parent + "-" + path.filename().string();
  name = name.substr(0, name.find('.'));
  return name.empty() ? "data" : name;
}

constexpr std::array<std::string_view, 3> kGenerated = {"arithmetic", "puzzle", "sliding_puzzle"};
const std::vector<std::string> kBuiltIn = {"ResponseDataset",         "openai_format", "PreferenceDataset",
                                           "BinaryPreferenceDataset", "arithmetic",    "puzzle",
                                           "sliding_puzzle"};

[[noreturn]] void refuse_name(const std::string& name) {
  const std::string near = did_you_mean(name, kBuiltIn), fetch = hub::how_to_fetch(hub::Use::data, name);
  fail(ErrorKind::config, "dataset_name: '{}' is neither a built-in dataset ({}) nor a local folder{}", name,
       joined(kBuiltIn),
       near.empty() && !fetch.empty() ? fetch
                                      : (near.empty() ? "." : near) +
                                            " Nothing is downloaded: export it once to JSONL and set dataset_name: "
                                            "ResponseDataset, data_path, input_key and output_key");
}

// What data_path, or else dataset_name, names: the file or folder `path`, or a data set in the Hub's cache.
fs::path find_data(const DatasetConfig& config, const fs::path& path) {
  std::error_code unreadable;
  if (fs::exists(path, unreadable)) return path;
  if (unreadable && unreadable != std::errc::filename_too_long)  // as no name of a data set is
    fail(ErrorKind::data, "{}: cannot be opened: {}", path.string(), unreadable.message());
  const std::string name = config.data_path.value_or(config.dataset_name);
  if (const auto cached = hub::find(hub::Use::data, config.data_path ? "data_path" : "dataset_name", name))
    return *cached;
  if (!config.data_path) refuse_name(name);
  fail(ErrorKind::data, "{}: no such file or folder (data_path){}", path.string(),
       hub::how_to_fetch(hub::Use::data, name));
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  return text;
}

// Any name may stand beside a data_path, and its rows are those of a ResponseDataset; but not one that is another
// reader's, misspelt.
void refuse_misspelt(const std::string& name) {
  constexpr size_t kTypo = 2;
  for (const std::string& known : kBuiltIn) {
    if (name == known || edit_distance(lower(name), lower(known)) > kTypo) continue;
    fail(ErrorKind::config,
         "dataset_name: no built-in dataset is named '{}', did you mean '{}'? A name of your own, for rows read as "
         "those of a ResponseDataset, has to be less like it",
         name, known);
  }
}

// Takes split_validation_size records (a share when under 1) away from the training ones, both in their old order.
void split_off_validation(DatasetSplit& split, const DatasetConfig& config) {
  const double asked = config.split_validation_size;
  if (asked == 0) return;
  const int64_t total = split.train.records.size();
  const double count = asked < 1 ? std::ceil(asked * static_cast<double>(total)) : asked;
  if (asked < 0 || std::floor(count) != count || count >= static_cast<double>(total)) {
    fail(ErrorKind::config,
         "split_validation_size: {} of {} records; want a share under 1 or a number of records that leaves "
         "some for training",
         asked, total);
  }
  const std::vector<int64_t> order = random_permutation(total, static_cast<uint64_t>(config.seed), kSplitStream);
  std::vector<int64_t> chosen(order.begin(), order.begin() + static_cast<int64_t>(count));
  std::ranges::sort(chosen);
  auto [validation, train] = split.train.records.parted(std::move(chosen));
  split.validation = Dataset{split.train.task_name, std::move(validation), split.train.format};
  split.train.records = std::move(train);
}

void repeat_training(Dataset& train, int64_t repeat) {
  if (repeat < 1) fail(ErrorKind::config, "repeat: want at least 1, got {}", repeat);
  if (repeat > 1) train.records = train.records.repeated(repeat);
}

using MakeRecord = Record (*)(const Row& row, const DatasetConfig& config);

// How the rows of a dataset with a data_path are read; null for another name.
MakeRecord reader_named(const std::string& name) {
  if (name == "ResponseDataset") return response_record;
  if (name == "openai_format") return conversation_record;
  if (name == "PreferenceDataset") return preference_record;
  if (name == "BinaryPreferenceDataset") return binary_preference_record;
  return nullptr;
}

// Rows of questions and answers of which nobody has named the answer's column, and no row has the usual one.
bool lack_answers(const std::vector<Row>& rows, MakeRecord make, const DatasetConfig& config) {
  const auto has_answer = [](const Row& row) { return row.value.contains("output"); };
  return make == response_record && !config.output_key && std::ranges::none_of(rows, has_answer);
}

// A row may lack what these keys name (tools, a system prompt), but not every row: then the name is wrong, unless it is
// the one that is read without the key.
void check_named(const std::vector<Row>& rows, MakeRecord make, const DatasetConfig& config) {
  if (make != conversation_record) return;
  for (const char* key : {"tool_key", "system_key"}) {
    const std::optional<std::string> name = own_key(config, key);
    if (!name || *name == "tools") continue;
    if (std::ranges::none_of(rows, [&](const Row& row) { return find_field(row, *name) != nullptr; }))
      fail(ErrorKind::data, "{}: not one of {} rows has a field '{}', which {} names; null is for none",
           rows.front().source, rows.size(), *name, key);
  }
}

// A subset of a Hugging Face dataset is a folder in the dataset's own.
fs::path with_subset(const fs::path& path, const std::string& subset) {
  if (subset.empty()) return path;
  if (fs::is_directory(path / subset)) return path / subset;
  fail(ErrorKind::data, "{}: no folder '{}' in it (subset); leave the key out to read the files of data_path itself",
       path.string(), subset);
}

DatasetSplit load_rows(const DatasetConfig& config, const std::string& root) {
  const fs::path path = fs::path(root) / config.data_path.value_or(config.dataset_name);
  const MakeRecord named = reader_named(config.dataset_name);
  if (!named && config.data_path) refuse_misspelt(config.dataset_name);
  if (named && !config.data_path) {
    fail(ErrorKind::config, "dataset_name: {} wants data_path, a file of rows ({}) or a folder of them",
         config.dataset_name, table::kContainers);
  }
  const std::shared_ptr<const table::Rows> source =
      table::open(with_subset(find_data(config, path), config.subset.value_or("")), config.split.value_or("train"));
  const int64_t size = std::min(source->size(), config.max_samples.value_or(std::numeric_limits<int64_t>::max()));
  std::vector<Row> rows;
  for (int64_t i = 0; i < std::min(size, kLookedAt); ++i) rows.push_back(source->row(i));
  const MakeRecord make = named ? named : response_record;
  DatasetConfig read = config;
  if (lack_answers(rows, make, config)) read.output_key = "";
  const auto known = make == response_record ? recognised(rows, config) : std::nullopt;
  const auto record = [known, make, read = std::move(read)](const Row& row) {
    return known ? recognised_record(row, *known, read) : make(row, read);
  };
  for (const Row& row : rows) record(row);
  check_named(rows, make, config);
  const auto read_one = [source, record](int64_t index) { return record(source->row(index)); };
  return {{task_name(path), {size, read_one}, known ? known->name : ""}, std::nullopt};
}

}  // namespace

DatasetSplit load_dataset(const DatasetConfig& config, const std::string& root) {
  const uint64_t seed = static_cast<uint64_t>(config.seed);
  DatasetSplit split;
  if (config.dataset_name == "arithmetic") {
    split = make_arithmetic(config.spec, seed);
  } else if (config.dataset_name == "puzzle") {
    split = make_puzzle(config.spec, seed);
  } else if (config.dataset_name == "sliding_puzzle") {
    split = make_sliding_puzzle(config.spec, seed);
  } else {
    split = load_rows(config, root);
    split_off_validation(split, config);
  }
  repeat_training(split.train, config.repeat);
  return split;
}

bool is_generated(const DatasetConfig& config) {
  return std::ranges::find(kGenerated, config.dataset_name) != std::end(kGenerated);
}

LoadedSets load_datasets(const config::DataConfig& data) {
  LoadedSets sets;
  for (const DatasetConfig& config : data.train) {
    DatasetSplit split = load_dataset(config);
    if (const Dataset& train = split.train; !train.format.empty())
      sets.formats.push_back(
          fmt::format("data: {} rows, {}", grouped(train.records.size() / config.repeat), train.format));
    sets.train.push_back({&config, std::move(split.train)});
    if (split.validation && (data.validation.empty() || !is_generated(config)))
      sets.validation.push_back({&config, std::move(*split.validation)});
  }
  for (const DatasetConfig& config : data.validation) {
    DatasetSplit split = load_dataset(config);
    if (split.validation && !is_generated(config))
      sets.notes.push_back(fmt::format(
          "{}: of {} rows {} are validated on, the others are left out (split_validation_size of data.validation)",
          config.data_path.value_or(config.dataset_name),
          split.train.records.size() / config.repeat + split.validation->records.size(),
          split.validation->records.size()));
    sets.validation.push_back({&config, std::move(split.validation ? *split.validation : split.train)});
  }
  return sets;
}

}  // namespace hexad::data
