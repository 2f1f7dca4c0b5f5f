#pragma once
#include <gloo/config.h>
