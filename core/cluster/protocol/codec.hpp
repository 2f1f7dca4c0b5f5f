// Structs to messages and back, both by one list of a struct's fields. Included by protocol.cpp alone.
#pragma once
#include <utility>

#include "core/cluster/protocol/protocol.hpp"
#include "lib/base/json.hpp"

namespace hexad::cluster::protocol {

// visit() calls field("name", struct.name) for each field, of a struct or of a const one.
template <typename T>
struct Fields;

#define HEXAD_FIELD(name) field(#name, fields.name);
#define HEXAD_EACH(...) __VA_OPT__(NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(HEXAD_FIELD, __VA_ARGS__)))
#define HEXAD_ALL(...) __VA_OPT__({ [[maybe_unused]] auto& [__VA_ARGS__] = fields; })
#define HEXAD_LISTED(Type, as_row, as_command, as_event, check, ...)                                                  \
  template <>                                                                                                         \
  struct Fields<Type> {                                                                                               \
    static constexpr bool row = as_row;                                                                               \
    static constexpr const char *command = as_command, *event = as_event;                                             \
    static void visit([[maybe_unused]] auto& fields, [[maybe_unused]] auto&& field) { check HEXAD_EACH(__VA_ARGS__) } \
  };
#define HEXAD_MESSAGE(Type, command, event, ...)                                 \
  HEXAD_LISTED(Type, false, command, event, HEXAD_ALL(__VA_ARGS__), __VA_ARGS__) \
  template const char* name_of<Type>();                                          \
  template Message to_message(const Type&);                                      \
  template Type from_message(const Message&, const std::string&);

// Parts of messages: an array of these in their order, an object whose base has some of its fields, one with all of its
// fields, which the compiler refuses where the list leaves one out.
#define HEXAD_ROW(Type, ...) HEXAD_LISTED(Type, true, "", "", , __VA_ARGS__)
#define HEXAD_INHERITED(Type, ...) HEXAD_LISTED(Type, false, "", "", , __VA_ARGS__)
#define HEXAD_FIELDS(Type, ...) HEXAD_LISTED(Type, false, "", "", HEXAD_ALL(__VA_ARGS__), __VA_ARGS__)
// Messages, all of whose fields are named.
#define HEXAD_COMMAND(Type, name, ...) HEXAD_MESSAGE(Type, name, "", __VA_ARGS__)
#define HEXAD_EVENT(Type, name, ...) HEXAD_MESSAGE(Type, "", name, __VA_ARGS__)
#define HEXAD_REPLY(Type, ...) HEXAD_MESSAGE(Type, "", "", __VA_ARGS__)

// A value that is not what its field holds. The place grows on its way out: "micro_batches[2].rows".
struct Wrong {
  std::string place, got, wanted;
};

inline void need(bool good, const Json& json, const char* wanted) {
  if (good) return;
  constexpr size_t kMostShown = 60;
  const std::string text = json.is_null() ? "nothing" : json_text(json);
  const bool fits = text.size() <= kMostShown;
  throw Wrong{"", fits ? text : fmt::format("{} of {} elements", json.type_name(), json.size()), wanted};
}

template <typename T>
Json encode(const T& value) {
  if constexpr (requires { value.to_json(); }) {
    return value.to_json();
  } else if constexpr (requires { value.has_value(); }) {
    return value ? encode(*value) : Json();
  } else if constexpr (requires { Fields<T>::row; }) {
    Json json = Fields<T>::row ? Json::array() : Json::object();
    Fields<T>::visit(value, [&]([[maybe_unused]] const char* name, const auto& field) {
      if constexpr (Fields<T>::row)
        json.push_back(encode(field));
      else
        json[name] = encode(field);
    });
    return json;
  } else if constexpr (requires { Fields<typename T::value_type>::row; }) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(encode(element));
    return list;
  } else if constexpr (requires { Fields<typename T::mapped_type>::row; }) {
    Json map = Json::object();
    for (const auto& [name, element] : value) map[name] = encode(element);
    return map;
  } else {
    return value;
  }
}

// Does the work at a place, a field's name or a list's index, which an error gets in front of its own.
template <typename Place>
void at(const Place& place, auto&& work) {
  try {
    work();
  } catch (Wrong& inner) {
    const char* const joint = inner.place.empty() || inner.place[0] == '[' ? "" : ".";
    inner.place = fmt::format(std::is_same_v<Place, size_t> ? "[{}]{}{}" : "{}{}{}", place, joint, inner.place);
    throw;
  }
}

