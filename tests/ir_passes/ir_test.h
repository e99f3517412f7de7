/* SPDX-License-Identifier: Apache-2.0 */
/* Modules from IR text, for the tests of the LLVM parts. */
#ifndef TALLY_TESTS_IR_TEST_H
#define TALLY_TESTS_IR_TEST_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdint.h>

/* The first lines of a neutral module. */
#define IR_LAYOUT "target datalayout = \"e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64\"\n"

/* Parses IR text; ends the test program with LLVM's message when it is no IR. */
LLVMModuleRef ir_test_parse(LLVMContextRef context, const char *text);
/* The same from a file. */
LLVMModuleRef ir_test_parse_file(LLVMContextRef context, const char *path);

/* Whether the module's (or function's) text holds `needle`. */
bool ir_test_contains(LLVMModuleRef module, const char *needle);
bool ir_test_function_contains(LLVMModuleRef module, const char *function, const char *needle);

/* The next of a fixed sequence of random numbers. One thread. */
uint64_t ir_test_random(void);

#endif
