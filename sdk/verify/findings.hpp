// What a level found out.
#pragma once
#include <string>
#include <vector>

namespace hexad::verify {

struct Finding {
  bool warning = false;  // a warning fails only under --strict
  std::string check;     // which rule, in a word or two: "out pointer", "canary"
  std::string text;      // what was seen and what was wanted
};

// Counts checks and keeps what did not hold. A check that fails a thousand times is one finding.
class Findings {
 public:
  // Returns `holds`, so that a level may stop where going on makes no sense.
  bool expect(bool holds, const std::string& check, const std::string& text) { return add(holds, false, check, text); }
  bool prefer(bool holds, const std::string& check, const std::string& text) { return add(holds, true, check, text); }

  int checks() const { return checks_; }
  const std::vector<Finding>& all() const { return all_; }

 private:
  bool add(bool holds, bool warning, const std::string& check, const std::string& text) {
    ++checks_;
    if (holds) return true;
    for (const Finding& known : all_) {
      if (known.check == check && known.warning == warning) return false;
    }
    all_.push_back({warning, check, text});
    return false;
  }

  int checks_ = 0;
  std::vector<Finding> all_;
};

}  // namespace hexad::verify
