#include "core/algorithm/run/saver.hpp"

#include <filesystem>

#include <spdlog/spdlog.h>

#include "lib/base/error.hpp"
#include "lib/base/file/own_file.hpp"
#include "lib/base/timer.hpp"
#include "lib/text/tokenizer/tokenizer_files.hpp"

namespace hexad::algorithm {
namespace {

using std::chrono::milliseconds;

// With them the folder of the weights is a model that anyone can open as it is. What a link names elsewhere stays
// there; those of the first checkpoint are told of.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to, Console* console) {
  std::filesystem::create_directories(to);
  for (const std::string& name : text::tokenizer_files(from)) {
    std::filesystem::create_directories((to / name).parent_path());
    if (const std::filesystem::path real = leads_out(from, name); real.empty())
      copy_own_file(from, name, to / name);
    else if (console)
      console->line("note: checkpoints lack a file: " + leads_out_text(from, name, real));
  }
}

}  // namespace

Saver::~Saver() {
  try {
    finish();
  } catch (const std::exception& error) {
    spdlog::warn("the checkpoint under way was given up: {}", error.what());
  }
}

void Saver::begin(const data::LoaderState& position) {
  finish();
  checkpoint::TrainingInfo& info = run_.progress;
  info.loader = nlohmann::ordered_json(position);
  info.identity = run_.identity;
  info_ = info;
  step_ = info.total_steps;
  began_ = {};
  try {
    const std::filesystem::path directory = run_.checkpoints->begin(*step_);
    copy_tokenizer(run_.text.tokenizer_dir, directory / "policy/tokenizer",
                   std::exchange(is_first_, false) ? &run_.console : nullptr);
    const std::filesystem::path weights = directory / "policy/weights", optimizer = directory / "policy/optimizer";
    copy_tokenizer(run_.text.tokenizer_dir, weights, nullptr);
    const bool has_sums = run_.config.checkpointing.checksums;
    // Here, and not by the ranks: which of them wrote a file its backend alone knows. Ours write on rank 0, which
    // shares this host and its page cache.
    auto growing = has_sums ? std::make_unique<tensorfile::GrowingSums>(std::vector{weights, optimizer}) : nullptr;
    run_.policy.save(weights, run_.config.checkpointing.save_optimizer ? optimizer.string() : "");
    sums_ = std::async(std::launch::async, [directory, has_sums, growing = std::move(growing)] {
      return checkpoint::sums_of(directory, has_sums, growing.get());
    });
  } catch (...) {
    abandon();
    throw;
  }
}

void Saver::abandon() {
  if (sums_.valid()) sums_.wait();  // they are read
  run_.checkpoints->abandon(*std::exchange(step_, std::nullopt));
}

std::optional<int64_t> Saver::advance(milliseconds patience) {
  if (!step_) return std::nullopt;
  try {
    if (!commit_.valid()) {
      if (!run_.policy.saved(patience)) return std::nullopt;
      commit_ = std::async(std::launch::async, [this] {
        info_.files = sums_.get();
        run_.checkpoints->commit(*step_, info_, run_.resolved_config);
      });
    }
    if (commit_.wait_for(patience) != std::future_status::ready) return std::nullopt;
    commit_.get();
    longest_s_ = std::max(longest_s_, began_.seconds());
  } catch (...) {
    abandon();
    throw;
  }
  return std::exchange(step_, std::nullopt);
}

std::optional<int64_t> Saver::finish() {
  constexpr double kLongestS = 3600, kReportEveryS = 30;
  double reported = 0;
  for (const Stopwatch waited; step_;) {
    const int64_t step = *step_;
    if (const auto committed = advance(milliseconds(500))) return committed;
    if (waited.seconds() > kLongestS) {
      // Its files stay: the store removes them when it is opened next.
      step_.reset();
      fail(ErrorKind::data, "checkpoint: step {} has not reached the disk of {} within {:.0f} s", step,
           run_.config.checkpointing.checkpoint_dir, kLongestS);
    }
    if (waited.seconds() - reported < kReportEveryS) continue;
    reported = waited.seconds();
    run_.console.line(fmt::format("step {}: its checkpoint is on the way to the disk for {:.0f} s", step, reported));
  }
  return std::nullopt;
}

}  // namespace hexad::algorithm
