#include <algorithm>
#include <string_view>
#include <vector>

#include <arrow/array.h>
#include <arrow/csv/reader.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#include "lib/table/arrow/chunked.hpp"
#include "lib/table/arrow/kept.hpp"
#include "lib/table/arrow/packed.hpp"
#include "lib/table/arrow/value.hpp"
#include "lib/table/arrow/written.hpp"

namespace hexad::table::arrow_files {
namespace {

// The first line names the columns; each cell is text, an empty one is missing.
Reader cells_of(const Source& source) {
  auto read = arrow::csv::ReadOptions::Defaults();
  read.use_threads = false;
  read.block_size = 32 << 20;  // a row has to fit in
  auto parse = arrow::csv::ParseOptions::Defaults();
  parse.delimiter = source.form == std::string_view("tsv") ? '\t' : ',';
  parse.newlines_in_values = true;
  auto convert = arrow::csv::ConvertOptions::Defaults();
  convert.default_column_type = arrow::utf8();
  convert.strings_can_be_null = true;
  convert.null_values = {""};
  return take(arrow::csv::StreamingReader::Make(arrow::io::IOContext(arrow::system_memory_pool()),
                                                unpacked(source.file, source.packing), read, parse, convert));
}

// The columns as they are handed out: those whose cells are all numbers, or all true and false, are marked as such. One
// without a name gets that which pandas gives it.
std::shared_ptr<arrow::Schema> schema_of(const arrow::Schema& names, const std::vector<Written>& columns) {
  const auto mark = arrow::key_value_metadata({kAsWritten}, {""});
  arrow::FieldVector fields;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = names.field(static_cast<int>(i))->name();
    fields.push_back(arrow::field(name.empty() ? "Unnamed: " + std::to_string(i) : name, arrow::utf8(), true,
                                  columns[i].is_json() ? mark : nullptr));
  }
  return arrow::schema(std::move(fields));
}

// The same rows under another schema, with true and false as JSON writes them.
class Named : public arrow::RecordBatchReader {
 public:
  Named(Reader cells, std::shared_ptr<arrow::Schema> schema, const std::vector<Written>& columns)
      : cells_(std::move(cells)), schema_(std::move(schema)), columns_(columns) {
    if (cells_->schema()->num_fields() != schema_->num_fields()) refuse_change();  // since it was read before
  }
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  arrow::Status ReadNext(Batch* batch) override {
    Batch cells;
    ARROW_RETURN_NOT_OK(cells_->ReadNext(&cells));
    batch->reset();
    if (!cells) return arrow::Status::OK();
    arrow::ArrayVector arrays = cells->columns();
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (columns_[i].is_boolean()) ARROW_RETURN_NOT_OK(lower_case(*arrays[i]).Value(&arrays[i]));
    }
    *batch = arrow::RecordBatch::Make(schema_, cells->num_rows(), std::move(arrays));
    return arrow::Status::OK();
  }

 private:
  Reader cells_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<Written> columns_;
};

}  // namespace

std::unique_ptr<Table> open_csv(const Source& source) {
  if (auto table = kept(source)) return table;
  // What a column holds is known at its end: the file is read once for that.
  const Reader cells = cells_of(source);
  std::vector<Written> columns(static_cast<size_t>(cells->schema()->num_fields()));
  while (const Batch batch = take(cells->Next())) {
    for (int i = 0; i < batch->num_columns(); ++i)
      columns[static_cast<size_t>(i)].add(static_cast<const arrow::StringArray&>(*batch->column(i)));
  }
  const auto schema = schema_of(*cells->schema(), columns);
  check_schema(*schema);
  return keep(source, [&] { return std::make_shared<Named>(cells_of(source), schema, columns); });
}

}  // namespace hexad::table::arrow_files
