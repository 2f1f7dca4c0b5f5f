#include "core/data/dataset/conversation.hpp"

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/text/conversation/message.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;

struct Completion {
  int64_t rank = 0;
  Json messages;
};

Completion completion_of(const Row& row, const Json& entry, size_t index) {
  const bool whole = entry.is_object() && entry.contains("rank") && entry.at("rank").is_number_integer() &&
                     entry.contains("completion");
  if (!whole) {
    fail(ErrorKind::data, "{}: completions[{}]: want {{\"rank\": integer, \"completion\": [messages]}}, got {}",
         row.source, index, data_text(entry));
  }
  text::check_messages(entry.at("completion"), row.source, fmt::format("completions[{}].completion", index));
  return {entry.at("rank").get<int64_t>(), entry.at("completion")};
}

Json joined_messages(Json context, const Json& completion) {
  for (const Json& message : completion) context.push_back(message);
  return context;
}

}  // namespace

Record preference_record(const Row& row, const config::DatasetConfig&) {
  const Json& context = field(row, "context");
  text::check_messages(context, row.source, "context");
  const Json& completions = field(row, "completions");
  if (!completions.is_array() || completions.size() != 2) {
    fail(ErrorKind::data, "{}: field 'completions' holds {}, want two: the better and the worse", row.source,
         completions.is_array() ? std::to_string(completions.size()) : completions.type_name());
  }
  Completion better = completion_of(row, completions[0], 0), worse = completion_of(row, completions[1], 1);
  if (better.rank == worse.rank) {
    fail(ErrorKind::data,
         "{}: both completions have rank {}: a tie teaches nothing. Leave such rows out: jq -c "
         "'select(.completions[0].rank != .completions[1].rank)'",
         row.source, better.rank);
  }
  if (better.rank > worse.rank) std::swap(better, worse);
  text::RowText pair;
  pair.messages = joined_messages(context, better.messages);
  pair.rejected = joined_messages(context, worse.messages);
  return record_of(std::move(pair), row);
}

Record binary_preference_record(const Row& row, const config::DatasetConfig& config) {
  const auto column = [&](const std::string& name) { return own_key(config, name + "_key").value_or(name); };
  const text::PairColumns columns{column("prompt"), column("chosen"), column("rejected"), /*with_template=*/true};
  if (own_key(config, "prompt_key")) field(row, columns.prompt);  // what is named is there
  return record_of(text::read_pair(row.value, row.source, columns), row);
}

}  // namespace hexad::data
