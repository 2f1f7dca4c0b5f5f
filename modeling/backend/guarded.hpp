// Exceptions of LibTorch and modeling as errors of the ABI.
#pragma once
#include <c10/util/Exception.h>
#include <hexad/services.hpp>

#include "modeling/error.hpp"

namespace hexad::modeling {

// Runs `body`; what it throws leaves as sdk::Error with a fitting code and a text without a backtrace.
template <typename Body>
void guarded(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    throw sdk::Error(HEXAD_INVALID_ARGUMENT, error.what());
  } catch (const c10::OutOfMemoryError& error) {
    throw sdk::Error(HEXAD_RESOURCE_EXHAUSTED, error.what_without_backtrace());
  } catch (const c10::DistError& error) {
    throw sdk::Error(HEXAD_UNAVAILABLE, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    throw sdk::Error(HEXAD_INTERNAL, error.what_without_backtrace());
  }
}

}  // namespace hexad::modeling
