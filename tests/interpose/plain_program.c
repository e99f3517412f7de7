/* SPDX-License-Identifier: Apache-2.0 */
/* A program without CUDA that does what a preload library can break: constructors that run before
 * main, threads, fork, vfork and exec, dlsym in a child, exit status. Prints the same with and
 * without the preload (plain.sh compares). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int constructed;

__attribute__((constructor)) static void construct(void)
{
	/* dlsym inside a constructor, as allocator and profiler libraries do. */
	constructed = dlsym(RTLD_NEXT, "malloc") ? 7 : 0;
}

static void *work(void *argument)
{
	long n = (long)argument, sum = 0;

	for (long i = 0; i < 100000; i++)
		sum += i % (n + 1);
	return (void *)(sum + (dlsym(RTLD_DEFAULT, "strlen") != NULL));
}

static int child_status(pid_t pid)
{
	int status = 0;

	return waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];
	void *result;
	pid_t pid;

	if (argc > 1 && !strcmp(argv[1], "child"))
		return 23;
	setvbuf(stdout, NULL, _IONBF, 0);
	printf("constructed %d\n", constructed);
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (long i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		printf("thread %ld %ld\n", i, (long)result);
	}
	pid = fork();
	if (!pid)
		_exit(dlsym(RTLD_DEFAULT, "cuInit") ? 1 : 11);
	printf("fork %d\n", child_status(pid));
	pid = vfork();
	if (!pid) {
		execl(argv[0], argv[0], "child", (char *)NULL);
		_exit(1);
	}
	printf("vfork %d\n", child_status(pid));
	printf("system %d\n", WEXITSTATUS(system("exit 5")));
	return 42;
}
