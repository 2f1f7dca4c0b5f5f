#include "lib/table/arrow/value.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/float16.h>
#include <arrow/util/key_value_metadata.h>
#include <arrow/util/utf8.h>
#include <nlohmann/json.hpp>

#include "lib/table/arrow/table.hpp"

namespace hexad::table::arrow_files {
namespace {

using arrow::Array;
using arrow::Type;

void append_text(std::string_view text, std::string& out) {
  constexpr const char* kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

template <typename Integer>
void append_integer(Integer value, std::string& out) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

// The shortest digits that mean this number, laid out as Python does: with an exponent below 1e-4 and from 1e16 on.
void append_real(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const double size = std::abs(value);
  const bool with_exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  char text[40];
  const char* const end = std::to_chars(text, text + sizeof text, value,
                                        with_exponent ? std::chars_format::scientific : std::chars_format::fixed)
                              .ptr;
  const std::string_view digits(text, static_cast<size_t>(end - text));
  out += digits;
  if (digits.find_first_of(".e") == digits.npos) out += ".0";
}

void append_milliseconds(int64_t value, arrow::TimeUnit::type unit, std::string& out) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      append_integer(value, out);
      if (value != 0) out += "000";
      return;
    case arrow::TimeUnit::MILLI: return append_integer(value, out);
    case arrow::TimeUnit::MICRO: return append_integer(value / 1'000 - (value % 1'000 < 0), out);
    case arrow::TimeUnit::NANO: return append_integer(value / 1'000'000 - (value % 1'000'000 < 0), out);
  }
}

// Thrown of a text that is none; `path`: behind the column's name, the fields of structs in which it lies.
struct NotUtf8 {
  std::string path;
};

void append_value(const Array& array, int64_t index, std::string& out);
void append_extension(const arrow::ExtensionArray& array, int64_t index, std::string& out);

void append_items(const Array& values, int64_t begin, int64_t count, std::string& out) {
  out += '[';
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) out += ", ";
    append_value(values, begin + i, out);
  }
  out += ']';
}

template <typename ListArray>
void append_list(const Array& array, int64_t index, std::string& out) {
  const auto& list = static_cast<const ListArray&>(array);
  append_items(*list.values(), list.value_offset(index), list.value_length(index), out);
}

// [[key, value], ...]
void append_map(const Array& array, int64_t index, std::string& out) {
  const auto& map = static_cast<const arrow::MapArray&>(array);
  out += '[';
  for (int64_t i = map.value_offset(index), end = i + map.value_length(index); i < end; ++i) {
    if (out.back() != '[') out += ", ";
    out += '[';
    append_value(*map.keys(), i, out);
    out += ", ";
    append_value(*map.items(), i, out);
    out += ']';
  }
  out += ']';
}

void append_struct(const Array& array, int64_t index, std::string& out) {
  const auto& object = static_cast<const arrow::StructArray&>(array);
  out += '{';
  for (int i = 0; i < object.num_fields(); ++i) {
    if (i > 0) out += ", ";
    const std::string& name = object.type()->field(i)->name();
    append_text(name, out);
    out += ": ";
    try {
      append_value(*object.field(i), index, out);
    } catch (NotUtf8& found) {
      found.path.insert(0, "." + name);
      throw;
    }
  }
  out += '}';
}

template <typename NumberArray>
auto number(const Array& array, int64_t index) {
  return static_cast<const NumberArray&>(array).Value(index);
}

bool is_utf8(std::string_view text) {
  static const bool ready = (arrow::util::InitializeUTF8(), true);
  return ready && arrow::util::ValidateUTF8(text);
}

template <typename TextArray>
void append_text_of(const Array& array, int64_t index, std::string& out) {
  const std::string_view text = static_cast<const TextArray&>(array).GetView(index);
  if (!is_utf8(text)) throw NotUtf8();
  append_text(text, out);
}

// An image or a digest that nobody asks for makes no row unreadable.
template <typename BytesArray>
void append_bytes_of(const Array& array, int64_t index, std::string& out) {
  const std::string_view bytes = static_cast<const BytesArray&>(array).GetView(index);
  if (is_utf8(bytes)) return append_text(bytes, out);
  out += "null";
}

