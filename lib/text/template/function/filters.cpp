#include "lib/base/text.hpp"
#include "lib/text/template/function/builtins.hpp"

namespace hexad::text::jinja {
namespace {

// Filters of Jinja that chat templates have no use for.
constexpr std::string_view missing[] = {"batch",    "filesizeformat", "pprint", "random",   "slice",  "striptags",
                                        "truncate", "urlencode",      "urlize", "wordwrap", "xmlattr"};

const FilterTable& all_filters() {
  static const FilterTable table = [] {
    FilterTable all = text_filters();
    for (const FilterTable* part : {&number_filters(), &sequence_filters(), &selection_filters()})
      all.insert(part->begin(), part->end());
    return all;
  }();
  return table;
}

}  // namespace

bool is_filter_name(std::string_view name) { return all_filters().contains(name); }

std::string unknown_filter(std::string_view name) {
  for (std::string_view known : missing) {
    if (name == known) return fmt::format("Jinja's filter '{}' is not supported", name);
  }
  std::vector<std::string> names;
  for (const auto& [known, filter] : all_filters()) names.emplace_back(known);
  const std::optional<std::string> similar = nearest(name, names);
  return fmt::format("No filter named '{}'.{}", name, similar ? fmt::format(" Did you mean '{}'?", *similar) : "");
}

Value apply_filter(Evaluator& evaluator, std::string_view name, const Value& input, Arguments& arguments) {
  const auto found = all_filters().find(name);
  if (found == all_filters().end()) fault("{}", unknown_filter(name));
  return found->second(evaluator, input, arguments);
}

}  // namespace hexad::text::jinja
