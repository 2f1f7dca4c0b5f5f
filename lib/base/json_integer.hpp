// Whole numbers of JSON that others wrote. nlohmann's get<int64_t>() casts a real to what the cast makes of it, which
// for 4.5e21 is undefined, and cuts a large number to the type's bits.
#pragma once
#include <utility>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad {

// Throws Error(data) unless it is a whole number of the type.
template <typename T, typename J>
T integer(const J& json) {
  const bool fits = json.is_number_unsigned()  ? std::in_range<T>(json.template get<uint64_t>())
                    : json.is_number_integer() ? std::in_range<T>(json.template get<int64_t>())
                                               : false;
  if (!fits) fail(ErrorKind::data, "got {}, wanted a whole number of {} bits", json_text(json), 8 * sizeof(T));
  return json.template get<T>();
}

// The same of every element of a list.
template <typename T, typename J>
std::vector<T> integers(const J& json) {
  if (!json.is_array()) fail(ErrorKind::data, "got {}, wanted a list of whole numbers", json.type_name());
  std::vector<T> all;
  for (const J& element : json) all.push_back(integer<T>(element));
  return all;
}

// The count that an object has under `key`. Throws Error(data) naming it unless it is a whole number, 0 or more.
template <typename T = int64_t, typename J>
T count_of(const J& object, const char* key) {
  const J* const count = object.is_object() && object.contains(key) ? &object.at(key) : nullptr;
  const bool is_negative = count && !count->is_number_unsigned() && *count < 0;
  if (!count || !count->is_number_integer() || is_negative || !std::in_range<T>(count->template get<uint64_t>()))
    fail(ErrorKind::data, "{} is {}, wanted a whole number, 0 or more", key, count ? json_text(*count) : "missing");
  return count->template get<T>();
}

}  // namespace hexad
