/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's linker makes machine code of a text, and that is what the program loads. Where one
 * text went in and nothing else, the text says the same as the code: it is remembered by the
 * content of the code, and lifted when that is loaded.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/images.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "base/hash.h"

struct link {
	struct link *next;
	CUlinkState state; /* NULL: it is complete, and its state was destroyed */
	unsigned inputs;
	char *text; /* the first input, if it was one */
	bool complete;
	uint64_t hash; /* of the code that it became */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Those that were completed stay: the code may be loaded again at any time. */
static struct link *links;
static _Atomic bool any;

void tally_links_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	links = NULL;
	atomic_store(&any, false);
}

/* Lock held. */
static struct link *find(CUlinkState state)
{
	struct link *l = links;

	while (l && l->state != state)
		l = l->next;
	return l;
}

const char *tally_linked_text(const void *image, size_t size)
{
	const char *text = NULL;
	uint64_t hash;

	if (!atomic_load(&any))
		return NULL;
	hash = tally_hash_64(image, size);
	pthread_mutex_lock(&lock);
	for (const struct link *l = links; l && !text; l = l->next)
		if (l->complete && l->hash == hash)
			text = l->text;
	pthread_mutex_unlock(&lock);
	return text;
}

static void created(CUlinkState state)
{
	struct link *l = calloc(1, sizeof *l);

	if (!l)
		return;
	l->state = state;
	pthread_mutex_lock(&lock);
	l->next = links;
	links = l;
	pthread_mutex_unlock(&lock);
}

/* `data`: NULL for an input that came as a file. */
static void added(CUlinkState state, CUjitInputType type, const void *data, size_t size)
{
	struct link *l;

	pthread_mutex_lock(&lock);
	l = find(state);
	if (l && !l->inputs++ && type == CU_JIT_INPUT_PTX && data)
		l->text = strndup(data, size);
	pthread_mutex_unlock(&lock);
}

static void completed(CUlinkState state, const void *code)
{
	const void *start;
	struct link *l;
	size_t size;

	pthread_mutex_lock(&lock);
	l = find(state);
	if (l && l->inputs == 1 && l->text && tally_image_size(code, &start, &size)) {
		l->hash = tally_hash_64(start, size);
		l->complete = true;
		atomic_store(&any, true);
	}
	pthread_mutex_unlock(&lock);
}

static void destroyed(CUlinkState state)
{
	pthread_mutex_lock(&lock);
	for (struct link **p = &links; *p; p = &(*p)->next) {
		struct link *l = *p;

		if (l->state != state)
			continue;
		l->state = NULL;
		if (!l->complete) {
			*p = l->next;
			free(l->text);
			free(l);
		}
		break;
	}
	pthread_mutex_unlock(&lock);
}

/* One door: what it does to the records when it succeeded. */
#define LINK(symbol, parameters, arguments, record)                                                \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		bool ours = tally_enter() && tally_on() && tally_process.config.guards;            \
		CUresult result = TALLY_REAL(symbol) arguments;                                    \
                                                                                                   \
		if (ours && !result)                                                               \
			record;                                                                    \
		tally_leave();                                                                     \
		return result;                                                                     \
	}

LINK(cuLinkCreate_v2,
     (unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut),
     (numOptions, options, optionValues, stateOut), created(*stateOut))
LINK(cuLinkAddData_v2,
     (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
      unsigned int numOptions, CUjit_option *options, void **optionValues),
     (state, type, data, size, name, numOptions, options, optionValues),
     added(state, type, data, size))
LINK(cuLinkAddFile_v2,
     (CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
      CUjit_option *options, void **optionValues),
     (state, type, path, numOptions, options, optionValues), added(state, type, NULL, 0))
LINK(cuLinkComplete, (CUlinkState state, void **cubinOut, size_t *sizeOut),
     (state, cubinOut, sizeOut), completed(state, *cubinOut))
LINK(cuLinkDestroy, (CUlinkState state), (state), destroyed(state))
