// The C++20 wrapper of the plugin ABI, header-only: include this, write a class, end with one macro. Everything lives
// inside the plugin; abi.h stays the whole contract.
#pragma once
#include <hexad/backend.hpp>
#include <hexad/environment.hpp>
#include <hexad/generator.hpp>
#include <hexad/loss.hpp>
