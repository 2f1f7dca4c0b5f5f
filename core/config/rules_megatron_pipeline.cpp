// Where layers go in a pipeline, and what goes with the interleaved schedule.
#include "core/base/joined.hpp"
#include "core/config/pipeline_layout.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const char* const kPp = "pipeline_model_parallel_size";
const char* const kVpp = "virtual_pipeline_model_parallel_size";
const char* const kLayersPerStage = "num_layers_per_virtual_pipeline_stage";
const char* const kLayout = "pipeline_model_parallel_layout";

// Rule 14.
void check_one_way(const MegatronRules& r) {
  std::vector<std::string> given;
  for (const char* key : {kLayersPerStage, kVpp, kLayout}) {
    if (r.given(key)) given.push_back(key);
  }
  if (given.size() > 1) {
    r.error(given[0], fmt::format("{} are set, wanted at most one of them: each says how many chunks a rank has",
                                  joined(given, " and ")));
  }
}

// Rules 11, 12 and 19.
void check_interleaving(const MegatronRules& r) {
  const bool interleaved = r.interleaved();
  const char* key = r.given(kVpp) ? kVpp : r.given(kLayersPerStage) ? kLayersPerStage : kLayout;
  if (interleaved && r.pp == 1) {
    r.error(key,
            fmt::format("the interleaved schedule needs {} above 1, got 1; nearest: {} 2, or {} null", kPp, kPp, key));
  }
  const bool asked = r.flag("overlap_p2p_comm"), batched = r.flag("batch_p2p_comm");
  const bool overlap = r.given("overlap_p2p_comm") ? asked : interleaved && !batched;
  if (interleaved && r.pp == 2 && !overlap) {
    r.error(key,
            fmt::format("the interleaved schedule on 2 stages needs overlap_p2p_comm: true, for a stage would send "
                        "to its one neighbour twice in a batch; nearest: overlap_p2p_comm true, or {} 3",
                        kPp));
  }
  if (asked && !interleaved && r.pp > 1) {
    r.error("overlap_p2p_comm",
            fmt::format("true needs the interleaved schedule ({}), got none; nearest: false", kVpp));
  }
  if (asked && batched) {
    r.error("overlap_p2p_comm", "does not go with batch_p2p_comm: true; nearest: batch_p2p_comm false");
  }
}

// Rule 15.
void check_uneven_with_accounting(const MegatronRules& r) {
  const bool uneven = r.given("num_layers_in_first_pipeline_stage") || r.given("num_layers_in_last_pipeline_stage");
  for (const char* key : {"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"}) {
    if (uneven && r.flag(key)) {
      r.error(key,
              "does not go with num_layers_in_first_pipeline_stage or num_layers_in_last_pipeline_stage; nearest: "
              "false");
    }
  }
}

// Layers that the stages share evenly and how many stages those are.
struct EvenPart {
  int64_t layers, stages;
  std::string text;
};

EvenPart even_part(const MegatronRules& r) {
  EvenPart part{*r.model.num_layers, r.pp, fmt::format("num_hidden_layers {}", *r.model.num_layers)};
  const auto add = [&](int64_t layers, int64_t stages, const char* what) {
    part.layers += layers;
    part.stages -= stages;
    part.text += fmt::format(" {} {}", layers < 0 ? "-" : "+", layers < 0 ? fmt::format("{} {}", -layers, what) : what);
  };
  if (r.flag("account_for_embedding_in_pipeline_split")) add(1, 0, "the embedding");
  if (r.flag("account_for_loss_in_pipeline_split")) add(1, 0, "the head");
  if (const auto first = r.integer("num_layers_in_first_pipeline_stage")) add(-*first, 1, "in the first stage");
  if (const auto last = r.integer("num_layers_in_last_pipeline_stage")) add(-*last, 1, "in the last stage");
  return part;
}

// Rule 13, of every stage: `layers` of it make `stages` chunks of the same size.
void check_chunks(const MegatronRules& r, const std::string& where, int64_t layers) {
  const int64_t chunks = r.virtual_stages();
  if (layers % chunks == 0) return;
  r.error(kVpp, fmt::format("{} chunks do not divide the {} layers of {}{}", chunks, layers, where,
                            nearest_valid(chunks, layers, [&](int64_t v) { return layers % v == 0; })));
}

// Rule 13.
void check_split(const MegatronRules& r) {
  if (!r.model.num_layers || r.pp == 1 || r.given(kLayout)) return;
  const EvenPart part = even_part(r);
  if (part.layers < 0 || part.stages < 0 || (part.stages == 0 && part.layers != 0)) {
    return r.error(kPp, fmt::format("{} leaves {} layers for {} stages in the middle", part.text, part.layers,
                                    std::max<int64_t>(part.stages, 0)));
  }
  if (part.stages > 0 && part.layers % part.stages != 0) {
    const int64_t fixed = r.pp - part.stages;
    return r.error(kPp,
                   fmt::format("{} {}: {} = {} is no multiple of the {} stages that share them{}", kPp, r.pp, part.text,
                               part.layers, part.stages, nearest_valid(r.pp, part.layers + fixed, [&](int64_t v) {
                                 return v > fixed && part.layers % (v - fixed) == 0;
                               })));
  }
  const auto per_stage = r.integer(kLayersPerStage);
  if (per_stage && *per_stage > 0 && part.stages > 0 && (part.layers / part.stages) % *per_stage != 0) {
    const int64_t layers = part.layers / part.stages;
    return r.error(kLayersPerStage,
                   fmt::format("{} does not divide the {} layers of a stage{}", *per_stage, layers,
                               nearest_valid(*per_stage, layers, [&](int64_t v) { return layers % v == 0; })));
  }
  if (r.virtual_stages() == 1) return;
  if (part.stages > 0) check_chunks(r, "a stage", part.layers / part.stages);
  if (const auto first = r.integer("num_layers_in_first_pipeline_stage")) check_chunks(r, "the first stage", *first);
  if (const auto last = r.integer("num_layers_in_last_pipeline_stage")) check_chunks(r, "the last stage", *last);
}

// Rule 20.
void check_dtype(const MegatronRules& r) {
  const Node* dtype = r.c.root().find(r.path("pipeline_dtype"));
  if (r.pp > 1 && dtype && dtype->is_null()) {
    r.error("pipeline_dtype", fmt::format("null, but {} stages send in some type; nearest: {}", r.pp,
                                          r.c.text("policy.precision").value_or("bfloat16")));
  }
}

}  // namespace

bool MegatronRules::interleaved() const {
  if (virtual_stages() > 1) return true;
  if (given(kLayersPerStage)) return !model.num_layers || *model.num_layers / pp > integer(kLayersPerStage).value_or(1);
  const Node* layout = c.root().find(path(kLayout));
  if (!layout || (!layout->is_string() && !layout->is_list())) return false;
  return static_cast<int64_t>(pipeline_layout(*layout).stages.size()) > pp;
}

void check_megatron_pipeline(const MegatronRules& r) {
  check_one_way(r);
  check_interleaving(r);
  check_uneven_with_accounting(r);
  check_split(r);
  check_dtype(r);
}

}  // namespace hexad::config
