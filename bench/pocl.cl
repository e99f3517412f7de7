/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of bench/pocl.c: one text for both compilers, OpenCL C as it stands and CUDA through the
 * names below, so that both sides run the same code. */
#ifdef __OPENCL_VERSION__
#define KERNEL	      __kernel void
#define GLOBAL	      __global
#define SHARED	      __local
#define SHARED_ADD(p) atomic_inc(p)
#define GLOBAL_ADD    atomic_add
#define BARRIER	      barrier(CLK_LOCAL_MEM_FENCE)
#define TX	      (int)get_local_id(0)
#define TY	      (int)get_local_id(1)
#define BX	      (int)get_group_id(0)
#define BY	      (int)get_group_id(1)
#define NX	      (int)get_local_size(0)
#define NY	      (int)get_local_size(1)
#define EXP	      exp
#define LOG	      log
#define SQRT	      sqrt
#define RSQRT	      rsqrt
#define FABS	      fabs
#else
#define KERNEL	      extern "C" __global__ void
#define GLOBAL
#define SHARED	      __shared__
#define SHARED_ADD(p) atomicAdd(p, 1)
#define GLOBAL_ADD    atomicAdd
#define BARRIER	      __syncthreads()
#define restrict      __restrict__
#define TX	      (int)threadIdx.x
#define TY	      (int)threadIdx.y
#define BX	      (int)blockIdx.x
#define BY	      (int)blockIdx.y
#define NX	      (int)blockDim.x
#define NY	      (int)blockDim.y
#define EXP	      expf
#define LOG	      logf
#define SQRT	      sqrtf
#define RSQRT	      rsqrtf
#define FABS	      fabsf
#endif
#define ARGUMENTS GLOBAL const float *restrict a, GLOBAL const float *restrict b, GLOBAL float *restrict c, int n
#define TILE	  16
#define BLOCK	  256

KERNEL vadd(ARGUMENTS)
{
	int i = BX * NX + TX;

	if (i < n)
		c[i] = a[i] + b[i];
}

KERNEL saxpy(ARGUMENTS)
{
	int i = BX * NX + TX;

	if (i < n)
		c[i] = 2.5f * a[i] + b[i];
}

KERNEL matmul(ARGUMENTS)
{
	int row = BY * NY + TY, column = BX * NX + TX;
	float sum = 0;

	for (int k = 0; k < n; k++)
		sum += a[row * n + k] * b[k * n + column];
	c[row * n + column] = sum;
}

KERNEL matmul_tiled(ARGUMENTS)
{
	SHARED float x[TILE][TILE], y[TILE][TILE];
	int row = BY * TILE + TY, column = BX * TILE + TX;
	float sum = 0;

	for (int t = 0; t < n; t += TILE) {
		x[TY][TX] = a[row * n + t + TX];
		y[TY][TX] = b[(t + TY) * n + column];
		BARRIER;
		for (int k = 0; k < TILE; k++)
			sum += x[TY][k] * y[k][TX];
		BARRIER;
	}
	c[row * n + column] = sum;
}

KERNEL reduce(ARGUMENTS)
{
	SHARED float sums[BLOCK];
	int i = BX * NX + TX;

	sums[TX] = i < n ? a[i] : 0;
	BARRIER;
	for (int s = BLOCK / 2; s > 0; s /= 2) {
		if (TX < s)
			sums[TX] += sums[TX + s];
		BARRIER;
	}
	if (TX == 0)
		c[BX] = sums[0];
}

KERNEL transpose(ARGUMENTS)
{
	SHARED float tile[TILE][TILE + 1];

	tile[TY][TX] = a[(BY * TILE + TY) * n + BX * TILE + TX];
	BARRIER;
	c[(BX * TILE + TY) * n + BY * TILE + TX] = tile[TX][TY];
}

/* Counts in shared memory; each block adds 1024 values to the bins in c. */
KERNEL histogram(ARGUMENTS)
{
	SHARED int bins[BLOCK];

	bins[TX] = 0;
	BARRIER;
	for (int k = 0; k < 4; k++)
		SHARED_ADD(&bins[(int)(a[(BX * 4 + k) * NX + TX] * 255.0f) & 255]);
	BARRIER;
	GLOBAL_ADD((GLOBAL int *)c + TX, bins[TX]);
}

KERNEL nbody(ARGUMENTS)
{
	SHARED float px[BLOCK], py[BLOCK], pz[BLOCK];
	int i = BX * NX + TX;
	float x = a[i], y = b[i], z = a[n - 1 - i], ax = 0, ay = 0, az = 0;

	for (int t = 0; t < n; t += BLOCK) {
		px[TX] = a[t + TX];
		py[TX] = b[t + TX];
		pz[TX] = a[n - 1 - t - TX];
		BARRIER;
		for (int k = 0; k < BLOCK; k++) {
			float dx = px[k] - x, dy = py[k] - y, dz = pz[k] - z;
			float r = RSQRT(dx * dx + dy * dy + dz * dz + 0.01f);
			float f = r * r * r;

			ax += dx * f;
			ay += dy * f;
			az += dz * f;
		}
		BARRIER;
	}
	c[i] = ax + ay + az;
}

KERNEL stencil(ARGUMENTS)
{
	int x = BX * NX + TX, y = BY * NY + TY, i = y * n + x;

	if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
		c[i] = 0.5f * a[i] + 0.125f * (a[i - 1] + a[i + 1] + a[i - n] + a[i + n]);
}

KERNEL black_scholes(ARGUMENTS)
{
	int i = BX * NX + TX;

	if (i < n) {
		float price = 5.0f + 25.0f * a[i], strike = 1.0f + 99.0f * b[i], years = 0.25f + 9.75f * a[i];
		float root = 0.3f * SQRT(years), d1 = (LOG(price / strike) + 0.065f * years) / root;
		float k = 1.0f / (1.0f + 0.2316419f * FABS(d1));
		float tail = 0.39894228f * EXP(-0.5f * d1 * d1) *
			     (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * -1.821255978f))));

		c[i] = price * (d1 > 0 ? 1.0f - tail : tail) - strike * EXP(-0.02f * years) * tail;
	}
}

KERNEL scan(ARGUMENTS)
{
	SHARED float sums[2][BLOCK];
	int i = BX * NX + TX, at = 0;

	sums[0][TX] = a[i];
	BARRIER;
	for (int s = 1; s < BLOCK; s *= 2) {
		sums[1 - at][TX] = sums[at][TX] + (TX >= s ? sums[at][TX - s] : 0);
		at = 1 - at;
		BARRIER;
	}
	c[i] = sums[at][TX];
}

KERNEL mandelbrot(ARGUMENTS)
{
	int px = BX * NX + TX, py = BY * NY + TY, k = 0;
	float x0 = -2.0f + 3.0f * px / n, y0 = -1.5f + 3.0f * py / n, x = 0, y = 0;

	while (k < 200 && x * x + y * y < 4.0f) {
		float next = x * x - y * y + x0;

		y = 2.0f * x * y + y0;
		x = next;
		k++;
	}
	c[py * n + px] = k;
}
