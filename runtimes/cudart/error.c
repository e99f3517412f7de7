/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes: from the driver's to the runtime's, names and sentences, and each thread's last one.
 */
#include "runtimes/cudart/internal.h"

static __thread cudaError_t last;

static const struct {
	cudaError_t code;
	const char *name, *text;
} errors[] = {
#define CUDART_ERROR(name, text) {name, #name, text},
#include "runtimes/cudart/errors.h"
#undef CUDART_ERROR
};

static int find(cudaError_t code)
{
	int low = 0, high = sizeof(errors) / sizeof(*errors) - 1;

	while (low <= high) {
		int middle = (low + high) / 2;

		if (errors[middle].code == code)
			return middle;
		if (errors[middle].code < code)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return -1;
}

const char *CUDARTAPI cudaGetErrorName(cudaError_t error)
{
	int index = find(error);

	return index < 0 ? "unrecognized error code" : errors[index].name;
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t error)
{
	int index = find(error);

	return index < 0 ? "unrecognized error code" : errors[index].text;
}

cudaError_t cudart_error(CUresult result)
{
	return find((cudaError_t)result) < 0 ? cudaErrorUnknown : (cudaError_t)result;
}

cudaError_t cudart_fail(cudaError_t error)
{
	if (error != cudaSuccess)
		last = error;
	return error;
}

cudaError_t cudart_result(CUresult result)
{
	if (result == CUDA_SUCCESS)
		return cudaSuccess;
	return cudart_fail(cudart_error(result));
}

void cudart_forget_errors(void)
{
	last = cudaSuccess;
}

/* Errors after which a context is of no more use (driver_types.h says so at each of them): they
 * stay until the device is reset. */
static bool is_sticky(cudaError_t error)
{
	switch (error) {
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorContained:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case cudaErrorTensorMemoryLeak:
	case cudaErrorMpsClientTerminated:
	case cudaErrorExternalDevice:
		return true;
	default:
		return false;
	}
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
	return last;
}

cudaError_t CUDARTAPI cudaGetLastError(void)
{
	cudaError_t error = last;

	if (!is_sticky(error))
		last = cudaSuccess;
	return error;
}

cudaError_t cudart_unsupported(const char *function, bool *once)
{
	cudart_say(once, "%s is not supported", function);
	return cudart_fail(cudaErrorNotSupported);
}
