/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The corpus on a GPU: each kernel as it came and as tally-lower wrote it again, both assembled
 * beforehand. Same inputs, results compared byte for byte (those of the original with its own of a
 * second time, too), then both timed in turns. One JSON line a kernel on stdout.
 *
 *   gpu_roundtrip FOLDER [WORD]
 *
 * FOLDER holds *.launches, whose lines are
 *   FILE.ptx KERNEL grid X[,Y[,Z]] block X[,Y[,Z]] [shared BYTES] [cooperative] args ARGUMENT...
 * and FILE.original.cubin, FILE.ours.cubin. An argument is TYPE=VALUE, or TYPE[N]:CONTENTS for a
 * buffer (f16 bf16 f32 f64 u8 i32 u32 i64 u64; zero, unit, random, small, iota, iota16, indexBITS;
 * scratch and loose are zeros that are not compared).
 */
#include <cuda.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 24, ROUNDS = 15, WAYS = 2 };

static const char *const ways[WAYS] = {"original", "ours"};

/* The driver, by dlopen: the program is built where there is none. */
#define DRIVER(X)                                                                                  \
	X(cuInit)                                                                                  \
	X(cuDeviceGet)                                                                             \
	X(cuDevicePrimaryCtxRetain)                                                                \
	X(cuCtxSetCurrent)                                                                         \
	X(cuModuleLoad)                                                                            \
	X(cuModuleUnload)                                                                          \
	X(cuModuleGetFunction)                                                                     \
	X(cuFuncSetAttribute)                                                                      \
	X(cuFuncGetAttribute)                                                                      \
	X(cuMemAlloc)                                                                              \
	X(cuMemFree)                                                                               \
	X(cuMemcpyHtoD)                                                                            \
	X(cuMemcpyDtoH)                                                                            \
	X(cuStreamCreate)                                                                          \
	X(cuStreamSynchronize)                                                                     \
	X(cuStreamBeginCapture)                                                                    \
	X(cuStreamEndCapture)                                                                      \
	X(cuGraphInstantiateWithFlags)                                                             \
	X(cuGraphLaunch)                                                                           \
	X(cuGraphExecDestroy)                                                                      \
	X(cuGraphDestroy)                                                                          \
	X(cuEventCreate)                                                                           \
	X(cuEventRecord)                                                                           \
	X(cuEventElapsedTime)                                                                      \
	X(cuEventSynchronize)                                                                      \
	X(cuLaunchKernelEx)                                                                        \
	X(cuGetErrorName)

#define TEXT(name)   #name
#define SYMBOL(name) TEXT(name) /* cuda.h makes cuMemAlloc cuMemAlloc_v2 */
#define MEMBER(name) static __typeof__(&name) p_##name;
DRIVER(MEMBER)

static void load_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "gpu_roundtrip: %s\n", dlerror());
		exit(1);
	}
#define RESOLVE(name)                                                                              \
	*(void **)&p_##name = dlsym(library, SYMBOL(name));                                        \
	if (!p_##name)                                                                             \
		fprintf(stderr, "gpu_roundtrip: no %s\n", SYMBOL(name)), exit(1);
	DRIVER(RESOLVE)
}

static bool failed(CUresult result, const char *what, const char *where)
{
	const char *name = "?";

	if (result == CUDA_SUCCESS)
		return false;
	p_cuGetErrorName(result, &name);
	printf("{\"kernel\": \"%s\", \"error\": \"%s: %s\"}\n", where, what, name);
	return true;
}

struct argument {
	size_t size; /* of the buffer; 0: a value */
	bool compared;
	unsigned char *contents, *result[WAYS];
	CUdeviceptr device;
	union {
		CUdeviceptr pointer;
		unsigned long long bits;
		float single;
		double wide;
	} value;
};

struct launch {
	char file[256], kernel[512], label[800];
	unsigned grid[3], block[3], shared;
	bool cooperative;
	unsigned arguments;
	struct argument argument[ARGUMENTS];
};

