#include "core/data/dataset/contents.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/base/fingerprint.hpp"
#include "lib/base/json.hpp"

namespace hexad::data {
namespace {

void add(const Datum& row, Fingerprint& fingerprint) {
  fingerprint.add(std::span(row.token_ids));
  fingerprint.add(std::span(row.token_mask));
  fingerprint.add(row.answer);
  fingerprint.add(row.env_name);
  fingerprint.add(value_text(row.metadata));
}

// A conversation in which nothing is trained on; a prompt has no mask.
bool trains_nothing(const Datum& row) {
  return !row.token_mask.empty() && std::ranges::find(row.token_mask, 1.0f) == row.token_mask.end();
}

// The rows of a sample, which leave the loss together.
std::span<const Datum> rows_of(const Datum& sample) { return {&sample, 1}; }
std::span<const Datum> rows_of(const std::vector<Datum>& sample) { return sample; }

template <typename Sample>
Contents summary(const std::vector<table::Lazy<Sample>>& sets) {
  Contents contents;
  Fingerprint fingerprint;
  for (const table::Lazy<Sample>& set : sets) {
    contents.size += set.size();
    for (const Sample& sample : set.first(kLookedAt)) {
      const std::span<const Datum> rows = rows_of(sample);
      for (const Datum& row : rows) add(row, fingerprint);
      const bool too_long = rows.front().loss_multiplier == 0;
      ++contents.looked_at;
      contents.too_long += too_long;
      contents.hides_reasoning += !too_long && std::ranges::any_of(rows, &Datum::drops_reasoning);
      contents.untrained += !too_long && std::ranges::all_of(rows, trains_nothing);
    }
  }
  contents.fingerprint = fingerprint.hex();
  return contents;
}

// "of 12 prompts", "of 4096 prompts (the first of 5000000)"
std::string of_all(const Contents& contents, const std::string& what) {
  return fmt::format("of {} {}{}", contents.looked_at, what,
                     contents.looked_at < contents.size ? fmt::format(" (the first of {})", contents.size) : "");
}

}  // namespace

Contents contents_of(const std::vector<table::Lazy<Datum>>& sets) { return summary(sets); }
Contents contents_of(const std::vector<table::Lazy<std::vector<Datum>>>& sets) { return summary(sets); }

void DrawnTooLong::see(const Datum& row) {
  if (row.loss_multiplier != 0) return;
  ++count_;
  if (limit_ == 0) return;
  note_ = fmt::format(
      "{} does not fit into {} tokens (data.max_input_seq_length): cut short, it counts nowhere. The metric "
      "num_too_long counts such rows as they are drawn",
      row.source, std::exchange(limit_, 0));
}

std::string too_long_notice(const Contents& contents, const std::string& what, int64_t limit, bool scored) {
  if (contents.too_long == 0) return "";
  if (contents.too_long == contents.size)
    fail(ErrorKind::data,
         "data.max_input_seq_length: not one of the {} {} fits into {} tokens, and what is cut short {}. Raise it (and "
         "policy.max_total_sequence_length), or take shorter ones",
         contents.size, what, limit, scored ? "asks nothing" : "counts nowhere");
  return fmt::format("{} {} do not fit into {} tokens (data.max_input_seq_length): cut short, they {}",
                     contents.too_long, of_all(contents, what), limit,
                     scored ? "are answered and count as they are" : "count nowhere");
}

std::string untrained_notice(const Contents& contents, const std::string& what) {
  if (contents.untrained == 0) return "";
  if (contents.untrained + contents.too_long == contents.size)
    fail(ErrorKind::data,
         "data: not one of the {} {} has a token to train on: the assistant says nothing in them. Rows need an answer "
         "(output_key names its column), or a message of role 'assistant'",
         contents.size, what);
  return fmt::format("in {} {} the assistant says nothing: they train nothing", contents.untrained,
                     of_all(contents, what));
}

std::string hidden_reasoning_notice(const Contents& contents, const std::string& what) {
  if (contents.hides_reasoning == 0) return "";
  return fmt::format(
      "in {} {} the chat template shows nothing of an answer's reasoning, which does not train so; "
      "another one is set by policy.tokenizer.chat_template",
      contents.hides_reasoning, of_all(contents, what));
}

}  // namespace hexad::data
