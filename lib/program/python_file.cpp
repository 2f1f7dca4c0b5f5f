#include "lib/program/python_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <vector>

#include "lib/base/text.hpp"

namespace hexad::program {
namespace {

namespace fs = std::filesystem;

bool is_name(const std::string& text) {
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) || c == '_' || c >= 0x80; };
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) && std::ranges::all_of(text, is_letter);
}

// Of the Python files beside it.
std::string near_file(const fs::path& file) {
  std::vector<std::string> beside;
  std::error_code unreadable;
  const fs::path folder = file.parent_path();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, unreadable))
    if (entry.path().extension() == ".py") beside.push_back(entry.path().filename().string());
  std::ranges::sort(beside);
  const std::optional<std::string> near = nearest(file.filename().string(), beside);
  return near ? ", did you mean '" + (folder / *near).string() + "'?" : "";
}

}  // namespace

PythonFunction python_function(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || !is_name(text.substr(colon + 1))) return {text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::string why_unreadable(const PythonFunction& named) {
  std::error_code none;
  const std::string& file = named.file;
  if (!fs::exists(file, none)) return "there is no such file: " + file + near_file(file);
  if (!fs::is_regular_file(file, none)) return file + " is no file";
  if (::access(file.c_str(), R_OK) != 0) return file + " cannot be read";
  return fs::path(file).extension() == ".py" ? "" : file + " is no Python file: its name has to end with .py";
}

}  // namespace hexad::program
