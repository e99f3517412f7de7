# SPDX-License-Identifier: Apache-2.0
# LLVM 22: `tally_llvm` is what a compiler-side target links. Programs that ship link it statically
# (starts in 17 ms instead of 160); tests may link the shared one to keep builds short.
find_program(LLVM_CONFIG NAMES llvm-config-22 REQUIRED)
execute_process(COMMAND ${LLVM_CONFIG} --includedir OUTPUT_VARIABLE TALLY_LLVM_INCLUDE
                OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${LLVM_CONFIG} --bindir OUTPUT_VARIABLE TALLY_LLVM_BIN
                OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${LLVM_CONFIG} --libdir OUTPUT_VARIABLE TALLY_LLVM_LIB
                OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(
  COMMAND ${LLVM_CONFIG} --link-static --libs core irreader bitreader bitwriter linker passes
          coroutines ipo x86 nvptx amdgpu
  OUTPUT_VARIABLE TALLY_LLVM_STATIC_LIBS OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(TALLY_LLVM_STATIC_LIBS)

# Headers only: for the libraries that are linked into either kind of program.
add_library(tally_llvm_headers INTERFACE)
target_include_directories(tally_llvm_headers SYSTEM INTERFACE ${TALLY_LLVM_INCLUDE})

add_library(tally_llvm_static INTERFACE)
target_link_libraries(tally_llvm_static INTERFACE tally_llvm_headers -L${TALLY_LLVM_LIB}
  ${TALLY_LLVM_STATIC_LIBS} -lrt -ldl -lm -l:libz.a -l:libzstd.a pthread)

add_library(tally_llvm_shared INTERFACE)
target_link_libraries(tally_llvm_shared INTERFACE tally_llvm_headers -L${TALLY_LLVM_LIB} -lLLVM-22)
