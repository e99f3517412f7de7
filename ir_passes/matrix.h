/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix operations of a warp (PTX ISA 9.7.14): what each form multiplies, loads or stores. */
#ifndef TALLY_IR_PASSES_MATRIX_H
#define TALLY_IR_PASSES_MATRIX_H

#include <stdint.h>

enum tally_matrix_kind {
	TALLY_MATRIX_MMA,    /* d = a * b + c, fragments as the ISA draws them */
	TALLY_MATRIX_WMMA,   /* the same on fragments whose layout is the device's own */
	TALLY_MATRIX_WMMA_A, /* loads fragment a, b or c; stores d */
	TALLY_MATRIX_WMMA_B,
	TALLY_MATRIX_WMMA_C,
	TALLY_MATRIX_WMMA_D,
	TALLY_MATRIX_LOAD,  /* ldmatrix: `m` matrices of 8 x 8 halves */
	TALLY_MATRIX_STORE, /* stmatrix */
	TALLY_MATRIX_MOVE,  /* movmatrix */
	TALLY_MATRIX_QUADS, /* mma.m8n8k4 on halves: four products, one for each two groups of lanes
			     */
	TALLY_MATRIX_SPARSE, /* mma.sp: half of A, and in which columns its elements stand */
};

enum tally_matrix_type {
	TALLY_MATRIX_NONE,
	TALLY_MATRIX_F16,
	TALLY_MATRIX_BF16,
	TALLY_MATRIX_TF32,
	TALLY_MATRIX_F32,
	TALLY_MATRIX_F64,
	TALLY_MATRIX_U8,
	TALLY_MATRIX_S8,
	TALLY_MATRIX_U4,
	TALLY_MATRIX_S4,
	TALLY_MATRIX_B1,
	TALLY_MATRIX_S32,
	TALLY_MATRIX_E4M3,
	TALLY_MATRIX_E5M2,
	TALLY_MATRIX_E3M2, /* six bits in a byte's lower ones */
	TALLY_MATRIX_E2M3,
	TALLY_MATRIX_E2M1,	/* four bits, packed */
	TALLY_MATRIX_E2M1_BYTE, /* in the middle of a byte */
	TALLY_MATRIX_TYPES,
};

enum tally_matrix_flags {
	TALLY_MATRIX_TRANSPOSED = 1, /* .trans; in memory by columns (.col) */
	TALLY_MATRIX_SATURATED = 2,  /* .satfinite */
	TALLY_MATRIX_AND = 4,	     /* of single bits: .and.popc, else .xor.popc */
	TALLY_MATRIX_COLUMN_A = 8,   /* of QUADS: A by columns, B by rows */
	TALLY_MATRIX_ROW_B = 16,
	TALLY_MATRIX_ZERO = 32, /* of f64: rounding toward zero, down, up; else to nearest */
	TALLY_MATRIX_DOWN = 64,
	TALLY_MATRIX_UP = 128,
	TALLY_MATRIX_SCALES_1 = 256, /* so many factors along k for each row of A and column of B */
	TALLY_MATRIX_SCALES_2 = 512,
	TALLY_MATRIX_SCALES_4 = 1024,
	TALLY_MATRIX_UE4M3 = 2048, /* factors of that type, else ue8m0 */
	/* Of SPARSE: which of a group's four lanes hold the metadata. */
	TALLY_MATRIX_SELECT_1 = 1 << 12,
	TALLY_MATRIX_SELECT_2 = 2 << 12,
	TALLY_MATRIX_SELECT_3 = 3 << 12,
};

/* The selector of SPARSE, and how many factors along k (0: none). */
#define TALLY_MATRIX_SELECTOR(flags) ((flags) >> 12 & 3)
#define TALLY_MATRIX_SCALES(flags)   ((flags) >> 8 & 7)

/* One form: a row of matrix.def. The rows' numbers are part of the CPU device's kernel ABI. */
struct tally_matrix_form {
	const char *name, *signature; /* as in struct tally_operation */
	const char *ptx;	      /* the instruction; operands are the operation's, in order */
	uint16_t kind, m, n, k;
	uint8_t a, b, c, d; /* types */
	uint16_t flags;
	uint8_t sm; /* the compute capability that has it first */
};

/* A row of matrix.def as the initialiser of a form: `#define FORM TALLY_MATRIX_FORM`. */
#define TALLY_MATRIX_FORM(name, signature, ptx, kind, m, n, k, a, b, c, d, flags, sm)              \
	{name,                                                                                     \
	 signature,                                                                                \
	 ptx,                                                                                      \
	 TALLY_MATRIX_##kind,                                                                      \
	 m,                                                                                        \
	 n,                                                                                        \
	 k,                                                                                        \
	 TALLY_MATRIX_##a,                                                                         \
	 TALLY_MATRIX_##b,                                                                         \
	 TALLY_MATRIX_##c,                                                                         \
	 TALLY_MATRIX_##d,                                                                         \
	 flags,                                                                                    \
	 sm},

#endif
