/* SPDX-License-Identifier: Apache-2.0 */
#include "frontend/bitcode/mapping.h"
static const struct bitcode_mapping rows[] = {{"__ocml.placeholder", "v", ""}};
BITCODE_TABLE(bitcode_table_ocml, "ocml", rows);
