#include "plugins/environment/math/latex/units.hpp"

#include "plugins/environment/math/latex/rewrite.hpp"
#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

// The words that latex2sympy2_extended takes for units, odd ones included; "." is any character, as there.
constexpr std::string_view kUnits =
    " m east|Surface|a . m|ab|acre|am|apple|are|bc|by|cc|cent|children ticket|cm 2|cm|coin|cu . m|cu cm|cube|cubic|c|"
    "day|decrease|degree|deg|digit|dm|d|east|edge|excess|feet|ft|gain|gallon|gal|gm|g|hectare|hour|hr|h|inches|inch|"
    "increase|integerpoint|kg|kmh|kmph|km|lb|less|liter|litre|loss|lt|l|man|mark|meal|men|meter|metre|mile|minute|minw|"
    "min|mm|monkey|month|more|mph|mp|mtr|mt|multiple|m square|m|no change|noon|number|ohm|o|p . m|per|pi sq m|pie|pm|"
    "pound|prime|profit of rs|profit|pure|[a-hq] .|ratio|rd|rise|rounds|rs .|rs|rupee|second|sec|soldier|sq . m|"
    "sq inch|sq m|square|sq|student|sue|st|s .|s|th|tile|toy|t|unit|v â € ™|way|west|woman|women|yard|year|yr|° f|"
    "π r 2|∏ cm ³";

}  // namespace

std::string without_units(const std::string& text) {
  static const Rewrite last_words(R"(\\(?:text|mbox)\{.*?\}(?:\^\d|\{\^\d\})?$)", "");
  static const std::string pattern = "(\\d|\\}|\\s)\\s*(?:" + std::string(kUnits) + ")(?:s|es)?\\s*$";
  static const Rewrite unit(pattern, "$1");
  std::string result = text;
  const std::string without_words(trimmed(last_words(text)));
  if (!without_words.empty()) result = without_words;
  for (int i = 0; i < 2; ++i) {
    std::string shorter = unit(result);
    if (!shorter.empty()) result = std::move(shorter);
  }
  return result;
}

}  // namespace hexad::math
