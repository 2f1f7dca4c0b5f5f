#include "plugins/dtensor/checkpoint.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

#include <cstring>
#include <fstream>

#include <fmt/ranges.h>

#include "modeling/error.hpp"
#include "modeling/weight/safetensors_reader.hpp"
#include "modeling/weight/safetensors_writer.hpp"
#include "modeling/weight/validate.hpp"

namespace hexad::dtensor {
namespace {

using modeling::Placement;

constexpr const char* kSteps = "steps";

// Runs `body` on rank 0 alone between collectives: its error is kept, so that no rank waits for ever, and ends the save
// on every rank.
class Writer {
 public:
  explicit Writer(const modeling::Group& group) : group_(group) {}

  template <typename Body>
  void run(Body&& body) {
    if (group_.rank() != 0 || failed()) return;
    try {
      body();
    } catch (const std::exception& error) {
      error_ = error.what();
    }
  }

  bool failed() const { return !error_.empty(); }

  // Waits for rank 0; throws everywhere what it met.
  void finish(const std::filesystem::path& dir) const {
    at::Tensor flag = at::full({1}, failed() ? 1.0f : 0.0f, at::kFloat);
    group_.all_reduce(flag, modeling::Reduce::max).wait();
    if (failed()) throw modeling::Error(error_);
    if (flag.item<float>() > 0) modeling::fail("rank 0 could not write {}: its own error says why", dir.string());
  }

 private:
  modeling::Group group_;
  std::string error_;
};

at::Tensor gather(const ShardedModel& model, const ShardedUnit& unit, const at::Tensor& flat, size_t i) {
  return modeling::redistribute(unit.rows_of(flat, i), unit.params()[i].shape, Placement::shard(0),
                                Placement::replicate(), model.group());
}

void replace_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = file.parent_path() / ("." + file.filename().string() + ".partial");
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) modeling::fail("cannot write {}: {}", temporary.string(), std::strerror(errno));
  std::filesystem::rename(temporary, file);
}

void write_configs(const modeling::ModelConfig& config, const std::filesystem::path& source_dir,
                   const std::filesystem::path& dir) {
  nlohmann::json document = config.original;
  document[document.contains("torch_dtype") ? "torch_dtype" : "dtype"] = "float32";
  replace_file(dir / "config.json", document.dump(2) + "\n");
  const std::filesystem::path generation = source_dir / "generation_config.json";
  if (std::filesystem::exists(generation) && !std::filesystem::equivalent(source_dir, dir))
    std::filesystem::copy_file(generation, dir / "generation_config.json",
                               std::filesystem::copy_options::overwrite_existing);
}

std::string state_key(const ShardedParam& param, const std::string& state) { return param.name + "." + state; }

constexpr const char* kForeign = "it was saved by another optimizer or for another model";

// The stored tensors are exactly those that `optimizer` keeps for `model`.
void validate_state(const modeling::SafetensorsReader& reader, ShardedModel& model,
                    const modeling::Optimizer& optimizer) {
  std::map<std::string, std::vector<int64_t>> wanted = {{kSteps, {1}}};
  model.each_param([&](size_t u, size_t i) {
    const ShardedParam& param = model.units()[u].params()[i];
    for (const std::string& name : optimizer.state_names()) wanted[state_key(param, name)] = param.shape;
  });
  for (const auto& [key, shape] : wanted) {
    if (!reader.contains(key))
      modeling::fail("{}: the optimizer state has no '{}': {}", reader.origin(), key, kForeign);
    const std::vector<int64_t>& stored = reader.entries().at(key).shape;
    if (stored != shape)
      modeling::fail("{}: '{}' has shape [{}], wanted [{}]", reader.origin(), key, fmt::join(stored, ", "),
                     fmt::join(shape, ", "));
  }
  for (const auto& [key, stored] : reader.entries())
    if (!wanted.count(key))
      modeling::fail("{}: the optimizer state holds '{}', which this optimizer does not keep: {}", reader.origin(), key,
                     kForeign);
}

}  // namespace

std::vector<std::string> load_weights(ShardedModel& model, const std::filesystem::path& dir, int32_t which) {
  const modeling::SafetensorsReader reader(dir);
  std::vector<std::string> warnings = modeling::validate_weights(reader, model.table());
  model.set_weights(which, [&](const ShardedParam& param) {
    const at::Tensor rows = reader.rows(param.name, param.rows.begin, param.rows.end);
    modeling::require_finite(rows, param.name, reader.entries().at(param.name).file);
    return rows;
  });
  return warnings;
}

void save_weights(ShardedModel& model, const std::filesystem::path& source_dir, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  Writer rank0(model.group());
  std::optional<modeling::SafetensorsWriter> file;
  rank0.run([&] {
    std::vector<modeling::TensorSpec> specs;
    for (const modeling::WeightInfo& info : model.table()) specs.push_back({info.hf_name, info.shape, at::kFloat});
    file.emplace(dir, specs);
  });
  model.each_param([&](size_t u, size_t i) {
    ShardedUnit& unit = model.units()[u];
    const at::Tensor full = gather(model, unit, unit.master(), i);
    rank0.run([&] { file->write(unit.params()[i].name, full); });
  });
  for (const ShardedParam& param : model.frozen_params())
    rank0.run([&] { file->write(param.name, model.frozen(param.name, HEXAD_WEIGHTS_CURRENT).to(at::kCPU)); });
  rank0.run([&] {
    write_configs(model.config(), source_dir, dir);
    file->finish();
  });
  file.reset();
  rank0.finish(dir);
}

void save_optimizer(ShardedModel& model, modeling::Optimizer& optimizer, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  const std::vector<std::string> names = optimizer.state_names();
  Writer rank0(model.group());
  std::optional<modeling::SafetensorsWriter> file;
  rank0.run([&] {
    std::vector<modeling::TensorSpec> specs = {{kSteps, {1}, at::kLong}};
    model.each_param([&](size_t u, size_t i) {
      const ShardedParam& param = model.units()[u].params()[i];
      for (const std::string& name : names) specs.push_back({state_key(param, name), param.shape, at::kFloat});
    });
    file.emplace(dir, specs);
    file->write(kSteps, at::full({1}, optimizer.steps(), at::kLong));
  });
  model.each_param([&](size_t u, size_t i) {
    ShardedUnit& unit = model.units()[u];
    for (const std::string& name : names) {
      const at::Tensor full = gather(model, unit, optimizer.state(name, u, unit.master()), i);
      rank0.run([&] { file->write(state_key(unit.params()[i], name), full); });
    }
  });
  rank0.run([&] { file->finish(); });
  file.reset();
  rank0.finish(dir);
}

void load_optimizer(ShardedModel& model, modeling::Optimizer& optimizer, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  const modeling::SafetensorsReader reader(dir);
  validate_state(reader, model, optimizer);
  model.each_param([&](size_t u, size_t i) {
    ShardedUnit& unit = model.units()[u];
    const ShardedParam& param = unit.params()[i];
    for (const std::string& name : optimizer.state_names()) {
      at::Tensor& flat = optimizer.state(name, u, unit.master());
      if (param.rows.size() > 0)
        unit.rows_of(flat, i).copy_(reader.rows(state_key(param, name), param.rows.begin, param.rows.end));
    }
  });
  optimizer.set_steps(reader.tensor(kSteps).item<int64_t>());
}

}  // namespace hexad::dtensor
