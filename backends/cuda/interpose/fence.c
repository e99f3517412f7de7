/* SPDX-License-Identifier: Apache-2.0 */
/* The generated interposers: every HOOK row of kind FENCE and DRAIN. */
#include "backends/cuda/interpose/resolve.h"

#define PASS(symbol, parameters, arguments)                                                        \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		CUresult result;                                                                   \
		tally_enter();                                                                     \
		result = TALLY_REAL(symbol) arguments;                                             \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
#define PASS_PLAIN(symbol, parameters, arguments) PASS(symbol, parameters, arguments)
#define PASS_PTSZ(symbol, parameters, arguments)                                                   \
	PASS(symbol, parameters, arguments)                                                        \
	PASS(symbol##_ptsz, parameters, arguments)
#define PASS_PTDS(symbol, parameters, arguments)                                                   \
	PASS(symbol, parameters, arguments)                                                        \
	PASS(symbol##_ptds, parameters, arguments)

#define FENCE(flavour, symbol, parameters, arguments) PASS_##flavour(symbol, parameters, arguments)
#define DRAIN(flavour, symbol, parameters, arguments) PASS_##flavour(symbol, parameters, arguments)
#define OWN(flavour, symbol, parameters, arguments)   PASS_##flavour(symbol, parameters, arguments)
#define HAND(flavour, symbol, parameters, arguments)
#define HOOK(kind, base, version, since, flavour, stream, parameters, arguments)                   \
	kind(flavour, base##version, parameters, arguments)
#include "backends/cuda/interpose/hooks.def"
