// The bar's text for a width, what phases tell, and how long a run has to go.
#include "app/console/bar.hpp"

#include <doctest/doctest.h>

#include "app/console/estimate.hpp"
#include "lib/text/text_width.hpp"

using namespace hexad::console;
using hexad::cluster::protocol::Progress;

TEST_CASE("a bar takes what its width leaves: the rate goes first, then the counts, then what is left") {
  const BarText text{"step 13/200  training", 0.375, "12/32", "1,340 tok/s", "12 min left"};
  CHECK(bar_line(text, 200) ==
        "step 13/200  training [###########...................] 12/32  1,340 tok/s  12 min left");
  CHECK(bar_line(text, 79) == "step 13/200  training [########..............] 12/32  1,340 tok/s  12 min left");
  CHECK(bar_line(text, 60) == "step 13/200  training [######..........] 12/32  12 min left");
  CHECK(bar_line(text, 46) == "step 13/200  training [###......]  12 min left");
  CHECK(bar_line(text, 35) == "step 13/200  training [####.......]");
  CHECK(bar_line(text, 25) == "step 13/200  training");
  CHECK(bar_line(text, 12) == "step 13/2...");
  for (size_t width = 1; width < 120; ++width) CHECK(hexad::text::text_width(bar_line(text, width)) <= width);
}

TEST_CASE("a bar of what nobody can tell has no cells, and a share may be none or all") {
  CHECK(bar_line({"step 1/2  rewards", std::nullopt, "", "", "5 s left"}, 80) == "step 1/2  rewards  5 s left");
  CHECK(bar_line({"a", 0, "", "", ""}, 12) == "a [........]");
  CHECK(bar_line({"a", 1, "", "", ""}, 12) == "a [########]");
}

TEST_CASE("a phase is named for people, and what follows a slash belongs to it") {
  Phase phase;
  CHECK_FALSE(phase.is_known());
  phase.begin("prepare_for_generation/total", 0);
  phase.begin("total_step_time", 0);
  CHECK(phase.word() == "refit");
  phase.begin("policy_and_reference_logprobs", 0);
  CHECK(phase.word() == "log-probs");
  phase.begin("some_other_phase", 0);
  CHECK(phase.word() == "some other phase");
}

TEST_CASE("ranks' parts are added up, with their tokens over the phase's time") {
  Phase phase;
  phase.begin("generation", 10);
  CHECK_FALSE(phase.share(11).has_value());
  phase.add(0, {"generation", 6, 16, 2400}, 11);
  phase.add(3, {"generation", 2, 16, 600}, 11);
  CHECK(*phase.share(12) == 0.25);
  CHECK(phase.counts(12) == "8/32");
  CHECK(phase.rate(12) == "1,500 tok/s");
  CHECK(phase.rate(10.1) == "");
  phase.add(3, {"generation", 1, 16, 400}, 14);  // the next turn
  CHECK(phase.counts(15) == "1/16");
  CHECK(phase.rate(15) == "400 tok/s");
  phase.begin("policy_training", 16);
  CHECK(phase.counts(16) == "");
}

TEST_CASE("a phase of which ranks tell nothing is measured by the time that it took before") {
  Phase phase;
  phase.begin("policy_and_reference_logprobs", 0);
  CHECK_FALSE(phase.share(2).has_value());
  phase.begin("advantage_calculation", 9);
  phase.end(9.5);
  phase.begin("policy_and_reference_logprobs", 20);
  CHECK(*phase.share(23) == doctest::Approx(1.0 / 3));
  CHECK(phase.counts(23) == "~3 of 9 s");
  CHECK(*phase.share(40) == 0.95);  // longer than before: who knows
  phase.begin("advantage_calculation", 41);
  CHECK_FALSE(phase.share(41).has_value());  // half a second is no bar
}

TEST_CASE("what is left comes from the newest steps, all that runs between them counts, and the first one soon not") {
  Estimate estimate;
  CHECK_FALSE(estimate.left_s(0).has_value());
  estimate.begin(1, 10, 100);
  CHECK_FALSE(estimate.left_s(105).has_value());
  estimate.end(160);
  CHECK(*estimate.left_s(160) == 9 * 60);
  estimate.begin(2, 10, 165);  // a validation lay between
  CHECK(*estimate.left_s(170) == 8 * 60 + 50);
  estimate.end(170);
  CHECK(*estimate.left_s(170) == 8 * 10);  // the first step was slower
  estimate.begin(3, 10, 170);
  CHECK(*estimate.left_s(200) == 7 * 10);  // this one is; it ends any moment
  estimate.end(200);
  CHECK(*estimate.left_s(200) == 7 * 20);
  for (int64_t step = 4; step < 30; ++step) {
    estimate.begin(step, 30, static_cast<double>(step));
    estimate.end(static_cast<double>(200 + 5 * (step - 3)));
  }
  CHECK(*estimate.left_s(330) == 5);  // of the newest twenty
}

TEST_CASE("times are said in the two units that matter") {
  CHECK(duration_text(-1) == "0 s");
  CHECK(duration_text(45.4) == "45 s");
  CHECK(duration_text(59.6) == "1 min");
  CHECK(duration_text(3599) == "59 min");
  CHECK(duration_text(3600 + 5 * 60) == "1 h 05 min");
  CHECK(duration_text(2 * 86400 + 3 * 3600 + 59) == "2 d 3 h");
}
