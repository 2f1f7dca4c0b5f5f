// What ranks measured beside the formulas: rows, whether they agree, and how they are printed.
#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "benchmarks/layout_bytes/held_formula.hpp"
#include "benchmarks/layout_bytes/sent_formula.hpp"

namespace layout_bytes {

class Report {
 public:
  explicit Report(int64_t layers) : layers_(layers) {}

  // measured[rank][name of the form]: what measure() returned.
  void add(const Layout& layout, const std::vector<Form>& forms, const std::vector<json>& measured) {
    for (const Form& form : forms) {
      add_held(layout, form, measured);
      for (int rank = 0; rank < layout.world; ++rank) add_sent(layout, form, rank, measured[static_cast<size_t>(rank)]);
    }
    add_transient(layout, forms, measured);
  }

  bool agrees() const { return agrees_; }
  json document() const {
    return {{"layers", layers_}, {"held", held_}, {"transient", transient_}, {"sent", sent_}, {"agrees", agrees_}};
  }

  void print() const {
    fmt::print("Held by the rank that is furthest from its formula, bytes per local parameter ({} layers)\n", layers_);
    fmt::print("{:16} {:26} {:>9} {:>9}  {:10} {:>8} {:>7}\n", "layout", "form", "params", "measured", "formula", "is",
               "ratio");
    for (const json& row : held_)
      fmt::print("{:16} {:26} {:>9} {:>9.3f}  {:10} {:>8.3f} {:>7.4f}{}\n", text(row, "layout"), text(row, "form"),
                 row["parameters"].get<int64_t>(), row["per_parameter"].get<double>(), text(row, "formula"),
                 row["predicted"].get<double>(), row["ratio"].get<double>(), mark(row));
    fmt::print(
        "\nPeak of optim_grads_params beyond that of optim_grads, bytes: parameters of 2 layers, 2 bytes each\n");
    for (const json& row : transient_)
      fmt::print("{:16} measured {:>9} formula {:>9} ratio {:.4f}{}\n", text(row, "layout"),
                 row["measured"].get<int64_t>(), row["predicted"].get<double>(), row["ratio"].get<double>(), mark(row));
    fmt::print("\nSent by a rank in a step, bytes; of ranks that send alike the first\n");
    for (const json& row : sent_) {
      if (!row["shown"].get<bool>() && row["agrees"].get<bool>()) continue;
      fmt::print("{:16} {:26} rank {}  {:25} {:>10} formula {:>10}{}\n", text(row, "layout"), text(row, "form"),
                 row["rank"].get<int>(), text(row, "collective"), row["measured"].get<double>(),
                 row["predicted"].get<double>(), mark(row));
      for (const json& term : row["terms"])
        fmt::print("{:50}{:>28}  {}\n", "", term["bytes"].get<double>(), text(term, "what"));
    }
  }

 private:
  static std::string text(const json& row, const char* key) { return row.at(key).get<std::string>(); }
  static const char* mark(const json& row) { return row.at("agrees").get<bool>() ? "" : "  DIFFERS"; }
  bool check(bool equal) {
    agrees_ &= equal;
    return equal;
  }

  void add_held(const Layout& layout, const Form& form, const std::vector<json>& measured) {
    json worst;
    for (int rank = 0; rank < layout.world; ++rank) {
      const json& here = measured[static_cast<size_t>(rank)].at(form.name);
      const Parameters parameters = parameters_of(layout, layers_, rank);
      const double bytes =
                       here["held"].get<double>() + (held_at_peak(form) ? here["peak_beyond_held"].get<double>() : 0),
                   wanted = held_bytes(layout, form, parameters), all = static_cast<double>(parameters.all());
      const double ratio = bytes / wanted;
      if (!worst.is_null() && std::abs(ratio - 1) <= std::abs(worst["ratio"].get<double>() - 1)) continue;
      worst = {{"layout", layout.name},
               {"form", form.name},
               {"rank", rank},
               {"parameters", parameters.all()},
               {"per_parameter", bytes / all},
               {"formula", held_formula(form).text()},
               {"predicted", wanted / all},
               {"ratio", ratio},
               {"d", layout.dense_owners()},
               {"d_experts", layout.experts ? json(layout.edp()) : json()},
               {"bytes", here}};
    }
    worst["agrees"] = check(std::abs(worst["ratio"].get<double>() - 1) <= 0.05);
    worst["bytes"].erase("sent");
    held_.push_back(std::move(worst));
  }

  // What optim_grads_params needs at its peak beyond optim_grads, which is like it in everything else.
  void add_transient(const Layout& layout, const std::vector<Form>& forms, const std::vector<json>& measured) {
    const auto sharing = [&](const char* what) {
      return std::find_if(forms.begin(), forms.end(), [&](const Form& form) { return form.sharding == what; });
    };
    const auto gradients = sharing("optim_grads"), parameters = sharing("optim_grads_params");
    if (gradients == forms.end() || parameters == forms.end()) return;
    const auto peak = [&](const Form& form) { return measured[0].at(form.name).at("peak_beyond_held").get<int64_t>(); };
    const int64_t more = peak(*parameters) - peak(*gradients);
    const double wanted = transient_bytes(*parameters, parameters_of(layout, layers_, 0)),
                 ratio = static_cast<double>(more) / wanted;
    transient_.push_back({{"layout", layout.name},
                          {"measured", more},
                          {"predicted", wanted},
                          {"ratio", ratio},
                          {"agrees", check(std::abs(ratio - 1) <= 0.05)}});
  }

  // Every collective of every group must be the sum of its terms, and nothing else may have been sent.
  void add_sent(const Layout& layout, const Form& form, int rank, const json& measured) {
    std::map<std::string, json> rows;
    const auto row_of = [&](const std::string& collective) -> json& {
      json& row = rows[collective];
      if (row.is_null()) row = {{"measured", 0.0}, {"predicted", 0.0}, {"terms", json::array()}};
      return row;
    };
    for (const auto& [collective, bytes] : measured.at(form.name)["sent"].items())
      row_of(collective)["measured"] = bytes;
    for (const Term& term : sent_formula(layout, form, layers_, rank)) {
      json& row = row_of(term.collective);
      row["predicted"] = row["predicted"].get<double>() + term.bytes;
      row["terms"].push_back({{"bytes", term.bytes}, {"what", term.what}});
    }
    for (auto& [collective, row] : rows) {
      const double wanted = row["predicted"], difference = row["measured"].get<double>() - wanted;
      row.update({{"layout", layout.name}, {"form", form.name}, {"rank", rank}, {"collective", collective}});
      row["agrees"] = check(std::abs(difference) < 1e-3);  // a byte is a byte: sums of quotients are rounded
      const std::string seen = layout.name + form.name + collective + row["predicted"].dump();
      row["shown"] = shown_.insert(seen).second && (form.name == "bf16, optim" || layout.name == "DP2");
      sent_.push_back(row);
    }
  }

  int64_t layers_;
  bool agrees_ = true;
  json held_ = json::array(), transient_ = json::array(), sent_ = json::array();
  std::set<std::string> shown_;
};

}  // namespace layout_bytes
