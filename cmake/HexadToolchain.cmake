# Compiler cache, linker, warnings and sanitizers: set once, used by every target.
find_program(HEXAD_CCACHE ccache)
if(HEXAD_CCACHE)
  # pch_defines and time_macros let ccache serve objects that include a precompiled header. A clone takes those of
  # another: paths below its root count from there, and its folder is not asked for (a debugger may want `set cwd`).
  set(HEXAD_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${HEXAD_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${HEXAD_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HEXAD_LAUNCHER})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${HEXAD_LAUNCHER})
endif()
find_program(HEXAD_MOLD mold)
if(HEXAD_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options($<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wall> $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wextra>
  $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wno-unused-parameter> $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
# A file of ours needs about a gigabyte: collecting garbage before costs a twentieth of the compile time.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)
# Errors with the compiler that the project is developed with; a newer one may warn of more, which should stop nobody.
# Not with sanitizers: in what they add gcc 12 sees overlaps (-Wrestrict, in std::string) where there are none.
set(werror OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND NOT HEXAD_SANITIZE)
  set(werror ON)
endif()
option(HEXAD_WERROR "Treat warnings as errors" ${werror})
if(HEXAD_WERROR)
  add_compile_options($<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Werror>)
endif()

# Hardening, of everything that is built: tests/lib/elf reads it from each file. All symbols are bound when a file is
# loaded, and what the loader has filled in is read-only then. Functions with arrays look at their end of the stack, but
# for the loops of kernels (-fno-stack-protector beside their -O3). Calls of the C library look at the sizes of what
# they write to; that wants -O1 at least, and a sanitizer does more.
add_link_options(LINKER:-z,now LINKER:-z,relro LINKER:-z,noexecstack)
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>)

set(HEXAD_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")
if(NOT HEXAD_SANITIZE)
  set(optimised $<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CONFIG:RelWithDebInfo,Release,MinSizeRel>>)
  add_compile_options("$<${optimised}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
else()
  add_compile_options(-fsanitize=${HEXAD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HEXAD_SANITIZE})
endif()
if(HEXAD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # libFuzzer counts the branches of all our code
endif()
