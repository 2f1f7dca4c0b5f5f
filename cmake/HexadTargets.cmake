# Several files are compiled as one (a file of 100 lines costs what its headers cost), but for those whose file-local
# names coincide with a neighbour's.
option(HEXAD_UNITY "Compile several source files at once" ON)
function(hexad_unity target)
  if(HEXAD_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    if(ARGN)
      set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
endfunction()

# hexad_control_code(TARGET): -O1, which saves a fifth of the compile time of code that is never hot.
function(hexad_control_code target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
endfunction()

# hexad_library(TARGET FOLDER [HOT] deps...): a static library from FOLDER/**.cpp; control code unless HOT. Sources are
# globbed, so that a new file needs no edit here; CONFIGURE_DEPENDS notices it. Files in the list hexad_alone stay out
# of unity batches.
function(hexad_library target folder)
  cmake_parse_arguments(arg "HOT" "" "" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${arg_UNPARSED_ARGUMENTS})
  if(arg_HOT)  # a precompiled header serves sources of its own optimisation level only
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/lib/base/pch.hpp)
  else()
    hexad_control_code(${target})
    target_precompile_headers(${target} REUSE_FROM hexad_base)
  endif()
  hexad_unity(${target} ${hexad_alone})
endfunction()

# hexad_core_library(NAME deps...): hexad_NAME from core/NAME.
function(hexad_core_library name)
  hexad_library(hexad_${name} core/${name} hexad_sdk ${ARGN})
  target_compile_definitions(hexad_${name} PUBLIC HEXAD_TARGET_MINOR=HEXAD_ABI_MINOR)  # the engine knows the whole ABI
endfunction()

# hexad_test(FOLDER [TORCH] [ON_GPU] [WITHOUT NAME] [LIBS libs...]): test_FOLDER from tests/FOLDER/**_test.cpp, without
# its folder NAME, which is a program of its own; one ctest entry, and a second one with the label `golden` for its
# cases in the doctest suite "golden".
# Cases of the suites "layouts" and "gpu" are for `make test-layouts` and `make test-gpu`: their configurations keep
# them out of other runs of ctest. ON_GPU: `make test-gpu` runs all of the program on GPUs
# (tests/support/test_device.hpp), with few threads: a container's share of a large host is less than the cores that
# OpenMP counts.
function(hexad_test folder)
  cmake_parse_arguments(arg "TORCH;ON_GPU" "WITHOUT" "LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.cpp)
  if(arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "/tests/${folder}/${arg_WITHOUT}/")
  endif()
  if(NOT sources)
    return()
  endif()
  set(not_built)
  if(NOT HEXAD_CUDA)
    set(not_built ${sources})
    list(FILTER sources EXCLUDE REGEX "/cuda/")
    list(FILTER not_built INCLUDE REGEX "/cuda/")
    list(TRANSFORM not_built REPLACE "^${CMAKE_SOURCE_DIR}/tests/" "")
    list(JOIN not_built ", " not_built)
  endif()
  string(REPLACE "/" "_" name test_${folder})
  add_executable(${name} ${sources} $<TARGET_OBJECTS:hexad_test_main>)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE hexad_test_support ${arg_LIBS})
  if(arg_TORCH)
    hexad_use_torch(${name} CONTROL)
  else()
    hexad_control_code(${name})
    target_precompile_headers(${name} REUSE_FROM hexad_test_support)
    # -fPIC as the header's target. GCC 12 sees errors in std::string, where it knows no longer that it is the system's.
    target_compile_options(${name} PRIVATE -fPIC -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(environment "HEXAD_BUILD_DIR=${CMAKE_BINARY_DIR}" "HEXAD_SOURCE_DIR=${CMAKE_SOURCE_DIR}"
    "HEXAD_TEST_REPORT=${CMAKE_BINARY_DIR}/test-report")
  add_test(NAME ${folder} COMMAND ${name} --test-suite-exclude=golden,layouts,gpu,faults WORKING_DIRECTORY
    ${CMAKE_SOURCE_DIR})
  set_tests_properties(${folder} PROPERTIES ENVIRONMENT "${environment}" TIMEOUT 1800)
  if(not_built)  # named by tests/support/main.cpp
    set_property(TEST ${folder} APPEND PROPERTY ENVIRONMENT "HEXAD_TESTS_NOT_BUILT=${not_built}")
  endif()
  hexad_has_suite(has_golden golden ${sources})
  if(has_golden)
    add_test(NAME golden.${folder} COMMAND ${name} --test-suite=golden WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(golden.${folder} PROPERTIES LABELS golden ENVIRONMENT "${environment}"
      TIMEOUT 900 FIXTURES_REQUIRED golden_begin FIXTURES_SETUP golden_read)
  endif()
  hexad_has_suite(has_layouts layouts ${sources})
  if(has_layouts)
    add_test(NAME layouts.${folder} CONFIGURATIONS layouts COMMAND ${name} --test-suite=layouts
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(layouts.${folder} PROPERTIES LABELS layouts ENVIRONMENT "${environment}" TIMEOUT 7200)
  endif()
  hexad_has_suite(has_faults faults ${sources})
  if(has_faults)
    add_test(NAME faults.${folder} CONFIGURATIONS faults COMMAND ${name} --test-suite=faults
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(faults.${folder} PROPERTIES LABELS faults ENVIRONMENT "${environment}" TIMEOUT 3600)
  endif()
  hexad_has_suite(has_gpu gpu ${sources})
  if(HEXAD_CUDA AND (has_gpu OR arg_ON_GPU))
    set(cases $<IF:$<BOOL:${arg_ON_GPU}>,--test-suite-exclude=golden,--test-suite=gpu>)
    add_test(NAME gpu.${folder} CONFIGURATIONS gpu COMMAND ${name} ${cases} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(gpu.${folder} PROPERTIES LABELS gpu ENVIRONMENT
      "${environment};HEXAD_TEST_DEVICE=cuda;OMP_NUM_THREADS=4" TIMEOUT 1800)
  endif()
endfunction()

# hexad_has_suite(OUT SUITE SOURCES...): is there a case of the doctest suite?
function(hexad_has_suite out suite)
  set(${out} FALSE PARENT_SCOPE)
  foreach(source ${ARGN})
    file(STRINGS ${source} found REGEX "TEST_SUITE(_BEGIN)?\\(\"${suite}\"|test_suite\\(\"${suite}\"" LIMIT_COUNT 1)
    if(found)
      set(${out} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
