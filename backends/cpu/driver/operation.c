/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: made, given back, used again; see engine.h. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/engine.h"
#include "backends/cpu/driver/exports.h"

/* How many free operations a thread takes at once. */
#define OPERATIONS_TAKEN 32

static struct operation *take_operations(void)
{
	struct operation *first, *last;

	engine_lock();
	first = last = engine.free_operations;
	for (int i = 1; last && last->next && i < OPERATIONS_TAKEN; i++)
		last = last->next;
	if (last) {
		engine.free_operations = last->next;
		last->next = NULL;
	}
	pthread_mutex_unlock(&engine.lock);
	if (!first && posix_memalign((void **)&first, 64, sizeof *first) == 0)
		first->next = NULL;
	return first;
}

void operations_give_back(struct operation *list)
{
	engine_lock();
	while (list) {
		struct operation *next = list->next;
		list->next = engine.free_operations;
		engine.free_operations = list;
		list = next;
	}
	engine_unlock();
}

struct operation *operation_new(const struct operation_class *class, size_t bytes)
{
	struct driver_thread *thread = &driver_thread;
	struct operation *operation = thread->operations;

	if (!operation) {
		driver_thread_register();
		operation = take_operations();
		if (!operation)
			return NULL;
	}
	thread->operations = operation->next;
	memset(operation, 0, offsetof(struct operation, storage));
	operation->class = class;
	operation->data = operation->storage;
	if (bytes > OPERATION_BYTES) {
		if (posix_memalign(&operation->data, 64, bytes)) {
			operation->data = operation->storage;
			operation_free(operation);
			return NULL;
		}
		operation->large = true;
	}
	memset(operation->data, 0, bytes);
	return operation;
}

void operation_recycle(struct operation *operation)
{
	if (operation->class->release)
		operation->class->release(operation);
	if (operation->large)
		free(operation->data);
	if (operation->dependencies != &operation->one)
		free(operation->dependencies);
	operation->next = engine.free_operations;
	engine.free_operations = operation;
}

void operation_free(struct operation *operation)
{
	engine_lock();
	operation_recycle(operation);
	engine_unlock();
}
