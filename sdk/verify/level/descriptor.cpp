#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include <hexad/names.hpp>

#include "sdk/verify/level/levels.hpp"

namespace hexad::verify {
namespace {

struct Footprint {
  size_t heap, threads, descriptors;
  static Footprint now() {
    const auto entries = [](const char* folder) {
      const std::filesystem::directory_iterator all(folder);
      return static_cast<size_t>(std::distance(begin(all), end(all)));
    };
    const size_t threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");
    return {mallinfo2().uordblks, threads, descriptors};
  }
};

void check_purity(const Subject& subject, Findings& findings) {
  const hexad_host* host = subject.engine->host();
  const hexad_plugin_desc* first = subject.query(host);
  const Footprint before = Footprint::now();
  const hexad_plugin_desc* again = subject.query(host);
  const size_t heap = mallinfo2().uordblks;
  const Footprint after = Footprint::now();
  findings.expect(first == again, "query", "the second call returned another descriptor; it is static data");
  findings.expect(heap <= before.heap, "query",
                  "it allocated " + std::to_string(heap - before.heap) + " bytes; do that in create");
  findings.expect(after.threads == before.threads, "query", "it started a thread; do that in create");
  findings.expect(after.descriptors == before.descriptors, "query", "it opened a file; do that in create");
}

bool is_semver(std::string_view version) {
  const auto digits = [&] {
    const size_t count = std::min(version.find_first_not_of("0123456789"), version.size());
    version.remove_prefix(count);
    return count > 0;
  };
  const auto dot = [&] {
    const bool is = version.starts_with('.');
    if (is) version.remove_prefix(1);
    return is;
  };
  return digits() && dot() && digits() && dot() && digits() &&
         (version.empty() || version[0] == '-' || version[0] == '+');
}

bool is_name(std::string_view name) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return name.size() >= 2 && name.size() <= 63 && name[0] >= 'a' && name[0] <= 'z' && std::ranges::all_of(name, good);
}

// A table of an ABI that we know can hold no more fields than we know.
void check_size(uint32_t size, size_t known, const char* what, Findings& findings) {
  findings.expect(size <= known, "struct_size",
                  std::string(what) + " says " + std::to_string(size) + " bytes, ABI 1." +
                      std::to_string(HEXAD_ABI_MINOR) + " defines " + std::to_string(known) +
                      ". Fill it with HEXAD_STRUCT_SIZE");
}

std::string text_of(DLDataType dtype, int32_t axis) {
  const char* kind = dtype.code == kDLFloat ? "f" : dtype.code == kDLInt ? "i" : dtype.code == kDLUInt ? "u" : "type ";
  const char* each = axis == HEXAD_AXIS_TOKEN    ? " a token"
                     : axis == HEXAD_AXIS_SAMPLE ? " a sample"
                                                 : " of another axis";
  return kind + std::to_string(dtype.bits) + each;
}

// That a run may have the input, and as it is declared.
void check_known(const hexad_tensor_spec& input, Findings& findings) {
  const std::string name = std::string("'") + input.name + "' ";
  if (const sdk::KnownTensor* held = sdk::held_tensor(input.name)) {
    const bool fits = (input.flags & (HEXAD_SPEC_OPTIONAL | HEXAD_SPEC_DIFFERENTIABLE)) == HEXAD_SPEC_OPTIONAL &&
                      input.dtype.code == kDLFloat && input.dtype.bits == 32 && input.axis == held->axis;
    findings.expect(fits, "names", name + "must be HEXAD_SPEC_OPTIONAL, not differentiable, and else as what it holds");
    return;
  }
  const sdk::KnownTensor* known = sdk::known_tensor(input.name);
  if (!known && sdk::is_own_name(input.name)) return;
  if (!known) {
    const std::string text = name + "is no tensor that a run has" + sdk::meant_name(input.name) + sdk::kOwnNames;
    if (input.flags & HEXAD_SPEC_OPTIONAL) {
      findings.prefer(false, "names", text);
    } else {
      findings.expect(false, "names", text);
    }
    return;
  }
  const DLDataType dtype = input.dtype, wanted = known->dtype;
  findings.expect(
      dtype.code == wanted.code && dtype.bits == wanted.bits && input.axis == known->axis, "names",
      name + "is declared " + text_of(dtype, input.axis) + ", and a run has " + text_of(wanted, known->axis));
  const bool made = known->source == sdk::Source::backend, differentiable = input.flags & HEXAD_SPEC_DIFFERENTIABLE;
  findings.expect(made == differentiable, "names",
                  name + (made ? "is what a backend makes: declare it HEXAD_SPEC_DIFFERENTIABLE"
                               : "is HEXAD_SPEC_DIFFERENTIABLE, and no backend makes it"));
}

void check_inputs(const hexad_loss_vtable& loss, Findings& findings) {
  std::set<std::string> names;
  bool differentiable = false;
  for (uint32_t i = 0; i < loss.num_inputs; ++i) {
    const hexad_tensor_spec& input = loss.inputs[i];
    const std::string name = input.name;
    findings.expect(names.insert(name).second, "inputs", "'" + name + "' is declared twice");
    findings.expect(input.axis >= HEXAD_AXIS_NONE && input.axis <= HEXAD_AXIS_RAGGED, "inputs",
                    "'" + name + "' has axis " + std::to_string(input.axis));
    check_known(input, findings);
    if (!(input.flags & HEXAD_SPEC_DIFFERENTIABLE)) continue;
    differentiable = true;
    findings.expect(input.dtype.code == kDLFloat && input.dtype.bits == 32, "inputs",
                    "'" + name + "' is differentiable and not f32");
  }
  findings.expect(differentiable, "inputs",
                  "no input is HEXAD_SPEC_DIFFERENTIABLE: nothing could be trained with this loss");
}

void check_metrics(const hexad_loss_vtable& loss, Findings& findings) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < loss.num_metrics; ++i) {
    const hexad_metric_spec& metric = loss.metrics[i];
    findings.expect(names.insert(metric.name).second, "metrics",
                    std::string("'") + metric.name + "' is declared twice");
    findings.expect(metric.reduce >= HEXAD_REDUCE_SUM && metric.reduce <= HEXAD_REDUCE_LAST, "metrics",
                    std::string("'") + metric.name + "' has reduction " + std::to_string(metric.reduce));
  }
}

