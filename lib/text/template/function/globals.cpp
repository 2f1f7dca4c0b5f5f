// The functions that every template sees.
#include <array>
#include <ctime>

#include "lib/text/template/function/arguments.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/evaluator.hpp"
#include "lib/text/template/value/python_text.hpp"

namespace hexad::text::jinja {
namespace {

constexpr int64_t max_range = 100'000;  // Jinja's sandbox has the same bound

Value range(Evaluator& evaluator, Arguments& arguments) {
  const Bound bound("range", arguments, {"start", "stop", "step"}, 1);
  constexpr int64_t far = int64_t{1} << 40;
  const auto number = [&](size_t index, int64_t fallback) {
    return Int{std::clamp(bound.integer(index, fallback), -far, far)};
  };
  const Range range = bound.has(1) ? Range{number(0, 0), number(1, 0), number(2, 1)} : Range{0, number(0, 0), 1};
  if (range.step == 0) fault("range() arg 3 must not be zero");
  if (range.length() > max_range)
    fault("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", max_range);
  evaluator.budget.allocate(sizeof(Range));
  return std::make_shared<const Range>(range);
}

// dict(mapping or pairs, name=value ...)
Dict build_dict(Evaluator& evaluator, Arguments& arguments) {
  Dict dict;
  if (arguments.positional.size() > 1) fault("dict expected at most 1 argument, got {}", arguments.positional.size());
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.dict()) {
      for (const auto& [key, value] : source.dict()->entries) dict.set(key, value, evaluator.budget);
    } else {
      for (const Value& pair : to_vector(source, evaluator.budget)) {
        const std::vector<Value> parts = to_vector(pair, evaluator.budget);
        if (parts.size() != 2) fault("dict() wants pairs, found {} elements", parts.size());
        dict.set(parts[0], parts[1], evaluator.budget);
      }
    }
  }
  for (const auto& [name, value] : arguments.named)
    dict.set(make_text(name, evaluator.budget), value, evaluator.budget);
  return dict;
}

Value dict(Evaluator& evaluator, Arguments& arguments) {
  return make_dict(build_dict(evaluator, arguments), evaluator.budget);
}

Value make_namespace(Evaluator& evaluator, Arguments& arguments) {
  Dict attributes = build_dict(evaluator, arguments);
  for (const auto& [name, value] : attributes.entries) {
    if (name.text() && name.text()->bytes.starts_with('_')) {
      fault("a namespace cannot have the attribute '{}': its name begins with '_'", name.text()->bytes);
    }
  }
  return evaluator.make_namespace(std::move(attributes));
}

Value raise_exception(Evaluator& evaluator, Arguments& arguments) {
  const Bound bound("raise_exception", arguments, {"message"}, 1);
  fault("{}", str(bound.at(0), evaluator.budget));
}

// The local time.
Value strftime_now(Evaluator& evaluator, Arguments& arguments) {
  const Bound bound("strftime_now", arguments, {"format"}, 1);
  const std::string format = bound.text(0, "");
  if (format.empty()) return make_text("", evaluator.budget);
  if (format.size() > 1000) fault("strftime_now(): the format is too long");
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::vector<char> buffer(format.size() * 64 + 64);
  const size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
  return make_text(std::string(buffer.data(), size), evaluator.budget);
}

// A function that gives nothing when it is called first, and the separator from then on.
Value joiner(Evaluator& evaluator, Arguments& arguments) {
  const Bound bound("joiner", arguments, {"sep"});
  Callable callable;
  callable.name = "joiner";
  const Value separator = make_text(bound.text(0, ", "), evaluator.budget);
  callable.call = [separator, used = std::make_shared<bool>(false)](Evaluator& running, Arguments&) {
    return std::exchange(*used, true) ? separator : make_text("", running.budget);
  };
  return std::make_shared<const Callable>(std::move(callable));
}

using Function = Value (*)(Evaluator&, Arguments&);

Value global(std::string_view name, Function function) {
  return std::make_shared<const Callable>(Callable{std::string(name), function});
}

}  // namespace

const Value* find_global(std::string_view name) {
  static const std::array<std::pair<std::string_view, Value>, 6> globals = {
      {{"range", global("range", range)},
       {"dict", global("dict", dict)},
       {"namespace", global("namespace", make_namespace)},
       {"raise_exception", global("raise_exception", raise_exception)},
       {"strftime_now", global("strftime_now", strftime_now)},
       {"joiner", global("joiner", joiner)}}};
  for (const auto& [known, value] : globals) {
    if (known == name) return &value;
  }
  return nullptr;
}

}  // namespace hexad::text::jinja
