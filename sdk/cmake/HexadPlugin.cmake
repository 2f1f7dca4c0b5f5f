# hexad_add_plugin(NAME my_loss KIND loss SOURCES a.c ... [VERSION 1.0.0] [LICENSE Apache-2.0] [MEMORY host cuda]
#                  [TARGET_MINOR 0] [TORCH 2.11.0] [SHARED_CXX] [LIBS libs...] [CONFIG keys.yaml]
#                  [CHECK check.cpp ...] [CHECK_LIBS libs...] [VERIFY_CONFIG key=value ...] [ALSO kind:name ...])
#
# Builds lib/hexad/plugins/lib<NAME>.so with the single exported symbol hexad_plugin_query_v1 and writes the manifest
# lib<NAME>.hexad.json beside it; `cmake --install` puts both under the same path of the prefix. First-party plugins and
# a stranger's are built by this same function.
#
#   MEMORY        what the plugin's tensors may live in; default: cuda if a source is a .cu file, else host
#   TARGET_MINOR  the lowest minor of the ABI that a host must have; abi.h hides what is newer. KIND environment: 1
#   TORCH         the LibTorch that it is built with, which a host process must have too
#   SHARED_CXX    LIBS hold shared C++ libraries: take libstdc++ from the system as they do. TORCH implies it. Without
#                 it libstdc++ is linked in, so that the plugin runs where the system's is older; but with a copy of its
#                 own it could not catch what a shared library throws
#   CONFIG        the plugin's configuration keys, facts and rules (sdk/CONFIG.md), which go into the manifest. The
#   program
#                 hexad-manifest checks them while the plugin is built; where this SDK has none, the engine does when it
#                 reads the manifest
#   CHECK         sources of the check library (hexad/check.h), for rules that expressions cannot say:
#   lib<NAME>_check.so,
#                 which links libc, takes in CHECK_LIBS, and has libstdc++ as the plugin has it
#   VERIFY_CONFIG keys of plugin_config without which no instance can be made, for the conformance kit; values are JSON
#                 or texts without '|', {dir} in them the folder of the plugin. They go into the manifest
#   ALSO          further plugins of the library (hexad_plugin_desc.next), which are chosen by name too. The program
#                 hexad-manifest finds them by itself, but for TORCH and SHARED_CXX, whose libraries may be missing
#
# If HEXAD_VERIFY names the conformance kit's program (find_package sets it), ctest gets the test verify_<NAME>.
function(hexad_add_plugin)
  cmake_parse_arguments(arg "SHARED_CXX" "NAME;KIND;VERSION;LICENSE;TARGET_MINOR;TORCH;CONFIG"
    "SOURCES;MEMORY;LIBS;CHECK;CHECK_LIBS;VERIFY_CONFIG;ALSO" ${ARGN})
  foreach(needed NAME KIND SOURCES)
    if(NOT arg_${needed})
      message(FATAL_ERROR "hexad_add_plugin: ${needed} is missing")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hexad_add_plugin(${arg_NAME}): no such argument: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_NAME MATCHES "^[a-z][a-z0-9_]+$")
    message(FATAL_ERROR "hexad_add_plugin: NAME ${arg_NAME} must be a-z first, then a-z, 0-9 and _")
  endif()
  if("${arg_VERIFY_CONFIG}" MATCHES "\\|")  # which parts them on the way to the manifest
    message(FATAL_ERROR "hexad_add_plugin(${arg_NAME}): VERIFY_CONFIG ${arg_VERIFY_CONFIG} has a '|', which none of "
        "them may hold")
  endif()
  set(memory host)
  set(cuda "")
  if("${arg_SOURCES}" MATCHES "\\.cu(;|$)")
    set(memory cuda)
    string(REGEX MATCH "^[0-9]+\\.[0-9]+" cuda "${CMAKE_CUDA_COMPILER_VERSION}")
  endif()
  foreach(default VERSION=1.0.0 LICENSE=Apache-2.0 MEMORY=${memory} TARGET_MINOR=0)
    string(REGEX MATCH "^([A-Z_]+)=(.*)" default ${default})
    if(NOT DEFINED arg_${CMAKE_MATCH_1})
      set(arg_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    endif()
  endforeach()

  set(target hexad_plugin_${arg_NAME})
  set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE Hexad::sdk ${arg_LIBS})
  target_compile_definitions(${target} PRIVATE HEXAD_TARGET_MINOR=${arg_TARGET_MINOR})
  # CMake 3.25 does not know how nvcc is told of C++20, and leaves it out without a word.
  get_target_property(cuda_standard ${target} CUDA_STANDARD)
  if("${arg_SOURCES}" MATCHES "\\.cu(;|$)" AND cuda_standard EQUAL 20 AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  endif()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${arg_NAME} PREFIX lib
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/hexad/plugins
    C_VISIBILITY_PRESET hidden LINK_DEPENDS ${here}/plugin.map BUILD_WITH_INSTALL_RPATH ON)
  target_link_options(${target} PRIVATE LINKER:--version-script=${here}/plugin.map
    LINKER:-z,now LINKER:-z,relro LINKER:-z,noexecstack LINKER:-z,nodelete LINKER:--build-id)
  set(shared_cxx ${arg_SHARED_CXX})
  if(arg_TORCH)
    set(shared_cxx TRUE)
  endif()
  if(shared_cxx)
    # From the start as it is installed: changing it later would change the digest in the manifest.
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../..")
  else()
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
    # libgcc_s, which every machine has, stays shared: an exception that escapes is unwound by one unwinder alone.
    target_link_options(${target} PRIVATE LINKER:-z,defs LINKER:--exclude-libs,ALL
      $<$<LINK_LANGUAGE:CXX,CUDA>:-static-libstdc++>)
    if("${arg_SOURCES}" MATCHES "\\.(cpp|cc|cxx|cu)(;|$)")
      target_sources(${target} PRIVATE ${here}/arc4random.cpp)
    endif()
  endif()

  string(REPLACE ";" "," memory "${arg_MEMORY}")
  string(REPLACE ";" "|" verify_config "${arg_VERIFY_CONFIG}")
  hexad_compile_keys(${arg_NAME} ${arg_KIND} "${arg_CONFIG}" config)
  hexad_add_check(${arg_NAME} "${arg_CHECK}" "${arg_CHECK_LIBS}" ${shared_cxx} check)
  string(REPLACE ";" "," also "${arg_ALSO}")
  set(query "")
  if(NOT shared_cxx AND NOT CMAKE_CROSSCOMPILING)
    set(query ${HEXAD_MANIFEST})
    if(TARGET hexad-manifest)  # the engine's own build
      set(query $<TARGET_FILE:hexad-manifest>)
      add_dependencies(${target} hexad-manifest)
    endif()
  endif()
  set(write_manifest ${CMAKE_COMMAND} -DCONFIG=${config} -DCHECK=${check} -DKIND=${arg_KIND} -DNAME=${arg_NAME}
    -DVERSION=${arg_VERSION}
    -DMIN_HOST_MINOR=${arg_TARGET_MINOR} -DMEMORY=${memory} -DTORCH=${arg_TORCH} -DCUDA=${cuda}
    -DLICENSE=${arg_LICENSE} -DALSO=${also} -DARCH=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
  if(config)  # a manifest from the start, and a new one with new keys
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${config})
    hexad_declare_unbuilt(${arg_NAME} "${config}" ${write_manifest} -DVERIFY_CONFIG=${verify_config})
    if(check)
      add_dependencies(hexad_manifest_${arg_NAME} hexad_check_${arg_NAME})
      set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${CMAKE_BINARY_DIR}/lib/hexad/plugins/${check})
    endif()
    add_dependencies(${target} hexad_manifest_${arg_NAME})
  endif()
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${write_manifest} -DQUERY=${query} -DVERIFY_CONFIG=${verify_config} -DLIBRARY=$<TARGET_FILE:${target}> -P
    ${here}/write_manifest.cmake)
  set(component "")
  if(HEXAD_PLUGIN_COMPONENT)  # of a project whose parts are installed one by one
    set(component COMPONENT ${HEXAD_PLUGIN_COMPONENT})
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/hexad/plugins ${component})
  # Anew, for `cmake --install --strip` changes the library.
  list(JOIN write_manifest "\" \"" write_manifest)
  string(REPLACE "\"" "\\\"" verify_config "${verify_config}")
  install(CODE "execute_process(COMMAND \"${write_manifest}\" \"-DVERIFY_CONFIG=${verify_config}\"
    \"-DBUILT=${CMAKE_BINARY_DIR}/lib/hexad/plugins/lib${arg_NAME}.hexad.json\"
    \"-DLIBRARY=\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/hexad/plugins/lib${arg_NAME}.so\"
    -P \"${here}/write_manifest.cmake\" COMMAND_ERROR_IS_FATAL ANY)" ${component})

  if(HEXAD_VERIFY)
    add_test(NAME verify_${arg_NAME} COMMAND ${HEXAD_VERIFY} $<TARGET_FILE:${target}>)
  endif()
