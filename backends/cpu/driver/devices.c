/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many devices there are, how they are told apart, and what one may do with another's memory.
 * There are as many as $TALLY_CPU_DEVICES says. They share the workers: what is there twice is what
 * programs and Tally keep for each device (contexts, variables, default pools, the identity), so
 * that all of it can be tried without two GPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/driver/driver.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/number.h"

static int devices = 1;

void devices_start(void)
{
	static atomic_bool said;
	const char *text = getenv("TALLY_CPU_DEVICES");
	unsigned long given;

	if (tally_parse_whole(text, 1, MOST_DEVICES, &given))
		devices = (int)given;
	else if (text && *text)
		driver_complain(&said,
				"TALLY_CPU_DEVICES is \"%s\", not a whole number from 1 to %d; "
				"there is one",
				text, MOST_DEVICES);
}

int device_count(void)
{
	return devices;
}

bool device_valid(CUdevice device)
{
	return device >= 0 && device < devices;
}

CUresult cuDeviceGetCount(int *count)
{
	REQUIRE_INIT();
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	REQUIRE_INIT();
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = device_valid(ordinal) ? ordinal : 0;
	return device_valid(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* The same for all processes of one user on one host, another for others: it names what is shared.
 */
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	struct tally_buffer text = {0};
	struct tally_error ignored = {0};
	char host[256] = "";

	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	tally_file_read("/etc/machine-id", &text, &ignored);
	gethostname(host, sizeof host - 1);
	tally_buffer_print(&text, " %s %u Tally CPU device", host, (unsigned)getuid());
	if (dev)
		tally_buffer_print(&text, " %d", dev);
	struct tally_hash hash = tally_hash_bytes(text.data, text.size);
	tally_buffer_free(&text);
	for (int i = 0; i < 16; i++) {
		char pair[3] = {hash.hex[2 * i], hash.hex[2 * i + 1], '\0'};
		uuid->bytes[i] = (char)strtoul(pair, NULL, 16);
	}
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

/* No PCI device, but programs print and compare the name: the ordinal is the bus. */
CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pciBusId || len < 13)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(pciBusId, (size_t)len, "0000:%02x:00.0", (unsigned)dev);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	unsigned domain = 0, bus, slot, function = 0;

	REQUIRE_INIT();
	if (!dev || !pciBusId)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3 &&
	    sscanf(pciBusId, "%x:%x.%x", &bus, &slot, &function) < 2)
		return CUDA_ERROR_INVALID_VALUE;
	*dev = 0;
	if (domain | slot | function || bus >= (unsigned)devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = (CUdevice)bus;
	return CUDA_SUCCESS;
}

/* --- peers: every device reaches every other's memory; whether a program said so is kept --- */

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	REQUIRE_INIT();
	if (!device_valid(dev) || !device_valid(peerDev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!canAccessPeer)
		return CUDA_ERROR_INVALID_VALUE;
	*canAccessPeer = dev != peerDev;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
				 CUdevice dstDevice)
{
	REQUIRE_INIT();
	if (!device_valid(srcDevice) || !device_valid(dstDevice) || srcDevice == dstDevice)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attrib) {
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*value = 1;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:	      /* the lowest is the best */
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED: /* arrays: there are none */
		*value = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Whom a context has made its peers. Engine lock. */
struct peer {
	struct context *context;
	struct peer *next;
};

void context_forget_peers(struct context *context)
{
	while (context->peers) {
		struct peer *peer = context->peers;

		context->peers = peer->next;
		free(peer);
	}
}

static struct peer **find_peer(struct context *of, const struct context *peer)
{
	struct peer **link = &of->peers;

	while (*link && (*link)->context != peer)
		link = &(*link)->next;
	return link;
}

/* The calling thread's context and the other one. */
static CUresult pair(CUcontext handle, struct context **mine, struct context **other)
{
	CUresult error = context_current(mine, false);

	if (!error)
		error = handle ? context_check(handle, other) : CUDA_ERROR_INVALID_CONTEXT;
	return !error && *mine == *other ? CUDA_ERROR_INVALID_CONTEXT : error;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	struct context *mine, *other;
	CUresult error = pair(peerContext, &mine, &other);

	if (error)
		return error;
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (mine->device == other->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	struct peer *peer = calloc(1, sizeof *peer);
	if (!peer)
		return CUDA_ERROR_OUT_OF_MEMORY;
	peer->context = other;
	engine_lock();
	if (*find_peer(mine, other)) {
		error = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	} else {
		peer->next = mine->peers;
		mine->peers = peer;
	}
	engine_unlock();
	if (error)
		free(peer);
	return error;
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	struct context *mine, *other;
	CUresult error = pair(peerContext, &mine, &other);

	if (error)
		return error;
	engine_lock();
	struct peer **link = find_peer(mine, other), *gone = *link;
	if (gone)
		*link = gone->next;
	engine_unlock();
	free(gone);
	return gone ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
