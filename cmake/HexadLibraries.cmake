# Libraries that are not ours, but for LibTorch and Arrow (docs/dependencies.md).
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(Threads REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n data)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ZMQ REQUIRED libzmq)
find_library(HEXAD_ZSTD libzstd.a REQUIRED)  # into the program: no library more to find at its start

# Apache Arrow's, and the number of its libraries.
set(HEXAD_ARROW_VERSION 26.0.1)
set(HEXAD_ARROW_LIBRARY libarrow.so.2600)

# Where tools/setup.sh unpacks wheels.
if(DEFINED ENV{HEXAD_CACHE})
  set(hexad_cache $ENV{HEXAD_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(hexad_cache $ENV{XDG_CACHE_HOME}/hexad)
else()
  set(hexad_cache $ENV{HOME}/.cache/hexad)
endif()
