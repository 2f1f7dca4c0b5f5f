#include "core/plugin/loader.hpp"

#include <algorithm>

#include "lib/base/error.hpp"

namespace hexad::plugin {
namespace {

constexpr int kMaxChain = 64;

template <typename Field>
void require(const Field& field, const char* name, const std::string& path) {
  if (!field) fail(ErrorKind::plugin, "{}: its vtable lacks the required function {}", path, name);
}

template <typename Table>
void check_size(const Table* table, uint64_t needed, const char* what, const std::string& path) {
  if (table->struct_size < needed) {
    fail(ErrorKind::plugin, "{}: {} has struct_size {}, its first release needs {}. Fill it with HEXAD_STRUCT_SIZE",
         path, what, table->struct_size, needed);
  }
}

void check_loss(const hexad_loss_vtable* table, const std::string& path) {
  check_size(table, HEXAD_STRUCT_SIZE(hexad_loss_vtable, compute), "the loss vtable", path);
  require(table->create, "create", path);
  require(table->destroy, "destroy", path);
  require(table->compute, "compute", path);
  const bool lists = (table->num_inputs == 0 || table->inputs) && (table->num_metrics == 0 || table->metrics);
  if (table->num_inputs > 64 || table->num_metrics > 64 || !lists) {
    fail(ErrorKind::plugin, "{}: declares {} inputs and {} metrics; at most 64 of each, with their lists", path,
         table->num_inputs, table->num_metrics);
  }
  for (uint32_t i = 0; i < table->num_inputs; ++i) require(table->inputs[i].name, "inputs[].name", path);
  for (uint32_t i = 0; i < table->num_metrics; ++i) {
    const hexad_metric_spec& metric = table->metrics[i];
    require(metric.name, "metrics[].name", path);
    if (metric.reduce < HEXAD_REDUCE_SUM || metric.reduce > HEXAD_REDUCE_LAST)
      fail(ErrorKind::plugin, "{}: its metric '{}' has the reduction {}, which the ABI does not name", path,
           metric.name, metric.reduce);
  }
  if (!(table->caps & (HEXAD_CAP_HOST_MEM | HEXAD_CAP_CUDA_MEM))) {
    fail(ErrorKind::plugin, "{}: its caps name neither host nor CUDA memory", path);
  }
  if (HEXAD_HAS(table, state_load) && !table->state_save != !table->state_load) {
    fail(ErrorKind::plugin, "{}: state_save and state_load go together, it has one of them", path);
  }
}

void check_backend(const hexad_backend_vtable* table, const std::string& path) {
  check_size(table, HEXAD_STRUCT_SIZE(hexad_backend_vtable, weights_end), "the backend vtable", path);
  require(table->create, "create", path);
  require(table->destroy, "destroy", path);
  require(table->describe, "describe", path);
  require(table->forward, "forward", path);
  require(table->train, "train", path);
  require(table->step, "step", path);
  require(table->keep, "keep", path);
  require(table->load, "load", path);
  require(table->save, "save", path);
  require(table->weight_layout, "weight_layout", path);
  require(table->weights_begin, "weights_begin", path);
  require(table->weights_next, "weights_next", path);
  require(table->weights_end, "weights_end", path);
}

void check_generator(const hexad_generator_vtable* table, const std::string& path) {
  check_size(table, HEXAD_STRUCT_SIZE(hexad_generator_vtable, update_end), "the generator vtable", path);
  require(table->create, "create", path);
  require(table->destroy, "destroy", path);
  require(table->describe, "describe", path);
  require(table->submit, "submit", path);
  require(table->poll, "poll", path);
  require(table->release, "release", path);
  require(table->cancel, "cancel", path);
  require(table->update_begin, "update_begin", path);
  require(table->update_bucket, "update_bucket", path);
  require(table->update_end, "update_end", path);
}

void check_environment(const hexad_environment_vtable* table, const std::string& path) {
  check_size(table, HEXAD_STRUCT_SIZE(hexad_environment_vtable, score), "the environment vtable", path);
  require(table->create, "create", path);
  require(table->destroy, "destroy", path);
  require(table->score, "score", path);
  if (table->num_components > 64 || (table->num_components > 0 && !table->components)) {
    fail(ErrorKind::plugin, "{}: declares {} components; at most 64, with their list", path, table->num_components);
  }
  for (uint32_t i = 0; i < table->num_components; ++i) require(table->components[i], "components[]", path);
}

std::string named(int32_t kind, const char* name) {
  const std::string text =
      std::any_of(std::begin(kKinds), std::end(kKinds), [&](Kind known) { return static_cast<int32_t>(known) == kind; })
          ? std::string(kind_name(static_cast<Kind>(kind)))
          : fmt::format("kind {}", kind);
  return fmt::format("{} '{}'", text, name ? name : "");
}

void check_vtable(const hexad_plugin_desc* desc, const std::string& path) {
  const bool backend = desc->backend, generator = desc->generator, loss = desc->loss;
  const bool environment = HEXAD_HAS(desc, environment) && desc->environment;
  const bool right = (desc->kind == HEXAD_KIND_BACKEND && backend) ||
                     (desc->kind == HEXAD_KIND_GENERATOR && generator) || (desc->kind == HEXAD_KIND_LOSS && loss) ||
                     (desc->kind == HEXAD_KIND_ENVIRONMENT && environment);
  if (!right || backend + generator + loss + environment != 1) {
    fail(ErrorKind::plugin, "{}: {} must have exactly the vtable of its kind", path, named(desc->kind, desc->name));
  }
  if (backend) check_backend(desc->backend, path);
  if (generator) check_generator(desc->generator, path);
  if (loss) check_loss(desc->loss, path);
  if (environment) check_environment(desc->environment, path);
}

}  // namespace

const hexad_plugin_desc* select_descriptor(const hexad_plugin_desc* first, const Manifest& manifest,
                                           const std::string& path) {
  if (!first) fail(ErrorKind::plugin, "{}: hexad_plugin_query_v1 returned no descriptor", path);
  const hexad_plugin_desc* desc = nullptr;
  int length = 0;
  for (const hexad_plugin_desc* each = first; each && !desc && length < kMaxChain; each = each->next, ++length) {
    check_size(each, HEXAD_STRUCT_SIZE(hexad_plugin_desc, next), "the descriptor", path);
    const bool same_kind = each->kind == static_cast<int32_t>(manifest.kind);
    if (same_kind && each->name && manifest.name == each->name) desc = each;
  }
  if (!desc) {
    fail(ErrorKind::plugin, "{}: manifest says {}, binary says {}", path,
         named(static_cast<int32_t>(manifest.kind), manifest.name.c_str()), named(first->kind, first->name));
  }
  if (desc->min_host_minor > HEXAD_ABI_MINOR) {
    fail(ErrorKind::plugin,
         "{}: needs host ABI {}.{}, this engine provides {}.{}. Upgrade the engine or rebuild with "
         "-DHEXAD_TARGET_MINOR={}",
         path, HEXAD_ABI_MAJOR, desc->min_host_minor, HEXAD_ABI_MAJOR, HEXAD_ABI_MINOR, HEXAD_ABI_MINOR);
  }
  if (!desc->version) fail(ErrorKind::plugin, "{}: its descriptor has no version", path);
  check_vtable(desc, path);
  return desc;
}

}  // namespace hexad::plugin
