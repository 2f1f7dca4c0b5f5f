// Samples of a test's own where shared ones are wanted.
#pragma once
#include "core/data/dataset/processor.hpp"

namespace test_support {

// Owns nothing: the datum has to stay.
inline hexad::data::SharedDatum borrowed(const hexad::data::Datum& datum) {
  return {hexad::data::SharedDatum(), &datum};
}

}  // namespace test_support
