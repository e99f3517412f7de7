# SPDX-License-Identifier: Apache-2.0
# How every target of the project is made: one set of flags, one way to add a library, program, test.

set(TALLY_WARNINGS -Wall -Wextra -Werror -Wno-unused-parameter -Wstrict-prototypes
    -Wmissing-prototypes -Wshadow -Wvla)
# The fuzz targets are built by clang, which calls some things suspicious that gcc does not.
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  list(APPEND TALLY_WARNINGS -Wno-missing-field-initializers)
endif()
set(TALLY_SANITIZE_FLAGS "")
if(TALLY_SANITIZE OR TALLY_FUZZ OR CMAKE_BUILD_TYPE STREQUAL Debug)
  # Checks of our own work that cost time: in every build that looks for faults.
  add_compile_definitions(TALLY_CHECKED)
endif()
if(TALLY_SANITIZE)
  set(TALLY_SANITIZE_FLAGS -fsanitize=${TALLY_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=undefined)
endif()
if(TALLY_FUZZ)
  # Every object tells libFuzzer where it has been.
  list(APPEND TALLY_SANITIZE_FLAGS -fsanitize=fuzzer-no-link)
endif()

# tally_settings(target): the project's warnings, include root and sanitizers.
function(tally_settings target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:${TALLY_WARNINGS}>
                         ${TALLY_SANITIZE_FLAGS})
  target_link_options(${target} PRIVATE ${TALLY_SANITIZE_FLAGS})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE TALLY_VERSION="${PROJECT_VERSION}")
endfunction()

# tally_library(name SOURCES ... [LIBS ...]): a static library of one folder.
function(tally_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  tally_settings(${name})
  target_link_libraries(${name} PUBLIC ${A_LIBS})
endfunction()

# tally_program(name SOURCES ... [LIBS ...])
function(tally_program name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  tally_settings(${name})
  target_link_libraries(${name} PRIVATE ${A_LIBS})
endfunction()

# The seconds after which a test hangs: no test is that slow, on however slow and busy a machine.
set(TALLY_TEST_TIMEOUT 900)

# tally_test_settings(name [PROPERTIES...]): what every test has. It may hang no longer than
# TALLY_TEST_TIMEOUT, and has a code cache of its own: nothing of the user's is read or filled.
function(tally_test_settings name)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TALLY_TEST_TIMEOUT} ${ARGN})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "TALLY_CACHE_DIR=${CMAKE_BINARY_DIR}/tests/caches/${name}")
endfunction()

# tally_test(name SOURCES ... [LIBS ...] [ARGS ...]): a cmocka program run by ctest.
# Programs land in build/tests so that build/bin holds only what a user runs.
function(tally_test name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS;ARGS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  tally_settings(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TALLY_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             TALLY_BUILD_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${A_LIBS} cmocka)
  add_test(NAME ${name} COMMAND ${name} ${A_ARGS})
  tally_test_settings(${name})
endfunction()

# tally_script_test(name SCRIPT [ARGS ...]): a bash test; it finds the build tree in
# $TALLY_BUILD and the source tree in $TALLY_SOURCE, and exits non-zero on the first failure.
function(tally_script_test name script)
  cmake_parse_arguments(A "" "" "ARGS" ${ARGN})
  add_test(NAME ${name} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${A_ARGS})
  tally_test_settings(${name})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT TALLY_BUILD=${CMAKE_BINARY_DIR}
    TALLY_SOURCE=${CMAKE_SOURCE_DIR} TALLY_NVCC=${TALLY_NVCC} TALLY_PTXAS=${TALLY_PTXAS})
endfunction()

# tally_embed(target symbol file): puts a file into a C target as `const char symbol[]` and
# `const char symbol_end[]` (see base/embed.h).
function(tally_embed target symbol file)
  get_filename_component(path ${file} ABSOLUTE)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S)
  file(WRITE ${out}.tmp ".section .rodata\n.globl ${symbol}\n.globl ${symbol}_end\n${symbol}:\n.incbin \"${path}\"\n${symbol}_end:\n.byte 0\n.section .note.GNU-stack,\"\",@progbits\n")
  configure_file(${out}.tmp ${out} COPYONLY)
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS ${path})
  target_sources(${target} PRIVATE ${out})
endfunction()