static unsigned long long next_random(unsigned long long *state)
{
	unsigned long long x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* [0, 1) with the few bits that any format holds exactly. */
static float unit(unsigned long long *state)
{
	return (float)(next_random(state) >> 57) / 128.0f;
}

static unsigned short half_of(float v)
{
	_Float16 h = (_Float16)v;
	unsigned short bits;

	memcpy(&bits, &h, 2);
	return bits;
}

static unsigned long long element(const char *type, const char *contents, size_t n,
				  unsigned long long *state)
{
	union {
		float single;
		double wide;
		unsigned bits;
		unsigned long long all;
	} v = {.all = 0};

	if (!strcmp(contents, "unit")) {
		float u = unit(state);
		if (!strcmp(type, "f16"))
			return half_of(u);
		if (!strcmp(type, "f64"))
			v.wide = (double)u;
		else
			v.single = u;
		return !strcmp(type, "bf16") ? v.bits >> 16 : v.all;
	}
	if (!strcmp(contents, "random"))
		return next_random(state);
	if (!strcmp(contents, "small"))
		return next_random(state) % 16;
	if (!strncmp(contents, "index", 5))
		return next_random(state) & ((1ull << atoi(contents + 5)) - 1);
	if (!strncmp(contents, "iota", 4))
		return n * (contents[4] ? (size_t)atoi(contents + 4) : 1);
	return 0;
}

static size_t width(const char *type)
{
	return (size_t)atoi(type + strcspn(type, "0123456789")) / 8;
}

static bool parse_argument(char *text, struct argument *a)
{
	char *sign = strpbrk(text, "[=");
	unsigned long long state = 42;
	size_t count, bytes;
	char *contents;

	if (!sign)
		return false;
	if (*sign == '=') {
		*sign = '\0';
		if (!strcmp(text, "f32"))
			a->value.single = strtof(sign + 1, NULL);
		else if (!strcmp(text, "f64"))
			a->value.wide = strtod(sign + 1, NULL);
		else if (!strcmp(text, "f16"))
			a->value.bits = half_of(strtof(sign + 1, NULL));
		else
			a->value.bits = strtoull(sign + 1, NULL, 0);
		return true;
	}
	*sign = '\0';
	count = strtoull(sign + 1, &contents, 10);
	if (strncmp(contents, "]:", 2))
		return false;
	contents += 2;
	bytes = width(text);
	a->size = count * bytes;
	a->compared = strcmp(contents, "scratch") && strcmp(contents, "loose");
	a->contents = calloc(count, bytes);
	for (int way = 0; way < WAYS; way++)
		a->result[way] = malloc(a->size);
	if (!a->contents || !a->result[0] || !a->result[1])
		return false;
	for (size_t n = 0; n < count; n++) {
		unsigned long long v = element(text, contents, n, &state);
		memcpy(a->contents + n * bytes, &v, bytes);
	}
	return true;
}

static void sizes(const char *text, unsigned *size)
{
	size[0] = size[1] = size[2] = 1;
	sscanf(text, "%u,%u,%u", &size[0], &size[1], &size[2]);
}

static bool parse(char *line, struct launch *l)
{
	char *word = strtok(line, " \n"), *name = strtok(NULL, " \n");

	memset(l, 0, sizeof *l);
	if (!word || !name)
		return false;
	word[strcspn(word, ".")] = '\0';
	snprintf(l->file, sizeof l->file, "%s", word);
	snprintf(l->kernel, sizeof l->kernel, "%s", name);
	snprintf(l->label, sizeof l->label, "%s %s", word, name);
	while ((word = strtok(NULL, " \n")) && strcmp(word, "args")) {
		if (!strcmp(word, "cooperative")) {
			l->cooperative = true;
			continue;
		}
		name = strtok(NULL, " \n");
		if (!name)
			return false;
		if (!strcmp(word, "grid"))
			sizes(name, l->grid);
		else if (!strcmp(word, "block"))
			sizes(name, l->block);
		else if (!strcmp(word, "shared"))
			l->shared = (unsigned)atoi(name);
	}
	while ((word = strtok(NULL, " \n")))
		if (l->arguments == ARGUMENTS ||
		    !parse_argument(word, &l->argument[l->arguments++]))
			return false;
	return true;
}

static void release(struct launch *l)
{
	for (unsigned k = 0; k < l->arguments; k++) {
		free(l->argument[k].contents);
		for (int way = 0; way < WAYS; way++)
			free(l->argument[k].result[way]);
		if (l->argument[k].device)
			p_cuMemFree(l->argument[k].device);
	}
}

static CUresult start(const struct launch *l, CUfunction function, CUstream stream)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE};
	CUlaunchConfig config = {.gridDimX = l->grid[0],
				 .gridDimY = l->grid[1],
				 .gridDimZ = l->grid[2],
				 .blockDimX = l->block[0],
				 .blockDimY = l->block[1],
				 .blockDimZ = l->block[2],
				 .sharedMemBytes = l->shared,
				 .hStream = stream,
				 .attrs = &attribute,
				 .numAttrs = l->cooperative};
	void *parameters[ARGUMENTS];

	attribute.value.cooperative = 1;
	for (unsigned k = 0; k < l->arguments; k++)
		parameters[k] = (void *)&l->argument[k].value;
	return p_cuLaunchKernelEx(&config, function, parameters, NULL);
}

