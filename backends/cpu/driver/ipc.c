/* SPDX-License-Identifier: Apache-2.0 */
/* cuIpc*: handles, and what other processes have exported (ipc.h). */
#include "backends/cpu/driver/ipc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cpu/driver/capture.h"
#include "base/memory_file.h"

enum { MEMORY_MAGIC = 0x74616c6d, EVENT_MAGIC = 0x74616c65 };

/* What CUDA's 64 opaque bytes are here. */
struct ticket {
	uint32_t magic;
	int32_t process, fd;
	uint32_t reserved;
	uint64_t device, inode, bytes;
};
_Static_assert(sizeof(struct ticket) <= sizeof(CUipcMemHandle), "goes into a handle");
_Static_assert(sizeof(struct ticket) <= sizeof(CUipcEventHandle), "goes into a handle");

/* Memory of other processes that is open here: a handle that is opened again in the same context
 * gives the same. */
struct opened {
	struct ticket ticket;
	const struct context *context;
	uintptr_t address;
	unsigned times;
	struct opened *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *all_opened;

/* Claims of records of one process, which share their locks, come one after another. */
static pthread_mutex_t claiming = PTHREAD_MUTEX_INITIALIZER;

void ipc_lock(void)
{
	pthread_mutex_lock(&lock);
}

void ipc_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void ipc_claims_lock(void)
{
	pthread_mutex_lock(&claiming);
}

void ipc_claims_unlock(void)
{
	pthread_mutex_unlock(&claiming);
}

int ipc_file(size_t bytes)
{
	return tally_memory_file("tally-ipc", 0, bytes);
}

static bool describe(struct ticket *ticket, uint32_t magic, int fd, size_t bytes)
{
	struct stat status;

	if (fstat(fd, &status))
		return false;
	*ticket = (struct ticket){
		.magic = magic,
		.process = getpid(),
		.fd = fd,
		.device = status.st_dev,
		.inode = status.st_ino,
		.bytes = bytes,
	};
	return true;
}

/* A descriptor of what the ticket names, or the error. The process may have gone, or closed it and
 * opened something else since. */
static CUresult open_ticket(const struct ticket *ticket, uint32_t magic, int *fd)
{
	struct stat status;
	char path[64];

	if (ticket->magic != magic)
		return CUDA_ERROR_INVALID_VALUE;
	if (ticket->process == getpid()) /* cuda.h: not in the process that made it */
		return CUDA_ERROR_INVALID_CONTEXT;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket->process, ticket->fd);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return CUDA_ERROR_MAP_FAILED;
	if (!fstat(*fd, &status) && status.st_dev == ticket->device &&
	    status.st_ino == ticket->inode && (uint64_t)status.st_size >= ticket->bytes)
		return CUDA_SUCCESS;
	close(*fd);
	return CUDA_ERROR_MAP_FAILED;
}

/* --- memory --- */

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	struct context *context;
	struct region region;
	struct ticket ticket;
	CUresult error = context_current(&context, true);

	if (!error && !pHandle)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		error = capture_forbids_unsafe();
	if (error)
		return error;
	/* The memory changes its place behind its address: nothing may run meanwhile. */
	engine_lock_still();
	error = memory_share(dptr, &region);
	engine_unlock_still();
	if (!error && !describe(&ticket, MEMORY_MAGIC, region.share - 1, region.size))
		error = CUDA_ERROR_UNKNOWN;
	if (error)
		return error;
	memset(pHandle, 0, sizeof *pHandle);
	memcpy(pHandle, &ticket, sizeof ticket);
	return CUDA_SUCCESS;
}

/* Lock held. */
static CUresult open_memory(const struct ticket *ticket, struct context *context,
			    struct opened **result)
{
	struct region region = {.size = ticket->bytes,
				.kind = REGION_IMPORTED,
				.context = context,
				.device = context->device};
	struct opened *opened;
	int fd;
	CUresult error = open_ticket(ticket, MEMORY_MAGIC, &fd);

