// SPDX-License-Identifier: Apache-2.0
// Hand-tuned plain kernels: tiles in shared memory, vectors, registers, unrolled loops, cached loads.
#include "common.cuh"

// launch: sgemm grid 8,8 block 256 args f32[1048576]:unit f32[1048576]:unit f32[1048576]:zero i32=1024 i32=1024
KERNEL __launch_bounds__(256)
	sgemm(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n, int k)
{
	__shared__ float as[2][8][132], bs[2][8][128];
	int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
	int row = threadIdx.x / 2, part = threadIdx.x % 2 * 4, brow = threadIdx.x / 32, bcol = threadIdx.x % 32 * 4;
	const float *from_a = a + (blockIdx.y * 128 + row) * k + part, *from_b = b + brow * n + blockIdx.x * 128 + bcol;
	float sum[8][8] = {}, ra[8], rb[8];
	float4 va = *(const float4 *)from_a, vb = *(const float4 *)from_b;

	as[0][part][row] = va.x, as[0][part + 1][row] = va.y, as[0][part + 2][row] = va.z, as[0][part + 3][row] = va.w;
	*(float4 *)&bs[0][brow][bcol] = vb;
	__syncthreads();
	for (int at = 8, side = 0; at <= k; at += 8, side ^= 1) {
		if (at < k) {
			va = *(const float4 *)(from_a + at);
			vb = *(const float4 *)(from_b + at * n);
		}
#pragma unroll
		for (int kk = 0; kk < 8; kk++) {
			*(float4 *)&ra[0] = *(float4 *)&as[side][kk][ty * 4];
			*(float4 *)&ra[4] = *(float4 *)&as[side][kk][64 + ty * 4];
			*(float4 *)&rb[0] = *(float4 *)&bs[side][kk][tx * 4];
			*(float4 *)&rb[4] = *(float4 *)&bs[side][kk][64 + tx * 4];
#pragma unroll
			for (int i = 0; i < 8; i++)
#pragma unroll
				for (int j = 0; j < 8; j++)
					sum[i][j] += ra[i] * rb[j];
		}
		if (at < k) {
			int to = side ^ 1;
			as[to][part][row] = va.x, as[to][part + 1][row] = va.y;
			as[to][part + 2][row] = va.z, as[to][part + 3][row] = va.w;
			*(float4 *)&bs[to][brow][bcol] = vb;
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < 2; j++)
			*(float4 *)(c + (blockIdx.y * 128 + i / 4 * 64 + ty * 4 + i % 4) * n + blockIdx.x * 128 + j * 64 + tx * 4) =
				make_float4(sum[i][j * 4], sum[i][j * 4 + 1], sum[i][j * 4 + 2], sum[i][j * 4 + 3]);
}

// launch: transpose grid 32,32 block 32,8 args f32[1048576]:unit f32[1048576]:zero i32=1024
KERNEL transpose(const float *in, float *out, int n)
{
	__shared__ float tile[32][33];
	int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;

	for (int k = 0; k < 32; k += 8)
		tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
	__syncthreads();
	x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
	for (int k = 0; k < 32; k += 8)
		out[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}

// launch: copy_vector grid 4096 block 256 args f32[4194304]:unit f32[4194304]:zero
KERNEL copy_vector(const float4 *__restrict__ in, float4 *__restrict__ out)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;

	out[at] = in[at];
}

// launch: layer_norm grid 4096 block 128 args f32[4194304]:unit f32[1024]:unit f32[1024]:unit f32[4194304]:zero
KERNEL layer_norm(const float4 *__restrict__ in, const float4 *__restrict__ weight, const float4 *__restrict__ bias,
		  float4 *__restrict__ out)
{
	__shared__ float part[2][4];
	const float4 *row = in + blockIdx.x * 256;
	float4 a = row[threadIdx.x], b = row[threadIdx.x + 128];
	float sum = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
	float squares = a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w + b.x * b.x + b.y * b.y + b.z * b.z + b.w * b.w;

	for (int k = 16; k; k >>= 1) {
		sum += __shfl_xor_sync(~0u, sum, k);
		squares += __shfl_xor_sync(~0u, squares, k);
	}
	if (threadIdx.x % 32 == 0)
		part[0][threadIdx.x / 32] = sum, part[1][threadIdx.x / 32] = squares;
	__syncthreads();
	sum = squares = 0;
	for (int k = 0; k < 4; k++)
		sum += part[0][k], squares += part[1][k];
	float mean = sum / 1024, scale = rsqrtf(squares / 1024 - mean * mean + 1e-5f);
	for (int k = 0; k < 2; k++) {
		float4 v = k ? b : a, w = weight[threadIdx.x + k * 128], z = bias[threadIdx.x + k * 128];
		v.x = (v.x - mean) * scale * w.x + z.x, v.y = (v.y - mean) * scale * w.y + z.y;
		v.z = (v.z - mean) * scale * w.z + z.z, v.w = (v.w - mean) * scale * w.w + z.w;
		out[blockIdx.x * 256 + threadIdx.x + k * 128] = v;
	}
}

// launch: stencil grid 16,64,1 block 32,8 args f32[4194304]:unit f32[4194304]:zero i32=512 i32=512 i32=16
KERNEL stencil(const float *__restrict__ in, float *__restrict__ out, int nx, int ny, int nz)
{
	int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, plane = nx * ny;
	int at = y * nx + x;
	float below = 0, here = in[at], above;

	for (int z = 0; z < nz; z++, at += plane) {
		above = z + 1 < nz ? in[at + plane] : 0;
		float sum = below + above - 6 * here;
		if (x > 0)
			sum += in[at - 1];
		if (x + 1 < nx)
			sum += in[at + 1];
		if (y > 0)
			sum += in[at - nx];
		if (y + 1 < ny)
			sum += in[at + nx];
		out[at] = here + 0.1f * sum;
		below = here;
		here = above;
	}
}

__constant__ float taps[81] = {0.01f, 0.02f, 0.03f, 0.04f, 0.05f, 0.04f, 0.03f, 0.02f, 0.01f, 0.5f};

// launch: convolve grid 32,128 block 32,8 args f32[1048576]:unit f32[1048576]:zero i32=1024
KERNEL convolve(const float *__restrict__ in, float *__restrict__ out, int n)
{
	__shared__ float tile[16][40];
	int x = blockIdx.x * 32, y = blockIdx.y * 8;
	float sum = 0;

	for (int k = threadIdx.y * 32 + threadIdx.x; k < 640; k += 256) {
		int tx = x + k % 40 - 4, ty = y + k / 40 - 4;
		tile[k / 40][k % 40] = tx >= 0 && tx < n && ty >= 0 && ty < n ? in[ty * n + tx] : 0;
	}
	__syncthreads();
#pragma unroll
	for (int j = 0; j < 9; j++)
#pragma unroll
		for (int i = 0; i < 9; i++)
			sum += tile[threadIdx.y + j][threadIdx.x + i] * taps[j * 9 + i];
	out[(y + threadIdx.y) * n + x + threadIdx.x] = sum;
}

// launch: nbody grid 64 block 256 args f32[65536]:unit f32[65536]:zero i32=16384
KERNEL nbody(const float4 *__restrict__ bodies, float4 *__restrict__ out, int n)
{
	__shared__ float4 tile[256];
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	float4 me = bodies[at];
	float ax = 0, ay = 0, az = 0;

	for (int base = 0; base < n; base += 256) {
		tile[threadIdx.x] = bodies[base + threadIdx.x];
		__syncthreads();
#pragma unroll 8
		for (int k = 0; k < 256; k++) {
			float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
			float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
			float force = tile[k].w * inverse * inverse * inverse;
			ax += dx * force, ay += dy * force, az += dz * force;
		}
		__syncthreads();
	}
	out[at] = make_float4(ax, ay, az, me.w);
}

// launch: softmax_online grid 2048 block 256 args f32[8388608]:unit f32[8388608]:zero i32=4096
KERNEL softmax_online(const float *__restrict__ in, float *__restrict__ out, int n)
{
	__shared__ float part[2][8];
	const float *row = in + (size_t)blockIdx.x * n;
	float most = __int_as_float((int)0xff800000), sum = 0;

	for (int k = threadIdx.x; k < n; k += 256) {
		float v = row[k], next = fmaxf(most, v);
		sum = sum * __expf(most - next) + __expf(v - next);
		most = next;
	}
	for (int k = 16; k; k >>= 1) {
		float m = __shfl_xor_sync(~0u, most, k), s = __shfl_xor_sync(~0u, sum, k), next = fmaxf(most, m);
		sum = sum * __expf(most - next) + s * __expf(m - next);
		most = next;
	}
	if (threadIdx.x % 32 == 0)
		part[0][threadIdx.x / 32] = most, part[1][threadIdx.x / 32] = sum;
	__syncthreads();
	most = part[0][0], sum = part[1][0];
	for (int k = 1; k < 8; k++) {
		float next = fmaxf(most, part[0][k]);
		sum = sum * __expf(most - next) + part[1][k] * __expf(part[0][k] - next);
		most = next;
	}
	for (int k = threadIdx.x; k < n; k += 256)
		out[(size_t)blockIdx.x * n + k] = __fdividef(__expf(row[k] - most), sum);
}