/* Fresh inputs, one launch, what became of them. */
static bool run_once(struct launch *l, CUfunction function, int way, CUstream stream)
{
	for (unsigned k = 0; k < l->arguments; k++) {
		struct argument *a = &l->argument[k];
		if (a->size &&
		    failed(p_cuMemcpyHtoD(a->device, a->contents, a->size), "copy in", l->label))
			return false;
	}
	/* A copy from pageable memory may still be on its way when its call returns. */
	if (failed(p_cuStreamSynchronize(NULL), "copies", l->label) ||
	    failed(start(l, function, stream), "launch", l->label) ||
	    failed(p_cuStreamSynchronize(stream), "run", l->label))
		return false;
	for (unsigned k = 0; k < l->arguments; k++) {
		struct argument *a = &l->argument[k];
		if (a->size && failed(p_cuMemcpyDtoH(a->result[way], a->device, a->size),
				      "copy out", l->label))
			return false;
	}
	return true;
}

/* Index of the first argument whose bytes differ, or -1; `changed`: anything was written at all. */
static int first_difference(const struct launch *l, bool *changed, size_t *at)
{
	*changed = false;
	for (unsigned k = 0; k < l->arguments; k++) {
		const struct argument *a = &l->argument[k];
		*changed |= a->size && memcmp(a->contents, a->result[0], a->size) != 0;
		if (!a->size || !a->compared)
			continue;
		for (*at = 0; *at < a->size; ++*at)
			if (a->result[0][*at] != a->result[1][*at])
				return (int)k;
	}
	return -1;
}

static double elapsed(CUevent *event, CUgraphExec graph, CUstream stream)
{
	float ms = 0;

	p_cuEventRecord(event[0], stream);
	p_cuGraphLaunch(graph, stream);
	p_cuEventRecord(event[1], stream);
	p_cuEventSynchronize(event[1]);
	p_cuEventElapsedTime(&ms, event[0], event[1]);
	return (double)ms * 1e3;
}

static bool capture(const struct launch *l, CUfunction function, unsigned times, CUstream stream,
		    CUgraphExec *graph)
{
	CUgraph captured;
	bool ok;

	if (failed(p_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "capture",
		   l->label))
		return false;
	for (unsigned n = 0; n < times; n++)
		if (failed(start(l, function, stream), "captured launch", l->label))
			return false;
	if (failed(p_cuStreamEndCapture(stream, &captured), "capture's end", l->label))
		return false;
	ok = !failed(p_cuGraphInstantiateWithFlags(graph, captured, 0), "graph", l->label);
	p_cuGraphDestroy(captured);
	return ok;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, compare_doubles);
	return values[count / 2];
}

/* Microseconds a launch of each way, in turns. */
static bool time_both(const struct launch *l, CUfunction *function, CUstream stream, double *us)
{
	static CUevent event[2];
	CUgraphExec graph[WAYS];
	double samples[WAYS][ROUNDS];
	unsigned times = 1;

	if (!event[0] && (failed(p_cuEventCreate(&event[0], 0), "event", l->label) ||
			  failed(p_cuEventCreate(&event[1], 0), "event", l->label)))
		return false;
	for (int way = 0; way < WAYS; way++) {
		if (way == 0) {
			double once;
			if (!capture(l, function[0], 4, stream, &graph[0]))
				return false;
			elapsed(event, graph[0], stream);
			once = elapsed(event, graph[0], stream) / 4;
			p_cuGraphExecDestroy(graph[0]);
			times = once > 1000 ? 1 : once < 5 ? 200 : (unsigned)(1000 / once);
		}
		if (!capture(l, function[way], times, stream, &graph[way]))
			return false;
		elapsed(event, graph[way], stream);
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int k = 0; k < WAYS; k++) {
			int way = round % 2 ? 1 - k : k;
			samples[way][round] = elapsed(event, graph[way], stream) / times;
		}
	for (int way = 0; way < WAYS; way++) {
		us[way] = median(samples[way], ROUNDS);
		p_cuGraphExecDestroy(graph[way]);
	}
	return !failed(p_cuStreamSynchronize(stream), "timing", l->label);
}

