// The precompiled header of tests without LibTorch.
#pragma once
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include <doctest/doctest.h>

#include "lib/base/pch.hpp"
