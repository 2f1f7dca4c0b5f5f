// The data that every config of the repository asks for can be had.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "compat/compat.hpp"
#include "core/config/check.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/data/dataset/dataset.hpp"

using namespace hexad;

TEST_CASE("configs ask for data that exists, as much as they say") {
  const std::filesystem::path root = std::getenv("HEXAD_SOURCE_DIR");
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    const config::RunConfig run = config::run_config(config::resolve(entry.path(), {}, compat::all()));
    for (const config::DatasetConfig& dataset : run.data.train) {
      const data::DatasetSplit split = data::load_dataset(dataset, root.string());
      CHECK(std::ssize(split.train.records) >= run.grpo.num_prompts_per_step);
      ++checked;
    }
  }
  CHECK(checked >= 4);
}
