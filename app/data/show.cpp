#include "app/data/show.hpp"

#include <algorithm>
#include <map>
#include <numeric>

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
  if (!row.score) return json;
  json["response"] = row.score->response;
  json["reward"] = row.score->reward ? Json(*row.score->reward) : Json();
  if (!row.score->reward) json["no_reward"] = row.score->why_none;
  json["components"] = row.score->components;
  return json;
}

// Hands rows on in their order, with rewards where they are asked for: many are scored together.
class ScoredRows {
 public:
  ScoredRows(const Scorer& score, std::function<void(const ShownRow&)> take) : score_(score), take_(std::move(take)) {}

  void add(const ShownRow& row) {
    if (!score_) return take_(row);
    rows_.push_back(row);
    if (rows_.size() >= kAtOnce) flush();
  }
  void flush() {
    std::vector<data::SharedDatum> prompts;
    for (const ShownRow& row : rows_)
      if (is_scored(row)) prompts.push_back(row.prompt);
    std::vector<Scored> scores = prompts.empty() ? std::vector<Scored>() : score_(prompts);
    auto next = scores.begin();
    for (ShownRow& row : rows_) {
      if (is_scored(row)) keep(row.score.emplace(std::move(*next++)));
      take_(row);
    }
    rows_.clear();
  }
  // "rewards of 3 rows: mean 0.6667, 0 to 1; 1 more has none"; "" where none were asked for.
  std::string summary() const {
    if (!score_) return "";
    const auto count = std::ssize(rewards_);
    std::string text = fmt::format("rewards of {} row{}", grouped(count), count == 1 ? "" : "s");
    if (count > 0) {
      const auto [least, most] = std::ranges::minmax(rewards_);
      text +=
          fmt::format(": mean {:.4g}, {:.4g} to {:.4g}",
                      std::accumulate(rewards_.begin(), rewards_.end(), 0.0) / static_cast<double>(count), least, most);
    }
    return text + (without_ > 0 ? fmt::format("; {} more have none\n", grouped(without_)) : "\n");
  }

 private:
  static constexpr size_t kAtOnce = 64;
  static bool is_scored(const ShownRow& row) { return row.dropped.empty() && row.prompt; }
  void keep(const Scored& score) {
    if (score.reward)
      rewards_.push_back(*score.reward);
    else
      ++without_;
  }

  const Scorer& score_;
  std::function<void(const ShownRow&)> take_;
  std::vector<ShownRow> rows_;
  std::vector<float> rewards_;
  int64_t without_ = 0;
};

void print_json(const DataView& view, const ShowOptions& options, std::ostream& out) {
  int64_t left = options.rows;
  if (left == 0) return;
  ScoredRows rows(options.score, [&](const ShownRow& row) { out << json_text(json_of(row)) << '\n'; });
  view.for_each([&](const ShownRow& row) {
    rows.add(row);
    return left < 0 || --left > 0;
  });
  rows.flush();
}

int64_t count_of_trained(const ShownText& text) { return std::count(text.trains.begin(), text.trains.end(), 1.0f); }

class Page {
 public:
  Page(const ShowOptions& options, std::ostream& out)
      : options_(options), out_(out), shown_(options.score, [this](const ShownRow& row) { print(row); }) {}

  void add(const ShownRow& row) {
    lengths_.push_back(row.length());
    if (!row.dropped.empty()) {
      Reason& reason = dropped_[row.dropped.substr(row.dropped.find_first_not_of("0123456789,"))];
      if (reason.rows++ == 0) reason.first = fmt::format("{}: {}", row.source, row.dropped);
    }
    const auto rows = std::ssize(lengths_);
    if (rows <= options_.rows) shown_.add(row);
    if (rows == options_.rows) shown_.flush();  // the others are counted alone, which may take minutes
  }

  void finish() {
    shown_.flush();
    out_ << shown_.summary();
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
    if (row.score) print(*row.score, row.expected);
    out_ << '\n';
  }

  void print(const Scored& score, const std::string& expected) const {
    if (score.response != expected) out_ << fmt::format("response: {}\n", indented(score.response));
    std::vector<std::string> parts;
    for (const auto& [name, value] : score.components) parts.push_back(fmt::format("{} {:.4g}", one_line(name), value));
    const std::string of = parts.empty() ? "" : fmt::format(" ({})", joined(parts));
    if (score.reward)
      out_ << fmt::format("reward: {:.4g}{}\n", *score.reward, of);
    else
      out_ << fmt::format("reward: none{}\n", score.why_none.empty() ? "" : ", " + one_line(score.why_none));
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
  ScoredRows shown_;
  std::vector<int64_t> lengths_;
  std::map<std::string, Reason> dropped_;  // by what is said of them but for numbers
};

}  // namespace

void show(const config::RunConfig& run, const rollout::ModelText& text, const ShowOptions& options, std::ostream& out) {
  const DataView view(run, text, options.validation);
  if (options.json) return print_json(view, options, out);
  for (const std::string& line : view.formats()) out << line << '\n';
  Page page(options, out);
  view.for_each([&](const ShownRow& row) {
    page.add(row);
    return true;
  });
  page.finish();
}

}  // namespace hexad::dataset_view