endfunction()

# hexad_compile_keys(NAME KIND KEYS OUT): the file that the manifest takes the declaration of KEYS from; "" without
# KEYS.
function(hexad_compile_keys name kind keys out)
  if(NOT keys)
    set(${out} "" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(keys ${keys} ABSOLUTE)
  set(program ${HEXAD_MANIFEST})
  if(TARGET hexad-manifest)  # the engine's own build
    set(program hexad-manifest)
  endif()
  if(NOT program)
    set(${out} ${keys} PARENT_SCOPE)
    return()
  endif()
  set(compiled ${CMAKE_CURRENT_BINARY_DIR}/${name}.keys.json)
  add_custom_command(OUTPUT ${compiled} DEPENDS ${keys} ${program} VERBATIM
    COMMAND ${program} ${kind} ${name} ${keys} ${compiled})
  set(${out} ${compiled} PARENT_SCOPE)
endfunction()

# hexad_add_check(NAME SOURCES LIBS SHARED_CXX OUT): the target hexad_check_NAME, and the name of the library that it
# makes; "" without sources.
function(hexad_add_check name sources libs shared_cxx out)
  set(${out} "" PARENT_SCOPE)
  if(NOT sources)
    return()
  endif()
  set(target hexad_check_${name})
  add_library(${target} MODULE ${sources})
  target_link_libraries(${target} PRIVATE Hexad::sdk ${libs})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}_check PREFIX lib BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/hexad/plugins C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET
      hidden)
  # Small: every `config check` reads, digests and maps all of it.
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  target_link_options(${target} PRIVATE LINKER:--gc-sections LINKER:--strip-all)
  target_link_options(${target} PRIVATE LINKER:--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check.map
    LINKER:-z,now LINKER:-z,relro LINKER:-z,noexecstack LINKER:-z,defs LINKER:--exclude-libs,ALL LINKER:--build-id)
  if(NOT shared_cxx)
    target_link_options(${target} PRIVATE $<$<LINK_LANGUAGE:CXX>:-static-libstdc++>)
    if("${sources}" MATCHES "\\.(cpp|cc|cxx)(;|$)")
      target_sources(${target} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/arc4random.cpp)
    endif()
  endif()
  set(component "")
  if(HEXAD_PLUGIN_COMPONENT)
    set(component COMPONENT ${HEXAD_PLUGIN_COMPONENT})
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/hexad/plugins ${component})
  set(${out} lib${name}_check.so PARENT_SCOPE)
