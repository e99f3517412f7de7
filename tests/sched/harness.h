/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the daemon share: a private socket folder, a real tallyd, real clients. */
#ifndef TALLY_TESTS_SCHED_HARNESS_H
#define TALLY_TESTS_SCHED_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "sched/client.h"

struct harness {
	char folder[64], socket[96]; /* the folder is tallyd's cache too */
	pid_t daemon;		     /* 0: none */
};

/* cmocka fixtures: *state is a struct harness with a running daemon (nothing is left behind). */
int harness_setup(void **state);
int harness_teardown(void **state);

/* Starts tallyd in the foreground and waits until it answers. `option` and `value` may be NULL. */
void harness_start(struct harness *h, const char *option, const char *value);
void harness_kill(struct harness *h, int signal_number); /* and waits for its end */

struct tally_client *harness_connect(struct harness *h, int priority);

/* A process that joined, has set `active`, and then sleeps for ever. */
pid_t harness_client(struct harness *h, int priority, bool active);
void harness_end(pid_t pid, int signal_number); /* kills and reaps */

/* How long anything may take to happen: longer than a busy machine looks elsewhere. How soon it
 * does on a quiet one is for bench/ to say. */
enum { HARNESS_PATIENCE_S = 60 };

/* Waits until `condition(client)` equals `wanted`, or fails. */
void harness_until(bool (*condition)(struct tally_client *), struct tally_client *client,
		   bool wanted);
bool harness_must_yield(struct tally_client *client);

/* Sleeps a moment; false, to be called in a loop, when it took all patience since `start`. */
bool harness_patient(uint64_t start);

#endif
