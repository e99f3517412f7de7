/* SPDX-License-Identifier: Apache-2.0 */
/* The names of levels and reasons: see level.h. */
#include "profiler/level.h"

static const char *const levels[TALLY_LEVELS] = {
	[TALLY_LEVEL_GATE] = "gate",	 [TALLY_LEVEL_GUARD] = "guard",
	[TALLY_LEVEL_SLICE] = "slice",	 [TALLY_LEVEL_PERSIST] = "persist",
	[TALLY_LEVEL_OPAQUE] = "opaque",
};

static const struct {
	const char *word, *text;
} reasons[TALLY_REASON_COUNT] = {
#define NAMES(name, word, text) [TALLY_WHY_##name] = {word, text},
	TALLY_REASONS(NAMES)
#undef NAMES
};

const char *tally_level_word(enum tally_level level)
{
	return (unsigned)level < TALLY_LEVELS ? levels[level] : "?";
}

const char *tally_reason_word(enum tally_reason reason)
{
	return (unsigned)reason < TALLY_REASON_COUNT ? reasons[reason].word : "?";
}

const char *tally_reason_text(enum tally_reason reason)
{
	return (unsigned)reason < TALLY_REASON_COUNT ? reasons[reason].text : "?";
}
