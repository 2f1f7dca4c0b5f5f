#include "lib/table/container.hpp"

#include <array>

namespace hexad::table {
namespace {

struct Suffix {
  const char* text;
  Form form;
};
constexpr std::array<Suffix, 6> kSuffixes = {{{".jsonl", Form::json},
                                              {".json", Form::json},
                                              {".csv", Form::csv},
                                              {".tsv", Form::tsv},
                                              {".parquet", Form::parquet},
                                              {".arrow", Form::arrow}}};

}  // namespace

const char* const kContainers = ".jsonl, .json, .csv, .tsv (each also .gz or .zst), .parquet or .arrow";

std::optional<Container> container_of(const std::filesystem::path& file) {
  std::filesystem::path name = file.filename();
  const std::string last = name.extension();
  const Packing packing = last == ".gz" ? Packing::gz : last == ".zst" ? Packing::zst : Packing::none;
  if (packing != Packing::none) name = name.stem();
  for (const Suffix& suffix : kSuffixes) {
    if (name.extension() != suffix.text) continue;
    if (packing != Packing::none && !is_text(suffix.form)) return std::nullopt;
    return Container{suffix.form, packing};
  }
  return std::nullopt;
}

bool is_text(Form form) { return form != Form::parquet && form != Form::arrow; }

const char* name_of(Form form) {
  switch (form) {
    case Form::json: return "json";
    case Form::csv: return "csv";
    case Form::tsv: return "tsv";
    case Form::parquet: return "parquet";
    case Form::arrow: return "arrow";
  }
  return "";
}

const char* name_of(Packing packing) {
  switch (packing) {
    case Packing::none: return "";
    case Packing::gz: return "gz";
    case Packing::zst: return "zst";
  }
  return "";
}

}  // namespace hexad::table
