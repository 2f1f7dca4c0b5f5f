#include "app/data/shown_row.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/rollout/prompts.hpp"
#include "lib/base/text.hpp"

namespace hexad::dataset_view {
namespace {

ShownText shown_text(data::Datum datum) {
  ShownText text{std::move(datum.text), std::move(datum.token_ids), std::move(datum.token_mask),
                 std::move(datum.trained_text)};
  text.trains.resize(text.token_ids.size());  // none of a prompt's
  return text;
}

config::DataConfig unrepeated(config::DataConfig data) {
  for (auto* list : {&data.train, &data.validation}) {
    for (config::DatasetConfig& set : *list) set.repeat = 1;
  }
  return data;
}

bool trains_something(const ShownText& text) { return std::ranges::find(text.trains, 1.0f) != text.trains.end(); }

}  // namespace

int64_t ShownRow::length() const {
  return static_cast<int64_t>(std::max(shown.token_ids.size(), rejected.token_ids.size()));
}

DataView::DataView(const config::RunConfig& run, const rollout::ModelText& text, bool validation)
    : run_(run),
      text_(text),
      tools_(text.tools()),
      pairs_(has_pairs(run.algorithm)),
      validation_(validation),
      data_(unrepeated(run.data)),
      sets_(data::load_datasets(data_)) {}

bool DataView::is_prompt(const data::ProcessorOptions& options) const {
  return !pairs_ && options.processor != "sft_processor";
}

ShownRow DataView::processed(const data::Record& record, const data::ProcessorOptions& options, bool& fits) const {
  ShownRow row{record.source, {}, {}, pairs_, {}, {}};
  if (pairs_) {
    data::Pair pair = data::process_pair(record, 0, "", options, tools_);
    fits = pair.chosen.loss_multiplier != 0;
    row.shown = shown_text(std::move(pair.chosen));
    row.rejected = shown_text(std::move(pair.rejected));
    return row;
  }
  data::Datum datum = data::process(record, 0, "", options, tools_);
  fits = datum.loss_multiplier != 0;
  row.expected = datum.answer;
  if (is_prompt(options)) row.prompt = std::make_shared<const data::Datum>(datum);
  row.shown = shown_text(std::move(datum));
  return row;
}

ShownRow DataView::row(const data::Record& record, data::ProcessorOptions options) const {
  bool fits = true;
  ShownRow row = processed(record, options, fits);
  if (!fits) {
    const int64_t limit = options.max_seq_length;
    options.max_seq_length = std::numeric_limits<int64_t>::max();
    row = processed(record, options, fits);
    row.dropped = fmt::format("{} tokens, and there may be {} {} (data.max_input_seq_length)", grouped(row.length()),
                              is_prompt(options) ? "fewer than" : "at most", grouped(limit));
  } else if (!is_prompt(options) && !trains_something(row.shown) && !trains_something(row.rejected)) {
    row.dropped = "the assistant says nothing: no token trains";
  }
  return row;
}

void DataView::for_each(const std::function<bool(const ShownRow& row)>& take) const {
  for (const data::LoadedSet& set : validation_ ? sets_.validation : sets_.train) {
    data::ProcessorOptions options = rollout::processor_options(run_, *set.config);
    options.env_name = set.config->env_name;
    options.bos_token = text_.bos_token;
    options.eos_token = text_.eos_token;
    for (const data::Record& record : set.data.records)
      if (!take(row(record, options))) return;
  }
}

}  // namespace hexad::dataset_view
