// Rows of a run's data as the model sees them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/data/score.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/data/dataset/dataset.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::dataset_view {

// One text that the model reads: a prompt, a conversation, or one side of a pair.
struct ShownText {
  std::string text;
  std::vector<int64_t> token_ids;                       // all of them, also of a row that is too long
  std::vector<float> trains;                            // 1 on the tokens that train, each
  std::vector<std::pair<size_t, size_t>> trained_text;  // where in `text` what trains begins, its bytes
};

struct ShownRow {
  std::string source;  // "train.jsonl:12"
  ShownText shown;
  ShownText rejected;  // of a pair: its worse side, `shown` being the better
  bool is_pair = false;
  std::string expected;              // the answer that a reward compares with; "": none
  std::string dropped;               // why it teaches nothing; "": it does
  data::SharedDatum prompt = {};     // of a row that is answered in a rollout; else null
  std::optional<Scored> score = {};  // where rewards are asked for

  // Tokens of the longer side.
  int64_t length() const;
};

// The rows of data.train, or of what is validated on, in the order of the files. Borrows what it is made of.
class DataView {
 public:
  // Reads the data. Throws the Error that `train` would end with, as the other members do.
  DataView(const config::RunConfig& run, const rollout::ModelText& text, bool validation);

  DataView(const DataView&) = delete;
  DataView& operator=(const DataView&) = delete;

  // Lines about formats that columns told.
  const std::vector<std::string>& formats() const { return sets_.formats; }
  // Processes each row once, however often its set is repeated, as `train` does it, until `take` says false.
  void for_each(const std::function<bool(const ShownRow& row)>& take) const;

 private:
  ShownRow row(const data::Record& record, data::ProcessorOptions options) const;
  ShownRow processed(const data::Record& record, const data::ProcessorOptions& options, bool& fits) const;
  bool is_prompt(const data::ProcessorOptions& options) const;

  const config::RunConfig& run_;
  const rollout::ModelText& text_;
  const data::TextTools tools_;
  const bool pairs_, validation_;
  const config::DataConfig data_;
  const data::LoadedSets sets_;
};

}  // namespace hexad::dataset_view
