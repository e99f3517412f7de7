/* SPDX-License-Identifier: Apache-2.0 */
#include "frontend/bitcode/mapping.h"
static const struct bitcode_mapping rows[] = {{"__amdgcn.placeholder", "v", ""}};
BITCODE_TABLE(bitcode_table_amdgcn, "amdgcn", rows);
