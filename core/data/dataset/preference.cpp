#include "core/data/dataset/conversation.hpp"

#include <cstring>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

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
  check_messages(entry.at("completion"), row, fmt::format("completions[{}].completion", index));
  return {entry.at("rank").get<int64_t>(), entry.at("completion")};
}

Json joined_messages(Json context, const Json& completion) {
  for (const Json& message : completion) context.push_back(message);
  return context;
}

Json said_by(const char* role, const std::string& text) {
  Json messages = Json::array();
  messages.push_back({{"role", role}, {"content", text}});
  return messages;
}

}  // namespace

Record preference_record(const Row& row, const config::DatasetConfig&) {
  const Json& context = field(row, "context");
  check_messages(context, row, "context");
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
  Record record;
  record.messages = joined_messages(context, better.messages);
  record.rejected = joined_messages(context, worse.messages);
  record.source = row.source;
  record.tools = tools_of(row);
  return record;
}

Record binary_preference_record(const Row& row, const config::DatasetConfig& config) {
  const std::string prompt_key = own_key(config, "prompt_key").value_or("prompt");
  const Json& prompt = field(row, prompt_key);
  Json context = prompt;
  if (prompt.is_array()) {
    check_messages(prompt, row, prompt_key);
  } else {
    context = said_by("user", text_field(row, prompt_key));
  }
  Record record;
  const auto whole = [&](const char* key) {
    const std::string answer = text_field(row, own_key(config, key).value_or(std::string(key, std::strlen(key) - 4)));
    return joined_messages(context, said_by("assistant", answer));
  };
  record.messages = whole("chosen_key");
  record.rejected = whole("rejected_key");
  record.source = row.source;
  record.tools = tools_of(row);
  return record;
}

}  // namespace hexad::data
