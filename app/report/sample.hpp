// One line of train_data_step<N>.jsonl as report.html shows it.
#pragma once
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

namespace hexad::report {

// Tokens that the model wrote; nothing if the line does not tell.
std::optional<int64_t> response_length(const nlohmann::ordered_json& line);

// The sample's object in the page (see data.hpp). The middle of a long sample is left out, and counted. Lines of
// other writers may lack any key.
nlohmann::ordered_json report_sample(const nlohmann::ordered_json& line, int64_t step, size_t row);

}  // namespace hexad::report
