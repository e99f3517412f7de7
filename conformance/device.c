/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the driver library: see device.h. */
#include "conformance/device.h"

#include <dlfcn.h>

struct driver driver;

bool device_ok(CUresult result, const char *what, struct tally_error *error)
{
	const char *name = NULL;

	if (result == CUDA_SUCCESS)
		return true;
	if (driver.error_name(result, &name) != CUDA_SUCCESS || !name)
		name = "unknown error";
	return tally_fail(error, "%s: %s (%d)", what, name, (int)result);
}

bool device_open(const char *library, struct tally_error *error)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	CUcontext context;
	CUdevice device;

	if (!handle)
		return tally_fail(error, "%s", dlerror());
#define X(name, member, parameters)                                                                \
	if (!(driver.member = (CUresult(*) parameters)dlsym(handle, #name)))                       \
		return tally_fail(error, "%s has no %s", library, #name);
	DRIVER_FUNCTIONS(X)
#undef X
	return device_ok(driver.init(0), "cuInit", error) &&
	       device_ok(driver.device_get(&device, 0), "cuDeviceGet", error) &&
	       device_ok(driver.device_name(driver.device, sizeof driver.device, device),
			 "cuDeviceGetName", error) &&
	       device_ok(driver.context_retain(&context, device), "cuDevicePrimaryCtxRetain",
			 error) &&
	       device_ok(driver.context_set(context), "cuCtxSetCurrent", error);
}
