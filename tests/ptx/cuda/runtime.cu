// SPDX-License-Identifier: Apache-2.0
// What device code asks of its runtime: printf, assert, malloc, pointers to functions, recursion, local
// arrays, structures by value, virtual calls, every kind of variable.
#include <cassert>
#include <cstdio>

struct Big { int a[5]; double d; char c; };
struct Shape { virtual __device__ float area(float) const = 0; };
struct Square : Shape { __device__ float area(float x) const override { return x * x; } };
struct Circle : Shape { float pi = 3; __device__ float area(float x) const override { return pi * x * x; } };

__device__ int counter = 7;
__constant__ float weights[16] = {1, 2, 3};
__device__ double matrix[3][4] = {{1, 2}, {3}};
__device__ const char *names[2] = {"one", "two"};
__managed__ int shared_with_host;

typedef float (*function)(float);
__device__ __noinline__ float twice(float x) { return x + x; }
__device__ __noinline__ float half(float x) { return x * 0.5f; }
__device__ function functions[2] = {twice, half};
__device__ __noinline__ Big change(Big b, int n) { b.a[n & 3] += n; b.d *= 2; return b; }
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void __launch_bounds__(128, 2) all(Big b, float *out, int n, Big *bigs)
{
	extern __shared__ double dynamic[];
	__shared__ Big held;
	int local[32];
	for (int i = 0; i < n; i++)
		local[i & 31] = i * counter;
	bigs[0] = change(b, n);
	held = bigs[1];
	__syncthreads();
	out[0] = functions[n & 1](out[1]) + fibonacci(n) + local[n & 31] + held.a[2] + weights[n & 15];
	dynamic[threadIdx.x] = matrix[n % 3][n & 3];
	printf("%s %d %f %lld\n", names[n & 1], n, out[0], 1ll << n);
	assert(n > 0);
	int *heap = (int *)malloc(n * sizeof(int));
	if (heap) {
		heap[n - 1] = shared_with_host;
		out[2] = heap[n - 1];
		free(heap);
	}
	Square square;
	Circle circle;
	Shape *shape = n & 2 ? (Shape *)&square : (Shape *)&circle;
	out[3] = shape->area(out[4]) + dynamic[0];
	if (n == 12)
		__trap();
	if (n == 13)
		__nanosleep(100);
	out[4] = clock64() + clock() + __isGlobal(out) + __isShared(dynamic);
	memcpy(out + 8, local, n);
	memset(out + 16, 0, n);
}