static bool load(const char *folder, struct launch *l, int way, CUmodule *module,
		 CUfunction *function)
{
	char path[1024];

	snprintf(path, sizeof path, "%s/%s.%s.cubin", folder, l->file, ways[way]);
	if (failed(p_cuModuleLoad(module, path), path, l->label) ||
	    failed(p_cuModuleGetFunction(function, *module, l->kernel), "function", l->label))
		return false;
	return l->shared <= 48 * 1024 ||
	       !failed(p_cuFuncSetAttribute(*function,
					    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
					    (int)l->shared),
		       "shared memory", l->label);
}

/* Whether the original gives the same twice: only then can another way differ from it. */
static bool run_twice(struct launch *l, CUfunction function, CUstream stream, bool *repeats)
{
	bool changed;
	size_t at;

	if (!run_once(l, function, 0, stream) || !run_once(l, function, 1, stream))
		return false;
	*repeats = first_difference(l, &changed, &at) < 0;
	return true;
}

static bool measure(const char *folder, struct launch *l, CUstream stream, double *ratio)
{
	CUmodule module[WAYS] = {NULL};
	CUfunction function[WAYS];
	int registers[WAYS], difference;
	double us[WAYS];
	bool changed, repeats;
	size_t at = 0;

	for (unsigned k = 0; k < l->arguments; k++) {
		struct argument *a = &l->argument[k];
		if (!a->size)
			continue;
		if (failed(p_cuMemAlloc(&a->device, a->size), "memory", l->label))
			return false;
		a->value.pointer = a->device;
	}
	if (!load(folder, l, 0, &module[0], &function[0]) ||
	    !run_twice(l, function[0], stream, &repeats) ||
	    !load(folder, l, 1, &module[1], &function[1]) || !run_once(l, function[1], 1, stream))
		return false;
	difference = first_difference(l, &changed, &at);
	if (!time_both(l, function, stream, us))
		return false;
	for (int way = 0; way < WAYS; way++) {
		p_cuFuncGetAttribute(&registers[way], CU_FUNC_ATTRIBUTE_NUM_REGS, function[way]);
		p_cuModuleUnload(module[way]);
	}
	*ratio = us[0] / us[1];
	printf("{\"file\": \"%s\", \"kernel\": \"%s\", \"equal\": %s, \"repeats\": %s, "
	       "\"wrote\": %s, \"us\": [%.2f, %.2f], \"speed\": %.4f, \"registers\": [%d, %d]",
	       l->file, l->kernel, difference < 0 ? "true" : "false", repeats ? "true" : "false",
	       changed ? "true" : "false", us[0], us[1], *ratio, registers[0], registers[1]);
	if (difference >= 0)
		printf(", \"differs\": \"argument %d at byte %zu\"", difference, at);
	printf("}\n");
	fflush(stdout);
	return true;
}

static bool run_file(const char *folder, const char *path, const char *word, CUstream stream)
{
	FILE *file = fopen(path, "r");
	static char line[8192];
	static struct launch l;
	bool ok = file != NULL;

	while (file && fgets(line, sizeof line, file)) {
		double ratio;
		if (line[0] == '\n' || line[0] == '#' || (word && !strstr(line, word)))
			continue;
		if (!parse(line, &l)) {
			fprintf(stderr, "gpu_roundtrip: %s: a line that makes no sense: %s\n", path,
				l.label);
			ok = false;
			continue;
		}
		ok &= measure(folder, &l, stream, &ratio);
		release(&l);
	}
	if (file)
		fclose(file);
	return ok;
}

int main(int argc, char **argv)
{
	char pattern[1024];
	CUcontext context;
	CUdevice device;
	CUstream stream;
	glob_t found;
	bool ok = true;

	if (argc < 2) {
		fprintf(stderr, "usage: gpu_roundtrip FOLDER [WORD]\n");
		return 1;
	}
	load_driver();
	if (failed(p_cuInit(0), "cuInit", "") || failed(p_cuDeviceGet(&device, 0), "device", "") ||
	    failed(p_cuDevicePrimaryCtxRetain(&context, device), "context", "") ||
	    failed(p_cuCtxSetCurrent(context), "context", "") ||
	    failed(p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream", ""))
		return 1;
	snprintf(pattern, sizeof pattern, "%s/*.launches", argv[1]);
	if (glob(pattern, 0, NULL, &found)) {
		fprintf(stderr, "gpu_roundtrip: no %s\n", pattern);
		return 1;
	}
	for (size_t k = 0; k < found.gl_pathc; k++)
		ok &= run_file(argv[1], found.gl_pathv[k], argc > 2 ? argv[2] : NULL, stream);
	globfree(&found);
	return ok ? 0 : 1;
}
