// The fp32 values behind the parameters that this rank owns, in the form that the configuration asks for.
#pragma once
#include <vector>

#include "modeling/parallel/tensor/state_tensor.hpp"
#include "plugins/megatron/local_weights.hpp"

namespace hexad::megatron {

// A run of owned elements whose master lies in one place.
struct MasterPiece : OwnedPiece {
  bool on_host = false;  // optimizer_cpu_offload
  int64_t in_flat = 0;   // where it begins among the pieces of its kind
};

class MasterWeights {
 public:
  MasterWeights(const Settings& settings, LocalWeights& weights);

  // What this rank owns, piece by piece: optimizer_offload_fraction of the elements, the first ones, lie on the host.
  const std::vector<MasterPiece>& pieces() const { return pieces_; }

  // fp32, on the host or the device. A view of the master itself when in_place(); else a copy, to be stored again.
  at::Tensor load(size_t piece) const;
  // The master takes the values, and so does the parameter.
  void store(size_t piece, const at::Tensor& value);
  // The parameter was written: the master follows.
  void take_parameter(size_t piece);
  // Does load() of pieces on the device widen nothing?
  bool in_place() const { return form_ == MasterForm::parameters || form_ == MasterForm::fp32; }

  int64_t bytes() const;
  void move_to(at::Device device);

 private:
  enum class MasterForm {
    parameters,  // the parameters are fp32
    fp32,        // a copy
    remainder,   // the 16 bits that a bf16 parameter lacks
    float16,     // with a scale for each piece
  };
  static MasterForm form_of(const Settings& settings);
  void cut_pieces(double fraction);
  at::Tensor flat(size_t piece) const;

  LocalWeights& weights_;
  MasterForm form_;
  std::vector<MasterPiece> pieces_;
  std::vector<modeling::StateTensor> narrow_;  // by piece: float16
  at::Tensor host_, device_;                   // of all pieces there: fp32; fp32 or remainders, empty in other forms
};

}  // namespace hexad::megatron
