/* SPDX-License-Identifier: Apache-2.0 */
/* The names of levels and reasons: see level.h. */
#include "profiler/level.h"

static const struct {
	const char *word, *text;
} levels[TALLY_LEVELS] =
	{
		[TALLY_LEVEL_GATE] = {"gate", "as it is, waiting between launches"},
		[TALLY_LEVEL_GUARD] = {"guard", "stops between blocks"},
		[TALLY_LEVEL_SLICE] = {"slice", "stops between blocks, in slices"},
		[TALLY_LEVEL_PERSIST] = {"persist", "workers that stop between blocks"},
		[TALLY_LEVEL_OPAQUE] = {"opaque", "machine code that stops between blocks"},
},
  reasons[TALLY_REASON_COUNT] = {
#define NAMES(name, word, text) [TALLY_WHY_##name] = {word, text},
	  TALLY_REASONS(NAMES)
#undef NAMES
};

const char *tally_level_word(enum tally_level level)
{
	return (unsigned)level < TALLY_LEVELS ? levels[level].word : "?";
}

const char *tally_level_text(enum tally_level level)
{
	return (unsigned)level < TALLY_LEVELS ? levels[level].text : "?";
}

const char *tally_reason_word(enum tally_reason reason)
{
	return (unsigned)reason < TALLY_REASON_COUNT ? reasons[reason].word : "?";
}

const char *tally_reason_text(enum tally_reason reason)
{
	return (unsigned)reason < TALLY_REASON_COUNT ? reasons[reason].text : "?";
}
