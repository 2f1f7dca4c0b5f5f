// What SFT, DPO and reward models have of their own.
#include <algorithm>

#include "compat/trl/pass.hpp"

namespace hexad::compat::trl {
namespace {

void translate_sft(Pass& p) {
  if (p.args.flag("packing")) {
    p.out.set("policy.sequence_packing.enabled", true);
    p.out.leave_out("packing",
                    "a batch counts conversations here and packed rows of max_length in TRL; conversations stay whole, "
                    "so that a step trains on fewer tokens: raise policy.train_global_batch_size");
  }
  for (const char* detail : {"packing_strategy", "padding_free", "eval_packing"}) p.args.value(detail);
  if (const std::string text = p.args.text("dataset_text_field").value_or("text"); text != "text")
    p.out.leave_out("dataset_text_field",
                    fmt::format("'{}': rows of text alone are known by their column 'text' here; give it that name "
                                "in the rows. Rows of messages, and of prompt and completion, need no such key",
                                text));
  if (p.args.flag("completion_only_loss")) p.out.set("sft.only_unmask_final", true, "completion_only_loss");
  if (!p.args.flag("assistant_only_loss") && !p.args.flag("completion_only_loss"))
    p.out.leave_out("assistant_only_loss", "false: TRL trains on every token of `messages`, here on the assistant's");
  const std::string loss = p.args.text("loss_type").value_or("nll");
  if (loss != "nll" && loss != "chunked_nll")
    p.out.leave_out("loss_type", fmt::format("'{}' is not available; written as nll", loss));
}

// Weights of the two losses that there are; the others are named.
void translate_dpo(Pass& p) {
  const std::vector<std::string> types = p.args.texts("loss_type");
  const yaml::Node* weights = p.args.value("loss_weights");
  double preference = 0, sft = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    const double weight = weights ? p.args.number(fmt::format("loss_weights.{}", i)).value_or(1) : 1;
    if (types[i] == "sigmoid") preference = weight;
    if (types[i] == "sft") sft = weight;
    if (types[i] != "sigmoid" && types[i] != "sft")
      p.out.leave_out("loss_type", fmt::format("'{}' is not available; sigmoid and sft are", types[i]));
  }
  if (preference == 0 && sft == 0) preference = 1;
  const double beta = p.args.number("beta").value_or(0.1);
  if (!(beta > 0)) p.args.refuse("beta", fmt::format("got {:g}, wanted a number above 0", beta));
  p.out.set("dpo.reference_policy_kl_penalty", beta, "beta");
  p.out.set("dpo.preference_loss_weight", preference);
  p.out.set("dpo.sft_loss_weight", sft);
  if (sft != 0) p.out.set("dpo.sft_average_log_probs", true, "TRL's sft is a mean over tokens");
}

}  // namespace

void translate_supervised(Pass& p) {
  const std::optional<int64_t> length = p.args.integer("max_length");
  const int64_t most = length ? p.args.count("max_length") : 1024;
  p.out.set("policy.max_total_sequence_length", most,
            length ? "" : "max_length is null, and there is always a limit here");
  p.out.set("data.max_input_seq_length", most);
  p.out.leave_out("truncation_mode", "longer examples do not train here; TRL cuts them at max_length");
  p.args.value("truncation_mode");
  if (p.trainer == Trainer::sft) translate_sft(p);
  if (p.trainer == Trainer::dpo) translate_dpo(p);
  if (p.args.text("chat_template_path"))
    p.out.set_path("policy.tokenizer.chat_template", *p.args.text("chat_template_path"));
  p.out.set(p.block + ".val_micro_batch_size", p.args.count("per_device_eval_batch_size"));
  p.out.set(p.block + ".val_global_batch_size",
            product(p.args, "per_device_eval_batch_size", {p.args.count("per_device_eval_batch_size"), p.processes}),
            "per_device_eval_batch_size x processes");
  p.out.set(p.block + ".val_batches", int64_t{-1}, "all of the set");
}

}  // namespace hexad::compat::trl
