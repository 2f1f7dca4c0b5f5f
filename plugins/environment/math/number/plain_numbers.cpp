#include "plugins/environment/math/number/plain_numbers.hpp"

#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

constexpr std::u32string_view kCurrencies =
    U"$€£¥₹₽₪₩₫฿₡₢₣₤₥₦₧₨₭₮₯₰₱₲₳₴₵₶₷₸₺₻₼₾₿";
constexpr std::u32string_view kOperators = U"+-*×/^()÷";

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_operator(char32_t c) { return kOperators.find(c) != kOperators.npos; }
bool in_arithmetic(char32_t c) { return is_digit(c) || c == '.' || is_space(c) || is_operator(c); }

// Where the percent sign or word behind `at` ends, white space before it allowed; `at` if there is none.
size_t behind_percent(std::u32string_view text, size_t at) {
  size_t i = at;
  while (i < text.size() && is_space(text[i])) ++i;
  for (const std::u32string_view word : {U"%", U"percent", U"Percent", U"pct", U"Pct"}) {
    if (text.substr(i).starts_with(word)) return i + word.size();
  }
  return at;
}

}  // namespace

size_t PlainScanner::digits(size_t at) const {
  while (is_digit(get(at))) ++at;
  return at;
}

// Where the thing itself may start: behind what announces it and a "**".
std::vector<size_t> PlainScanner::starts(size_t at) const {
  std::vector<size_t> all;
  const auto add = [&](size_t i) {
    if (get(i) == '*' && get(i + 1) == '*') all.push_back(i + 2);
    all.push_back(i);
  };
  if (at == 0) add(0);
  if (at < text_.size() && (is_space(text_[at]) || text_[at] == '=')) add(at + 1);
  return all;
}

std::optional<Candidate> PlainScanner::number(size_t at, const Accepts& accepts) const {
  for (const size_t start : starts(at)) {
    const bool currency = start < text_.size() && kCurrencies.find(text_[start]) != kCurrencies.npos;
    for (const size_t from : {start + currency, start}) {
      auto found = bare_number(from, accepts);
      if (found) {
        found->begin = at;
        return found;
      }
      if (!currency) break;
    }
  }
  return {};
}

std::optional<Candidate> PlainScanner::bare_number(size_t at, const Accepts& accepts) const {
  if (at > 0 && is_digit(get(at - 1))) return {};
  Candidate found;
  const auto take = [&](size_t integer_end, size_t end) {
    const size_t percent = behind_percent(text_, end);
    for (const size_t last : {percent, end}) {
      if (!accepts(last)) continue;
      found.percent = last != end;
      found.integer = text_.substr(at, integer_end - at);
      found.decimal = text_.substr(integer_end, end - integer_end);
      found.end = last;
      return true;
    }
    return false;
  };
  // A point (or comma) with digits behind it, the most digits first.
  const auto take_decimals = [&](size_t integer_end, bool comma) {
    const bool mark = get(integer_end) == '.' || (comma && get(integer_end) == ',');
    if (!mark) return false;
    for (size_t end = digits(integer_end + 1); end > integer_end + 1; --end) {
      if (take(integer_end, end)) return true;
    }
    return false;
  };
  const size_t first = at + (get(at) == '-'), last = digits(first);

  // Groups of three: 1,234 or 1 234.
  if (get(first) >= '1' && get(first) <= '9') {
    for (size_t head = std::min<size_t>(last - first, 3); head >= 1; --head) {
      size_t groups = 0;
      const auto group = [&](size_t i) {
        return (get(i) == ' ' || get(i) == ',') && is_digit(get(i + 1)) && is_digit(get(i + 2)) && is_digit(get(i + 3));
      };
      while (group(first + head + 4 * groups)) ++groups;
      for (; groups > 0; --groups) {
        const size_t end = first + head + 4 * groups;
        if (take_decimals(end, false) || take(end, end)) return found;
      }
    }
  }
  if (last > first && take_decimals(last, true)) return found;
  if (first == at && take_decimals(at, false)) return found;
  for (size_t end = last; end > first; --end) {
    if (take(end, end)) return found;
  }
  return {};
}

// A closing mark behind arithmetic: perhaps ")" and "**", then . , : ) $ white space or the end of the text.
bool PlainScanner::ended(size_t at, const Accepts& accepts, size_t& end) const {
  const auto closes = [&](size_t i) {
    if (i >= text_.size() || (i + 1 == text_.size() && text_[i] == '\n')) {
      const size_t behind = i < text_.size() && accepts(i + 1) ? i + 1 : i;
      if (!accepts(behind)) return false;
      end = behind;
      return true;
    }
    const char32_t c = text_[i];
    if (!(c == '.' || c == ',' || c == ':' || c == ')' || c == '$' || is_space(c)) || !accepts(i + 1)) return false;
    end = i + 1;
    return true;
  };
  return (get(at) == '*' && get(at + 1) == '*' && closes(at + 2)) || closes(at);
}

std::optional<Candidate> PlainScanner::arithmetic(size_t at, const Accepts& accepts) const {
  for (const size_t start : starts(at)) {
    auto found = bare_arithmetic(start, accepts);
    if (!found) continue;
    found->begin = at;
    return found;
  }
  return {};
}

std::optional<Candidate> PlainScanner::bare_arithmetic(size_t at, const Accepts& accepts) const {
  size_t first = at + (get(at) == '-');
  first += get(first) == '(';
  first += get(first) == '-';
  if (!is_digit(get(first))) return {};
  if (first < run_.begin || first >= run_.end) {
    run_ = {first, first, 0, 0, false};
    while (run_.end < text_.size() && in_arithmetic(text_[run_.end])) ++run_.end;
    // The last place with a closing mark, and the last operator that leaves one character before it.
    for (size_t i = run_.end; i > run_.begin + 2 && !run_.closes; --i) {
      size_t end = 0;
      const auto always = [](size_t) { return true; };
      run_.closes = ended(i, always, end) || (get(i) == ')' && ended(i + 1, always, end));
      run_.last_close = i;
    }
    for (size_t i = run_.closes ? run_.last_close - 1 : 0; i-- > run_.begin;) {
      if (!is_operator(text_[i])) continue;
      run_.last_operator = i;
      break;
    }
  }
  if (!run_.closes || run_.last_operator <= first) return {};
  Candidate found;
  found.kind = Candidate::Kind::arithmetic;
  // Most starts take the run's last closing mark; what a caller rejects is sought further left, in few steps.
  constexpr size_t kMostSteps = 200;
  size_t steps = 0;
  for (size_t i = run_.last_close; i > first + 2 && steps < kMostSteps; --i, ++steps) {
    const size_t bracket = get(i) == ')' ? 1 : 0;
    for (const size_t behind : {i + bracket, i}) {
      if (!ended(behind, accepts, found.end)) continue;
      size_t op = std::min(i - 1, run_.last_operator + 1);
      while (op-- > first + 1 && !is_operator(text_[op])) continue;
      if (op <= first || !is_operator(text_[op])) return {};
      found.text = text_.substr(at, behind - at);
      return found;
    }
  }
  return {};
}

std::optional<Candidate> PlainScanner::either(size_t at, const Accepts& accepts) const {
  if (auto found = arithmetic(at, accepts)) return found;
  return number(at, accepts);
}

}  // namespace hexad::math