// What lies under the name or index of a map or a list; null where nothing does.
template <typename Place>
const Json& member(const Json& json, const Place& place) {
  static const Json nothing;
  if constexpr (std::is_same_v<Place, size_t>)
    return place < json.size() ? json[place] : nothing;
  else
    return json.contains(place) ? json[place] : nothing;
}

template <typename T>
void decode(const Json& json, T& value) {
  if constexpr (std::is_same_v<T, Json>) {
    need(json.is_object(), json, "a map");
    value = json;
  } else if constexpr (std::is_same_v<T, plugin::MetricSum>) {
    need(json.is_object(), json, "a map of metrics");
    try {
      value.add(json);
    } catch (const std::exception&) {
      need(false, json, "[value, weight, reduction] of each metric");
    }
  } else if constexpr (std::is_same_v<T, ErrorKind>) {
    const bool fits = json.is_number_integer() && json >= 0 && json <= static_cast<int>(ErrorKind::internal);
    need(fits, json, "a kind of error");
    value = static_cast<ErrorKind>(json.get<int>());
  } else if constexpr (std::is_same_v<T, bool>) {
    need(json.is_boolean(), json, "true or false");
    value = json.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>())
                                                : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
    if (!fits) need(false, json, fmt::format("a whole number of {} bits", 8 * sizeof(T)).c_str());
    value = json.get<T>();
  } else if constexpr (std::is_floating_point_v<T>) {
    need(json.is_number(), json, "a number");
    value = json.get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    need(json.is_string(), json, "a text");
    value = json.get<std::string>();
  } else if constexpr (requires { value.has_value(); }) {
    if (!json.is_null()) decode(json, value.emplace());
  } else if constexpr (requires { typename T::mapped_type; }) {
    need(json.is_object(), json, "a map");
    for (const auto& entry : json.items()) at(entry.key(), [&] { decode(entry.value(), value[entry.key()]); });
  } else if constexpr (requires { typename T::value_type; }) {
    need(json.is_array(), json, "a list");
    value.resize(json.size());
    size_t i = 0;
    at(i, [&] {
      for (; i < json.size(); ++i) decode(json[i], value[i]);
    });
  } else {
    constexpr bool row = Fields<T>::row;
    need(row ? json.is_array() : json.is_object(), json, row ? "a list" : "a map");
    size_t index = 0;
    Fields<T>::visit(value, [&]([[maybe_unused]] const char* name, auto& field) {
      if constexpr (row)
        at(index, [&] { decode(member(json, index), field); }), ++index;
      else
        at(name, [&] { decode(member(json, name), field); });
    });
    if constexpr (requires { check_slice(value); }) check_slice(value);
  }
}

template <typename T>
const char* name_of() {
  return *Fields<T>::command ? Fields<T>::command : Fields<T>::event;
}

template <typename T>
Message to_message(const T& value) {
  Message message;
  message.command = Fields<T>::command, message.event = Fields<T>::event;
  Fields<T>::visit(value, [&](const std::string& name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, data::Batch>) {
      message.put(name, field);
    } else if constexpr (std::is_same_v<Field, std::optional<data::Batch>>) {
      if (field) message.put(name, *field);
    } else if constexpr (std::is_same_v<Field, std::vector<data::Batch>>) {
      for (size_t i = 0; i < field.size(); ++i) message.put(fmt::format("{}{}", name, i), field[i]);
    } else {
      message.header[name] = encode(field);
    }
  });
  return message;
}

template <typename T>
T from_message(const Message& message, const std::string& name) {
  T value;
  try {
    Fields<T>::visit(value, [&](const char* key, auto& field) {
      using Field = std::remove_cvref_t<decltype(field)>;
      if constexpr (std::is_same_v<Field, data::Batch>) {
        field = message.batch(key);
      } else if constexpr (std::is_same_v<Field, std::optional<data::Batch>>) {
        if (message.header.contains(key)) field = message.batch(key);
      } else if constexpr (std::is_same_v<Field, std::vector<data::Batch>>) {
        for (std::string indexed = fmt::format("{}0", key); message.header.contains(indexed);
             indexed = fmt::format("{}{}", key, field.size()))
          field.push_back(message.batch(indexed));
      } else {
        at(key, [&] { decode(member(message.header, key), field); });
      }
    });
  } catch (const Wrong& wrong) {
    const auto [kind, named] = !message.command.empty() ? std::pair("command", message.command)
                               : !message.event.empty() ? std::pair("event", message.event)
                                                        : std::pair("reply to", name);
    fail(ErrorKind::worker, "{} '{}': field {}: got {}, wanted {}", kind, named, wrong.place, wrong.got, wrong.wanted);
  }
  return value;
}

}  // namespace hexad::cluster::protocol