// Numbers and what is written as one; false for any other type.
bool append_number(const Array& array, int64_t index, std::string& out) {
  switch (array.type_id()) {
    case Type::INT8: append_integer(number<arrow::Int8Array>(array, index), out); return true;
    case Type::INT16: append_integer(number<arrow::Int16Array>(array, index), out); return true;
    case Type::INT32: append_integer(number<arrow::Int32Array>(array, index), out); return true;
    case Type::INT64: append_integer(number<arrow::Int64Array>(array, index), out); return true;
    case Type::UINT8: append_integer(number<arrow::UInt8Array>(array, index), out); return true;
    case Type::UINT16: append_integer(number<arrow::UInt16Array>(array, index), out); return true;
    case Type::UINT32: append_integer(number<arrow::UInt32Array>(array, index), out); return true;
    case Type::UINT64: append_integer(number<arrow::UInt64Array>(array, index), out); return true;
    case Type::FLOAT: append_real(number<arrow::FloatArray>(array, index), out); return true;
    case Type::DOUBLE: append_real(number<arrow::DoubleArray>(array, index), out); return true;
    case Type::HALF_FLOAT:
      append_real(arrow::util::Float16::FromBits(number<arrow::HalfFloatArray>(array, index)).ToDouble(), out);
      return true;
    case Type::DATE32: append_integer(int64_t{number<arrow::Date32Array>(array, index)} * 86'400'000, out); return true;
    case Type::DATE64: append_integer(number<arrow::Date64Array>(array, index), out); return true;
    case Type::TIMESTAMP:
      append_milliseconds(number<arrow::TimestampArray>(array, index),
                          static_cast<const arrow::TimestampType&>(*array.type()).unit(), out);
      return true;
    default: return false;
  }
}

void append_value(const Array& array, int64_t index, std::string& out) {
  if (array.IsNull(index)) {
    out += "null";
    return;
  }
  if (append_number(array, index, out)) return;
  switch (array.type_id()) {
    case Type::BOOL: out += number<arrow::BooleanArray>(array, index) ? "true" : "false"; return;
    case Type::STRING: return append_text_of<arrow::BinaryArray>(array, index, out);
    case Type::LARGE_STRING: return append_text_of<arrow::LargeBinaryArray>(array, index, out);
    case Type::STRING_VIEW: return append_text_of<arrow::BinaryViewArray>(array, index, out);
    case Type::BINARY: return append_bytes_of<arrow::BinaryArray>(array, index, out);
    case Type::LARGE_BINARY: return append_bytes_of<arrow::LargeBinaryArray>(array, index, out);
    case Type::BINARY_VIEW: return append_bytes_of<arrow::BinaryViewArray>(array, index, out);
    case Type::FIXED_SIZE_BINARY: return append_bytes_of<arrow::FixedSizeBinaryArray>(array, index, out);
    case Type::DECIMAL128:
      return append_text(static_cast<const arrow::Decimal128Array&>(array).FormatValue(index), out);
    case Type::DECIMAL256:
      return append_text(static_cast<const arrow::Decimal256Array&>(array).FormatValue(index), out);
    case Type::LIST: return append_list<arrow::ListArray>(array, index, out);
    case Type::LARGE_LIST: return append_list<arrow::LargeListArray>(array, index, out);
    case Type::FIXED_SIZE_LIST: return append_list<arrow::FixedSizeListArray>(array, index, out);
    case Type::LIST_VIEW: return append_list<arrow::ListViewArray>(array, index, out);
    case Type::MAP: return append_map(array, index, out);
    case Type::STRUCT: return append_struct(array, index, out);
    case Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return append_value(*coded.dictionary(), coded.GetValueIndex(index), out);
    }
    case Type::EXTENSION: return append_extension(static_cast<const arrow::ExtensionArray&>(array), index, out);
    default: throw Refused("values of type " + array.type()->ToString() + " have no JSON");  // check_schema's to say
  }
}

