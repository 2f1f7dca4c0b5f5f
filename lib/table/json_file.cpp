#include "lib/table/json_file.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/table/line_index.hpp"

namespace hexad::table {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Row object_row(Json value, std::string source, bool is_only) {
  if (!value.is_object()) fail(ErrorKind::data, "{}: want a JSON object, got {}", source, value.type_name());
  return {std::move(value), std::move(source), is_only};
}

std::string text_of(const TextBytes& bytes, int64_t begin, int64_t end) {
  std::string text(static_cast<size_t>(end - begin), '\0');
  bytes.read(begin, text);
  return text;
}

class LineRows : public Rows {
 public:
  LineRows(std::unique_ptr<TextBytes> bytes, fs::path file, int64_t begin)
      : bytes_(std::move(bytes)), file_(std::move(file)), begin_(begin), lines_(*bytes_, begin) {}
  int64_t size() const override { return lines_.size(); }
  Row row(int64_t index) const override {
    const Line line = lines_.at(index);
    const std::string source = fmt::format("{}:{}", file_.string(), line.number);
    std::string text = text_of(*bytes_, line.begin, line.end);
    text.resize(std::min(text.size(), text.find('\n')));
    try {
      return object_row(parse_data(text, source), source, size() == 1);
    } catch (const Error&) {
      if (index == 0) refuse_one_object();
      throw;
    }
  }

 private:
  // Of a file whose first line is no JSON: an object that is written over several lines is named as that. A larger file
  // is not taken into memory for a better message.
  void refuse_one_object() const {
    constexpr int64_t kLarge = int64_t{64} << 20;
    if (bytes_->size() > kLarge) return;
    const std::string text = text_of(*bytes_, begin_, bytes_->size());
    if (trimmed(text).find('\n') == std::string_view::npos) return;
    const Json whole = try_parse_json<Json>(text);
    if (!whole.is_object()) return;
    fail(ErrorKind::data,
         "{}: one JSON object over several lines; want rows: an object a line, or a list of objects in [ ]{}",
         file_.string(), list_hint(whole, file_.string()));
  }

  std::unique_ptr<TextBytes> bytes_;
  fs::path file_;
  int64_t begin_;  // behind a byte order mark
  LineIndex lines_;
};

class ArrayRows : public Rows {
 public:
  ArrayRows(Json array, fs::path file) : array_(std::move(array)), file_(std::move(file)) {}
  int64_t size() const override { return static_cast<int64_t>(array_.size()); }
  Row row(int64_t index) const override {
    return object_row(array_[static_cast<size_t>(index)], fmt::format("{}[{}]", file_.string(), index), size() == 1);
  }

 private:
  Json array_;
  fs::path file_;
};

// Where the text begins: behind a byte order mark of UTF-8. That of UTF-16 is refused.
int64_t text_begin(const TextBytes& bytes, const fs::path& file) {
  const std::string start = text_of(bytes, 0, std::min<int64_t>(bytes.size(), 3));
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF"))
    fail(ErrorKind::data, "{0}: UTF-16, want UTF-8: iconv -f UTF-16 -t UTF-8 {0} > rows.jsonl", file.string());
  return start == "\xEF\xBB\xBF" ? 3 : 0;
}

// The first character that is no white space; 0 where there is none.
char first_character(const TextBytes& bytes, int64_t begin) {
  constexpr int64_t kPart = 4096;
  for (; begin < bytes.size(); begin += kPart) {
    const std::string part = text_of(bytes, begin, std::min(begin + kPart, bytes.size()));
    if (const std::string_view rest = trimmed(part); !rest.empty()) return rest.front();
  }
  return 0;
}

}  // namespace

std::unique_ptr<Rows> json_rows(std::unique_ptr<TextBytes> bytes, const fs::path& file) {
  const int64_t begin = text_begin(*bytes, file);
  if (first_character(*bytes, begin) != '[') return std::make_unique<LineRows>(std::move(bytes), file, begin);
  return std::make_unique<ArrayRows>(parse_data(text_of(*bytes, 0, bytes->size()), file.string()), file);
}

}  // namespace hexad::table