endfunction()

# hexad_declare_unbuilt(NAME CONFIG WRITE_MANIFEST...): the target hexad_manifest_NAME, which writes the manifest of a
# library that is not built yet.
function(hexad_declare_unbuilt name config)
  add_custom_target(hexad_manifest_${name} ALL DEPENDS ${config} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/lib/hexad/plugins
    COMMAND ${ARGN} -DUNBUILT=1 -DBUILD=${HEXAD_BUILD_LINE}
      -DLIBRARY=${CMAKE_BINARY_DIR}/lib/hexad/plugins/lib${name}.so
      -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/write_manifest.cmake)
endfunction()

# hexad_declare_plugin(NAME n KIND k CONFIG keys.yaml [CHECK ...] [CHECK_LIBS ...] [SHARED_CXX]): the manifest, and the
# check library, of a plugin that this build does not build.
function(hexad_declare_plugin)
  cmake_parse_arguments(arg "SHARED_CXX" "NAME;KIND;CONFIG" "CHECK;CHECK_LIBS" ${ARGN})
  hexad_compile_keys(${arg_NAME} ${arg_KIND} ${arg_CONFIG} config)
  hexad_add_check(${arg_NAME} "${arg_CHECK}" "${arg_CHECK_LIBS}" ${arg_SHARED_CXX} check)
  hexad_declare_unbuilt(${arg_NAME} "${config}" ${CMAKE_COMMAND} -DKIND=${arg_KIND} -DNAME=${arg_NAME}
    -DCONFIG=${config}
    -DCHECK=${check} -DARCH=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
  if(check)
    add_dependencies(hexad_manifest_${arg_NAME} hexad_check_${arg_NAME})
  endif()
  install(FILES ${CMAKE_BINARY_DIR}/lib/hexad/plugins/lib${arg_NAME}.hexad.json DESTINATION lib/hexad/plugins
    COMPONENT ${HEXAD_PLUGIN_COMPONENT})
endfunction()