void check_components(const hexad_environment_vtable& environment, Findings& findings) {
  check_size(environment.struct_size, HEXAD_STRUCT_SIZE(hexad_environment_vtable, score), "the vtable", findings);
  std::set<std::string> names;
  for (uint32_t i = 0; i < environment.num_components; ++i) {
    const std::string name = environment.components[i];
    findings.expect(names.insert(name).second, "components", "'" + name + "' is declared twice");
  }
}

void check_one(const hexad_plugin_desc& desc, Findings& findings) {
  check_size(desc.struct_size, HEXAD_STRUCT_SIZE(hexad_plugin_desc, environment), "the descriptor", findings);
  findings.expect(desc.name && is_name(desc.name), "name",
                  std::string("'") + (desc.name ? desc.name : "") + "' is not [a-z][a-z0-9_]{1,62}");
  findings.expect(desc.version && is_semver(desc.version), "version",
                  std::string("'") + (desc.version ? desc.version : "") + "' is not major.minor.patch");
  findings.prefer(desc.license && *desc.license, "license", "the descriptor names no licence");
  findings.expect(desc.min_host_minor <= desc.abi_minor, "min_host_minor",
                  "needs host minor " + std::to_string(desc.min_host_minor) + ", but was compiled against " +
                      std::to_string(desc.abi_minor));
  if (desc.backend)
    check_size(desc.backend->struct_size, HEXAD_STRUCT_SIZE(hexad_backend_vtable, memory), "the vtable", findings);
  if (desc.generator)
    check_size(desc.generator->struct_size, HEXAD_STRUCT_SIZE(hexad_generator_vtable, flush_cache), "the vtable",
               findings);
  if (const auto* environment = environment_of(desc)) check_components(*environment, findings);
  if (!desc.loss) return;
  check_size(desc.loss->struct_size, HEXAD_STRUCT_SIZE(hexad_loss_vtable, state_load), "the vtable", findings);
  check_inputs(*desc.loss, findings);
  check_metrics(*desc.loss, findings);
}

}  // namespace

void check_descriptor(const Subject& subject, Findings& findings) {
  check_purity(subject, findings);
  check_one(*subject.desc, findings);
  std::set<std::pair<int32_t, std::string>> names;
  int length = 0;
  for (const hexad_plugin_desc* desc = subject.query(subject.engine->host()); desc && length < 64;
       desc = desc->next, ++length) {
    findings.expect(names.insert({desc->kind, desc->name ? desc->name : ""}).second, "chain",
                    std::string("two plugins of one kind are named '") + (desc->name ? desc->name : "") + "'");
  }
  findings.expect(length < 64, "chain", "descriptors are linked in a circle, or there are more than 64");
}

}  // namespace hexad::verify
