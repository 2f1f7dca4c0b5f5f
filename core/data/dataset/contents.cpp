#include "core/data/dataset/contents.hpp"

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
  fingerprint.add(data_text(row.metadata));
}

// `rows_of`: the rows of a sample, which leave the loss together.
template <typename Samples, typename RowsOf>
Contents summary(const Samples& samples, const RowsOf& rows_of) {
  Contents contents;
  contents.size = static_cast<int64_t>(samples.size());
  Fingerprint fingerprint;
  for (const auto& sample : samples) {
    const std::span<const Datum> rows = rows_of(sample);
    for (const Datum& row : rows) add(row, fingerprint);
    contents.too_long += rows.front().loss_multiplier == 0;
  }
  contents.fingerprint = fingerprint.hex();
  return contents;
}

}  // namespace

Contents contents_of(std::span<const Datum> samples) {
  return summary(samples, [](const Datum& sample) { return std::span(&sample, 1); });
}

Contents contents_of(std::span<const std::vector<Datum>> samples) {
  return summary(samples, [](const std::vector<Datum>& sample) { return std::span(sample); });
}

std::string too_long_notice(const Contents& contents, const std::string& what, int64_t limit) {
  if (contents.too_long == 0) return "";
  if (contents.too_long == contents.size)
    fail(ErrorKind::data,
         "data.max_input_seq_length: not one of the {} {} fits into {} tokens, and what is cut short counts nowhere. "
         "Raise it (and policy.max_total_sequence_length), or take shorter ones",
         contents.size, what, limit);
  return fmt::format("{} of {} {} do not fit into {} tokens (data.max_input_seq_length): cut short, they count nowhere",
                     contents.too_long, contents.size, what, limit);
}

}  // namespace hexad::data