// The text of a storage that is one.
std::optional<std::string_view> text_at(const Array& array, int64_t index) {
  switch (array.type_id()) {
    case Type::STRING: return static_cast<const arrow::StringArray&>(array).GetView(index);
    case Type::LARGE_STRING: return static_cast<const arrow::LargeStringArray&>(array).GetView(index);
    case Type::STRING_VIEW: return static_cast<const arrow::StringViewArray&>(array).GetView(index);
    default: return std::nullopt;
  }
}

// Values of several types, calls of tools among them, are JSON's text in a column that says so: Json of `datasets`.
void append_extension(const arrow::ExtensionArray& array, int64_t index, std::string& out) {
  const auto& type = static_cast<const arrow::ExtensionType&>(*array.type());
  const std::optional<std::string_view> text = text_at(*array.storage(), index);
  if (text && type.extension_name() == "arrow.json" && nlohmann::json::accept(*text)) {
    out += *text;
  } else {
    append_value(*array.storage(), index, out);
  }
}

bool has_json(Type::type type) {
  switch (type) {
    case Type::NA:
    case Type::BOOL:
    case Type::STRING:
    case Type::BINARY:
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
    case Type::STRING_VIEW:
    case Type::BINARY_VIEW:
    case Type::FIXED_SIZE_BINARY:
    case Type::DECIMAL128:
    case Type::DECIMAL256:
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST:
    case Type::LIST_VIEW:
    case Type::MAP:
    case Type::STRUCT:
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIMESTAMP: return true;
    default: return arrow::is_integer(type) || arrow::is_floating(type);
  }
}

// Anybody's file may say so of any column.
bool is_as_written(const arrow::Field& field) {
  return field.type()->id() == Type::STRING && field.metadata() && field.metadata()->Contains(kAsWritten);
}

void check_type(const arrow::DataType& type, const std::string& column, int depth) {
  constexpr int kDeepest = 100;
  if (depth > kDeepest) throw Refused("column '" + column + "': nested deeper than 100 levels");
  if (type.id() == Type::DICTIONARY)
    return check_type(*static_cast<const arrow::DictionaryType&>(type).value_type(), column, depth + 1);
  if (type.id() == Type::EXTENSION)
    return check_type(*static_cast<const arrow::ExtensionType&>(type).storage_type(), column, depth + 1);
  if (!has_json(type.id()))
    throw Refused("column '" + column + "' is of type " + type.ToString() +
                  ", which has no JSON; leave it out, or make text of it");
  for (const auto& field : type.fields())
    check_type(*field->type(), type.id() == Type::STRUCT ? column + "." + field->name() : column, depth + 1);
}

}  // namespace

void check_schema(const arrow::Schema& schema) {
  if (schema.num_fields() == 0) throw Refused("it has no columns");
  for (const auto& field : schema.fields()) {
    if (schema.GetAllFieldIndices(field->name()).size() > 1)
      throw Refused("column '" + field->name() + "' stands twice");
    check_type(*field->type(), field->name(), 0);
  }
}

namespace {

void append_column(const Array& column, const arrow::Field& field, int64_t index, std::string& out) {
  try {
    append_value(column, index, out);
  } catch (const NotUtf8& found) {
    throw Refused("column '" + field.name() + found.path +
                  "': text that is not UTF-8; write it as UTF-8, or leave the column out");
  }
}

}  // namespace

void append_row(const arrow::RecordBatch& batch, int64_t index, std::string& out) {
  out += '{';
  for (int i = 0; i < batch.num_columns(); ++i) {
    const arrow::Field& field = *batch.schema()->field(i);
    if (i > 0) out += ", ";
    append_text(field.name(), out);
    out += ": ";
    const Array& column = *batch.column(i);
    if (is_as_written(field) && column.IsValid(index)) {
      out += static_cast<const arrow::StringArray&>(column).GetView(index);
    } else {
      append_column(column, field, index, out);
    }
  }
  out += '}';
}

}  // namespace hexad::table::arrow_files
