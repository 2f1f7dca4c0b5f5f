// What a file of the DPO pipeline has of its own.
#include "compat/roll/schema/schema.hpp"

namespace hexad::config::roll {

void add_preferences(Schema& s) {
  s.add("chosen_key", kText, "chosen", "column of the better answer");
  s.add("rejected_key", kText, "rejected", "column of the worse answer");
  s.add("beta", kFloat, "0.1", "how strongly the policy is held to the reference").above(0);
  s.add("ipo", kBool, "false", "").unavailable("the IPO loss");
  s.add("label_smoothing", kFloat, "0.0", "").unavailable("DPO with smoothed labels", {"0", "0.0"});
}

}  // namespace hexad::config::roll
