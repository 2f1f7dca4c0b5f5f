#include "app/data/show.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "app/data/histogram.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/text.hpp"

namespace hexad::dataset_view {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const ShownText& text) {
  return {{"text", text.text},
          {"token_ids", text.token_ids},
          {"trains", std::vector<int>(text.trains.begin(), text.trains.end())}};
}

Json json_of(const ShownRow& row) {
  Json json = {{"source", row.source}};
  if (!row.dropped.empty()) {
    json["dropped"] = row.dropped;
    return json;
  }
  json.update(json_of(row.shown));
  if (row.is_pair)
    json["rejected"] = json_of(row.rejected);
  else
    json["expected"] = row.expected;
  return json;
}

void print_json(const DataView& view, int64_t rows, std::ostream& out) {
  int64_t written = 0;
  view.for_each([&](const ShownRow& row) {
    if (rows < 0 || written++ < rows) out << json_text(json_of(row)) << '\n';
  });
}

int64_t count_of_trained(const ShownText& text) { return std::count(text.trains.begin(), text.trains.end(), 1.0f); }

class Page {
 public:
  Page(const ShowOptions& options, std::ostream& out) : options_(options), out_(out) {}

  void add(const ShownRow& row) {
    lengths_.push_back(row.length());
    if (!row.dropped.empty()) {
      Reason& reason = dropped_[row.dropped.substr(row.dropped.find_first_not_of("0123456789,"))];
      if (reason.rows++ == 0) reason.first = fmt::format("{}: {}", row.source, row.dropped);
    }
    if (static_cast<int64_t>(lengths_.size()) <= options_.rows) print(row);
  }

  void finish() const {
    out_ << fmt::format("{} rows{}, by tokens:\n{}", grouped(static_cast<int64_t>(lengths_.size())),
                        options_.validation ? " of validation" : "", histogram(lengths_));
    int64_t dropped = 0;
    for (const auto& [why, reason] : dropped_) dropped += reason.rows;
    out_ << fmt::format("dropped: {}\n", dropped == 0 ? "none" : grouped(dropped) + (dropped == 1 ? " row" : " rows"));
    for (const auto& [why, reason] : dropped_)
      out_ << fmt::format("  {}, the first {}\n", grouped(reason.rows), one_line(reason.first));
  }

 private:
  struct Reason {
    int64_t rows = 0;
    std::string first;
  };

  void print(const ShownRow& row) const {
    out_ << fmt::format("{}\n", one_line(row.source));
    if (!row.dropped.empty()) out_ << fmt::format("dropped: {}\n", row.dropped);
    print(row.shown, row.is_pair ? "chosen" : "");
    if (row.is_pair) print(row.rejected, "rejected");
    if (!row.expected.empty()) out_ << fmt::format("expected: {}\n", indented(row.expected));
    out_ << '\n';
  }

  void print(const ShownText& text, const char* side) const {
    const int64_t trained = count_of_trained(text);
    out_ << fmt::format("{}{}{} tokens{}\n", side, *side ? ": " : "",
                        grouped(static_cast<int64_t>(text.token_ids.size())),
                        trained > 0 ? fmt::format(", {} train", grouped(trained)) : "");
    out_ << marked(text) << '\n';
  }

  // The text with what trains in colour.
  std::string marked(const ShownText& shown) const {
    const std::string_view text = shown.text;
    std::string out;
    size_t at = 0;
    for (const auto& [begin, bytes] : shown.trained_text) {
      out += printable(text.substr(at, begin - at));
      out += (options_.colours ? "\033[32m" : "{+") + printable(text.substr(begin, bytes));
      out += options_.colours ? "\033[0m" : "+}";
      at = begin + bytes;
    }
    return out + printable(text.substr(at));
  }

  const ShowOptions& options_;
  std::ostream& out_;
  std::vector<int64_t> lengths_;
  std::map<std::string, Reason> dropped_;  // by what is said of them but for numbers
};

}  // namespace

void show(const config::RunConfig& run, const rollout::ModelText& text, const ShowOptions& options, std::ostream& out) {
  const DataView view(run, text, options.validation);
  if (options.json) return print_json(view, options.rows, out);
  for (const std::string& line : view.formats()) out << line << '\n';
  Page page(options, out);
  view.for_each([&](const ShownRow& row) { page.add(row); });
  page.finish();
}

}  // namespace hexad::dataset_view