	if (error)
		return error;
	region.mapped = whole_pages(region.size);
	void *memory = mmap(NULL, region.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	region.base = (uintptr_t)memory;
	opened = calloc(1, sizeof *opened);
	if (!opened || !memory_add(&region)) {
		munmap(memory, region.mapped);
		free(opened);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*opened = (struct opened){*ticket, context, region.base, 0, all_opened};
	all_opened = opened;
	*result = opened;
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct opened *opened;
	struct context *context;
	struct ticket ticket;
	CUresult error = context_current(&context, true);

	if (error)
		return error;
	if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&ticket, &handle, sizeof ticket);
	ipc_lock();
	for (opened = all_opened; opened; opened = opened->next)
		if (opened->context == context && !memcmp(&opened->ticket, &ticket, sizeof ticket))
			break;
	if (!opened)
		error = open_memory(&ticket, context, &opened);
	if (!error) {
		opened->times++;
		*pdptr = opened->address;
	}
	ipc_unlock();
	return error;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	struct opened **link, *opened = NULL;
	struct context *context;
	CUresult error = context_current(&context, false);

	if (error)
		return error;
	/* As freeing does: what was launched may use it. */
	contexts_quiesce();
	ipc_lock();
	for (link = &all_opened; *link; link = &(*link)->next)
		if ((*link)->address == dptr)
			break;
	if (!*link) {
		error = CUDA_ERROR_INVALID_VALUE;
	} else if (!--(*link)->times) {
		opened = *link;
		*link = opened->next;
		memory_remove(dptr, 1u << REGION_IMPORTED, NULL);
		free(opened);
	}
	ipc_unlock();
	return error ? error : context_error(context);
}

void ipc_forget_context(const struct context *context)
{
	struct opened **link = &all_opened;

	ipc_lock();
	while (*link) {
		struct opened *opened = *link;

		if (opened->context == context) {
			*link = opened->next;
			free(opened);
		} else {
			link = &opened->next;
		}
	}
	ipc_unlock();
}

/* --- events --- */

static struct ipc_event *map_event(int fd)
{
	void *memory =
		mmap(NULL, sizeof(struct ipc_event), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

struct ipc_event *ipc_event_new(int *fd)
{
	struct ipc_event *shared;

	*fd = ipc_file(whole_pages(sizeof *shared));
	shared = *fd >= 0 ? map_event(*fd) : NULL;
	if (!shared && *fd >= 0)
		close(*fd);
	return shared;
}

void ipc_event_free(struct ipc_event *shared, int fd)
{
	if (!shared)
		return;
	munmap(shared, sizeof *shared);
	close(fd);
}

/* Byte 0 is held, by several if need be, from before a number is taken until its byte is. */
static bool lock_byte(int fd, short type, uint64_t byte)
{
	struct flock range = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};

	return !fcntl(fd, F_OFD_SETLK, &range);
}

/* Whether another holds the byte; of our own locks the system says nothing. */
static bool byte_is_held(int fd, uint64_t byte)
{
	struct flock range = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};

	return fcntl(fd, F_OFD_GETLK, &range) || range.l_type != F_UNLCK;
}

static void complete(struct ipc_event *shared, uint64_t number)
{
	uint64_t done = atomic_load(&shared->completed);

	while (done < number && !atomic_compare_exchange_weak(&shared->completed, &done, number))
		;
}

uint64_t ipc_event_claim(struct event *event)
{
	ipc_claims_lock();
	bool locked = lock_byte(event->fd, F_RDLCK, 0);
	uint64_t number = atomic_fetch_add(&event->shared->recorded, 1) + 1;
	locked &= lock_byte(event->fd, F_WRLCK, number);
	/* Without locks nobody can tell who has gone. */
	if (!locked)
		atomic_store(&event->shared->blind, true);
	lock_byte(event->fd, F_UNLCK, 0);
	event->mine = number;
	ipc_claims_unlock();
	return number;
}

void ipc_event_done(struct event *event, uint64_t number)
{
	complete(event->shared, number);
	lock_byte(event->fd, F_UNLCK, number);
}

bool ipc_event_over(struct event *event, uint64_t number)
{
	struct ipc_event *shared = event->shared;
	bool over = atomic_load(&shared->completed) >= number, gone;

	if (over || atomic_load(&shared->blind))
		return over;
	ipc_claims_lock();
	gone = event->mine != number && !byte_is_held(event->fd, 0) &&
	       !byte_is_held(event->fd, number);
	ipc_claims_unlock();
	/* Who has done it says so before it lets go. */
	if (gone)
		complete(shared, number);
	return gone;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent hEvent)
{
	struct event *event;
	struct ticket ticket;
	CUresult error = event_check(hEvent, &event);

	if (error)
		return error;
	if (!pHandle || !event->shared)
		return CUDA_ERROR_INVALID_VALUE;
	if (!describe(&ticket, EVENT_MAGIC, event->fd, sizeof *event->shared))
		return CUDA_ERROR_UNKNOWN;
	memset(pHandle, 0, sizeof *pHandle);
	memcpy(pHandle, &ticket, sizeof ticket);
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	struct context *context;
	struct ticket ticket;
	struct ipc_event *shared;
	int fd;
	CUresult error = context_current(&context, true);

	if (!error && !phEvent)
		error = CUDA_ERROR_INVALID_VALUE;
	if (error)
		return error;
	memcpy(&ticket, &handle, sizeof ticket);
	error = open_ticket(&ticket, EVENT_MAGIC, &fd);
	if (error)
		return error;
	shared = map_event(fd);
	if (!shared) {
		close(fd);
		return CUDA_ERROR_MAP_FAILED;
	}
	return event_new(phEvent, context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, shared,
			 fd);
}
