/* SPDX-License-Identifier: Apache-2.0 */
/* See harness.h. */
#include "tests/sched/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void harness_start(struct harness *h, const char *option, const char *value)
{
	h->daemon = fork();
	assert_true(h->daemon >= 0);
	if (!h->daemon) {
		char log[128];
		snprintf(log, sizeof log, "%s/log", h->folder);
		dup2(open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), STDERR_FILENO);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("TALLY_CACHE_DIR", h->folder, 1);
		execl(TALLY_BUILD_DIR "/bin/tallyd", "tallyd", "--foreground", "--socket",
		      h->socket, option ? option : "--idle-timeout", value ? value : "0",
		      (char *)NULL);
		_exit(127);
	}
	const struct tally_board *board;
	uint64_t start = tally_board_now();
	while (!(board = tally_client_observe(h->socket, NULL, NULL)))
		if (!harness_patient(start))
			fail_msg("tallyd did not start");
	munmap((void *)board, sizeof *board);
}

void harness_kill(struct harness *h, int signal_number)
{
	int status;

	kill(h->daemon, signal_number);
	assert_int_equal(waitpid(h->daemon, &status, 0), h->daemon);
	/* Asked politely, it ends well (a sanitizer's complaint would show here). */
	if (signal_number == SIGTERM)
		assert_int_equal(status, 0);
	h->daemon = 0;
}

int harness_setup(void **state)
{
	struct harness *h = calloc(1, sizeof *h);

	strcpy(h->folder, "/tmp/tally-test-XXXXXX");
	if (!mkdtemp(h->folder))
		return -1;
	snprintf(h->socket, sizeof h->socket, "%s/d.sock", h->folder);
	harness_start(h, NULL, NULL);
	*state = h;
	return 0;
}

int harness_teardown(void **state)
{
	struct harness *h = *state;
	struct dirent *entry;
	char path[512];

	if (h->daemon)
		harness_kill(h, SIGTERM);
	chmod(h->folder, 0700);
	DIR *folder = opendir(h->folder);
	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof path, "%s/%s", h->folder, entry->d_name);
		unlink(path);
	}
	if (folder)
		closedir(folder);
	rmdir(h->folder);
	free(h);
	return 0;
}

static const struct tally_client_options *options_for(struct harness *h, int priority,
						      struct tally_client_options *options)
{
	*options = (struct tally_client_options){
		.priority = priority, .name = "test", .socket = h->socket, .device = "device one"};
	return options;
}

struct tally_client *harness_connect(struct harness *h, int priority)
{
	struct tally_client_options options;
	struct tally_error error = {0};
	struct tally_client *client =
		tally_client_connect(options_for(h, priority, &options), &error);

	if (!client)
		fail_msg("connect: %s", error.message);
	return client;
}

pid_t harness_client(struct harness *h, int priority, bool active)
{
	struct tally_client_options options;
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		struct tally_client *client =
			tally_client_connect(options_for(h, priority, &options), NULL);
		if (!client)
			_exit(1);
		tally_client_set_active(client, active);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			tally_client_wait(client, tally_client_epoch(client), -1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

void harness_end(pid_t pid, int signal_number)
{
	kill(pid, signal_number);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

bool harness_must_yield(struct tally_client *client)
{
	return tally_client_must_yield(client);
}

bool harness_patient(uint64_t start)
{
	usleep(500);
	return tally_board_now() - start < HARNESS_PATIENCE_S * UINT64_C(1000000000);
}

void harness_until(bool (*condition)(struct tally_client *), struct tally_client *client,
		   bool wanted)
{
	uint64_t start = tally_board_now();

	while (condition(client) != wanted)
		if (!harness_patient(start))
			fail_msg("not so after %u s", HARNESS_PATIENCE_S);
}
