#include "core/config/declaration/declared_rules.hpp"

#include <algorithm>

namespace hexad::config {
namespace {

// The facts of one plugin, taken one by one; a value of another kind is told.
class Facts {
 public:
  Facts(const Declaration* declaration, const Scope& scope, std::vector<Problem>& problems)
      : declaration_(declaration), scope_(scope), problems_(problems) {}

  template <typename T>
  void read(const char* fact, T& out) {
    if (const std::optional<FactValues> values = of(fact); values && values->contains(""))
      take(fact, values->at(""), out);
  }
  std::optional<FactValues> of(const char* fact) const {
    return declaration_ ? fact_values(*declaration_, fact, scope_) : std::nullopt;
  }

  void take(const std::string& fact, const expression::Value& value, bool& out) {
    if (!assign<bool>(value, out)) wrong(fact, value, "true or false");
  }
  void take(const std::string& fact, const expression::Value& value, int64_t& out) {
    if (!assign<int64_t>(value, out)) wrong(fact, value, "an integer");
  }
  void take(const std::string& fact, const expression::Value& value, double& out) {
    int64_t whole = 0;
    if (assign<int64_t>(value, whole))
      out = static_cast<double>(whole);
    else if (!assign<double>(value, out))
      wrong(fact, value, "a number");
  }
  void take(const std::string& fact, const expression::Value& value, std::string& out) {
    if (!assign<std::string>(value, out)) wrong(fact, value, "a text");
  }
  void take(const std::string& fact, const expression::Value& value, std::vector<std::string>& out) {
    const auto* list = std::get_if<expression::Value::List>(&value.data);
    const auto is_text = [](const expression::Value& each) { return std::holds_alternative<std::string>(each.data); };
    if (!list || !std::ranges::all_of(*list, is_text)) return wrong(fact, value, "a list of texts");
    for (const expression::Value& each : *list) out.push_back(std::get<std::string>(each.data));
  }
  // Null is nothing.
  template <typename T>
  void take(const std::string& fact, const expression::Value& value, std::optional<T>& out) {
    out.reset();
    if (value == expression::Value()) return;
    T read{};
    take(fact, value, read);
    out = std::move(read);
  }

 private:
  template <typename T>
  static bool assign(const expression::Value& value, T& out) {
    const T* found = std::get_if<T>(&value.data);
    if (found) out = *found;
    return found;
  }
  void wrong(const std::string& fact, const expression::Value& value, const char* wanted) {
    problems_.push_back(
        {Problem::Severity::error,
         {},
         scope_.block(),
         fmt::format("{}: facts.{} comes to {}, wanted {}", declaration_->manifest, fact, value.text(), wanted)});
  }

  const Declaration* declaration_;
  const Scope& scope_;
  std::vector<Problem>& problems_;
};

std::optional<ScheduleFact> schedule_of(Facts& facts) {
  const std::optional<FactValues> values = facts.of("schedule");
  if (!values) return std::nullopt;
  ScheduleFact out;
  const auto take = [&](const char* name, auto& field) {
    if (const auto found = values->find(name); found != values->end())
      facts.take(std::string("schedule.") + name, found->second, field);
  };
  take("lr_warmup_init", out.lr_warmup_init);
  take("lr", out.lr);
  take("min_lr", out.min_lr);
  take("lr_warmup_iters", out.lr_warmup_iters);
  take("lr_decay_iters", out.lr_decay_iters);
  take("lr_decay_style", out.lr_decay_style);
  take("start_weight_decay", out.start_weight_decay);
  take("end_weight_decay", out.end_weight_decay);
  take("weight_decay_incr_style", out.weight_decay_incr_style);
  take("lr_wsd_decay_iters", out.lr_wsd_decay_iters);
  take("lr_wsd_decay_style", out.lr_wsd_decay_style);
  return out;
}

// Numbers of another kind than integers come of parts of bytes.
std::optional<BytesFact> bytes_of(Facts& facts) {
  const std::optional<FactValues> values = facts.of("bytes");
  if (!values) return std::nullopt;
  BytesFact out;
  for (const auto& [name, field] : {std::pair("parameters", &out.parameters), std::pair("gradients", &out.gradients),
                                    std::pair("optimizer", &out.optimizer)}) {
    const auto found = values->find(name);
    if (found == values->end()) return std::nullopt;
    double bytes = -1;
    facts.take(std::string("bytes.") + name, found->second, bytes);
    if (!(bytes >= 0 && bytes < 1e18)) return std::nullopt;
    *field = static_cast<int64_t>(bytes);
  }
  return out;
}

std::string to_load(const Chosen& chosen) {
  return plugin::is_plugin_path(chosen.name) ? chosen.name : chosen.plugin();
}

}  // namespace

RunFacts read_facts(const yaml::Node& root, const Selection& selection, const World& world,
                    const nlohmann::ordered_json& model, std::vector<Problem>& problems) {
  RunFacts out;
  out.backend = selection.backend.plugin(), out.backend_to_load = to_load(selection.backend);
  out.generator = selection.generator.plugin(), out.generator_to_load = to_load(selection.generator);
  out.loss = selection.loss.plugin();
  const Scope backend_scope(root, selection.backend.block, world, model);
  Facts backend(selection.backend.declaration(), backend_scope, problems);
  backend.read("copy_ranks", out.copy_ranks);
  if (selection.backend.declaration()) out.sequence_multiple = out.micro_batch_multiple = 1;
  backend.read("sequence_multiple", out.sequence_multiple);
  backend.read("micro_batch_multiple", out.micro_batch_multiple);
  backend.read("outputs", out.outputs);
  backend.read("packs", out.packs);
  backend.read("batch_invariant", out.batch_invariant);
  backend.read("families", out.families);
  for (const Installed& each : selection.catalog->all()) {
    const std::vector<std::string>& facts = each.outline().facts;
    if (each.kind() == plugin::Kind::backend && std::ranges::find(facts, "batch_invariant") != facts.end())
      out.batch_invariant_backends.push_back(each.name());
  }
  backend.read("learning_rate", out.learning_rate);
  if (const auto norm = backend.of("max_grad_norm"); norm && norm->contains(""))
    backend.take("max_grad_norm", norm->at(""), out.max_grad_norm.emplace());
  out.schedule = schedule_of(backend);
  out.bytes = bytes_of(backend);
  const Scope loss_scope(root, selection.loss.block, world, model);
  Facts(selection.loss.declaration(), loss_scope, problems).read("differentiates", out.differentiates);
  const Scope generator_scope(root, selection.generator.block, world, model);
  Facts generator(selection.generator.declaration(), generator_scope, problems);
  generator.read("copy_ranks", out.replica_ranks);
  generator.read("batch_invariant", out.generator_batch_invariant);
  generator.read("families", out.generator_families);
  generator.read("needs_server", out.needs_server);
  generator.read("shares_memory", out.shares_memory);
  generator.read("filtered_logprobs", out.filtered_logprobs);
  return out;
}

}  // namespace hexad::config
