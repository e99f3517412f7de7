/* SPDX-License-Identifier: Apache-2.0 */
/* A PTX file as it was written: what the parser makes and the lifter reads. */
#ifndef TALLY_FRONTEND_PTX_PTX_H
#define TALLY_FRONTEND_PTX_PTX_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "frontend/frontend.h"
#include "frontend/ptx/arena.h"

/* Fundamental and packed types (PTX ISA 5.2): name, bits, kind. */
/* clang-format off */
#define PTX_TYPES(T) \
	T(b8, 8, BITS) \
	T(b16, 16, BITS) \
	T(b32, 32, BITS) \
	T(b64, 64, BITS) \
	T(b128, 128, BITS) \
	T(u8, 8, UNSIGNED) \
	T(u16, 16, UNSIGNED) \
	T(u32, 32, UNSIGNED) \
	T(u64, 64, UNSIGNED) \
	T(s8, 8, SIGNED) \
	T(s16, 16, SIGNED) \
	T(s32, 32, SIGNED) \
	T(s64, 64, SIGNED) \
	T(f16, 16, FLOATING) \
	T(bf16, 16, FLOATING) \
	T(f32, 32, FLOATING) \
	T(f64, 64, FLOATING) \
	T(f16x2, 32, PACKED) \
	T(bf16x2, 32, PACKED) \
	T(u16x2, 32, PACKED) \
	T(s16x2, 32, PACKED) \
	T(f32x2, 64, PACKED) \
	T(tf32, 32, BITS) \
	T(pred, 1, PREDICATE) \
	T(e4m3, 8, OTHER) \
	T(e5m2, 8, OTHER) \
	T(e3m2, 8, OTHER) \
	T(e2m3, 8, OTHER) \
	T(e2m1, 8, OTHER) \
	T(e4m3x2, 16, OTHER) \
	T(e5m2x2, 16, OTHER) \
	T(e4m3x4, 32, OTHER) \
	T(e5m2x4, 32, OTHER) \
	T(e2m1x2, 8, OTHER) \
	T(e2m3x2, 16, OTHER) \
	T(e3m2x2, 16, OTHER) \
	T(ue8m0x2, 16, OTHER) \
	T(e2m1x4, 16, OTHER) \
	T(e2m3x4, 32, OTHER) \
	T(e3m2x4, 32, OTHER) \
	T(s2f6x2, 16, OTHER) \
	T(u4, 4, OTHER) \
	T(s4, 4, OTHER) \
	T(u2, 2, OTHER) \
	T(s2, 2, OTHER) \
	T(b1, 1, OTHER) \
	T(texref, 64, OTHER) \
	T(samplerref, 64, OTHER) \
	T(surfref, 64, OTHER)
/* clang-format on */

enum ptx_kind {
	PTX_BITS,
	PTX_UNSIGNED,
	PTX_SIGNED,
	PTX_FLOATING,
	PTX_PACKED,
	PTX_PREDICATE,
	PTX_OTHER, /* tensor formats: only instructions that stay the vendor's use them */
};

enum ptx_type {
	PTX_NO_TYPE,
#define T(name, bits, kind) PTX_##name,
	PTX_TYPES(T)
#undef T
};

/* PTX_NO_TYPE when `text` (length bytes, no dot) is no type. */
enum ptx_type ptx_type_find(const char *text, size_t length);
const char *ptx_type_name(enum ptx_type type);
unsigned ptx_type_bits(enum ptx_type type);
enum ptx_kind ptx_type_kind(enum ptx_type type);

/* .texref, .samplerref, .surfref (PTX ISA 5.3). */
bool ptx_type_is_opaque(enum ptx_type type);

enum ptx_space {
	PTX_GENERIC,
	PTX_REG,
	PTX_GLOBAL,
	PTX_SHARED,
	PTX_CONST,
	PTX_LOCAL,
	PTX_PARAM,
};

enum ptx_symbol_kind {
	PTX_VARIABLE, /* of any space, registers included */
	PTX_RANGE,    /* %r<100>: makes %r0 ... %r99 when they are used */
	PTX_FUNCTION,
	PTX_LABEL,
	PTX_PROTOTYPE, /* .callprototype */
	PTX_TARGETS,   /* .branchtargets and .calltargets */
};

struct ptx_function;
struct ptx_value;

enum { PTX_MAX_DIMENSIONS = 8 };

struct ptx_symbol {
	const char *name;
	enum ptx_symbol_kind kind;
	enum ptx_space space;
	enum ptx_type type;
	unsigned line, column;
	unsigned vector;			/* 1, 2, 4, 8 */
	uint64_t elements;			/* of arrays, all dimensions together; 0 for [] */
	uint64_t dimension[PTX_MAX_DIMENSIONS]; /* of arrays; 0 for [] */
	unsigned dimensions;
	bool is_array;
	bool is_pointer; /* a .ptr parameter, or one that is used as an address */
	bool is_extern, is_weak, is_visible, is_common;
	unsigned align; /* bytes; 0 when not given */
	struct ptx_value *initialiser;
	const char *fields;	       /* of an opaque variable, braces and all; NULL: none */
	uint32_t range;		       /* PTX_RANGE: how many */
	struct ptx_function *function; /* PTX_FUNCTION, PTX_PROTOTYPE */
	struct ptx_symbol **target;    /* PTX_TARGETS */
	unsigned targets;
	bool defined;	/* PTX_LABEL: its colon was seen */
	bool rolled;	/* PTX_LABEL: .pragma "nounroll" stands behind it */
	bool lifted;	/* PTX_LABEL: the lifter has been there */
	unsigned depth; /* scope */
	struct ptx_symbol *hash_next, *scope_next;
	struct ptx_symbol *next; /* in lists of variables and parameters */
	struct ptx_symbol *from; /* of a register: the parameter it was loaded from; of a label: the
				    outer one that it turned out to be */
	LLVMValueRef value;	 /* the lifter's: alloca, global, function */
	LLVMBasicBlockRef block; /* the lifter's: of a label */
};

/* One element of an initialiser: a number, an address, or a braced list. */
struct ptx_value {
	enum { PTX_V_INT, PTX_V_FLOAT, PTX_V_ADDRESS, PTX_V_LIST } kind;
	unsigned line, column;
	uint64_t bits;			/* PTX_V_INT; PTX_V_ADDRESS: the offset */
	double real;			/* PTX_V_FLOAT */
	const char *name;		/* PTX_V_ADDRESS */
	bool generic;			/* generic(name) */
	uint64_t mask;			/* PTX_V_ADDRESS: 0xff00(name), one byte of it; 0: all */
	struct ptx_value *first, *next; /* list; siblings */
};

enum ptx_operand_kind {
	PTX_O_NAME, /* register, variable, function, label, special register */
	PTX_O_INT,
	PTX_O_FLOAT,
	PTX_O_VECTOR, /* {a, b} */
	PTX_O_MEMORY, /* [a+4]; further elements of [a, {x, y}] in `first` */
	PTX_O_LIST,   /* (a, b) of calls */
	PTX_O_SINK,   /* _ */
};

struct ptx_operand {
	enum ptx_operand_kind kind;
	bool negated; /* !p */
	unsigned line, column;
	const char *name;	   /* PTX_O_NAME; PTX_O_MEMORY: base, or NULL */
	struct ptx_symbol *symbol; /* what the name means here; NULL: special, or looked up later */
	uint64_t bits;		   /* PTX_O_INT; offset of names and memory; bits of floats */
	double real;
	bool single;
	const char *selector; /* b3210, h1: the parts of a register that video instructions take */
	const char *text;     /* as written */
	size_t length;
	struct ptx_operand *first, *next; /* elements; siblings */
	struct ptx_operand *second;	  /* d|p */
	bool indexed;			  /* array[4], array[%r1+4]: `bits` has 4 in bytes */
	struct ptx_operand *index;	  /* the register of it, or NULL */
};

enum {
	PTX_MAX_MODIFIERS = 16,
	PTX_MAX_OPERANDS = 16,
};

struct ptx_row;

enum ptx_statement_kind { PTX_S_INSTRUCTION, PTX_S_LABEL, PTX_S_LOC };

struct ptx_statement {
	enum ptx_statement_kind kind;
	unsigned line, column;
	struct ptx_statement *next;
	struct ptx_symbol *label;		 /* PTX_S_LABEL */
	unsigned loc_file, loc_line, loc_column; /* PTX_S_LOC */
	struct ptx_operand *guard;		 /* @p, @!p */
	const char *name;			 /* "add" */
	const char *opcode;			 /* "add.rn.f32" */
	const char *modifier[PTX_MAX_MODIFIERS];
	unsigned modifiers;
	enum ptx_type type[4]; /* type modifiers in order */
	struct ptx_operand *operand[PTX_MAX_OPERANDS];
	unsigned operands;
	const struct ptx_row *row;
};

/* Whether the opcode of `s` has the modifier (without its dot). */
bool ptx_has(const struct ptx_statement *s, const char *modifier);

struct ptx_function {
	const char *name;
	struct ptx_symbol *symbol;
	bool is_entry, has_body, no_return;
	unsigned line, column;
	struct ptx_symbol *results, *parameters; /* through `next` */
	/* .local, .shared, .param of the body, in order: that of .shared is their order in memory.
	 */
	struct ptx_symbol *variables, **last_variable;
	struct ptx_statement *first, *last;
	unsigned maxntid[3], reqntid[3], cluster[3]; /* 0 when not given */
	unsigned minctapersm, maxnreg, maxclusterrank;
	bool rolled; /* .pragma "nounroll" of the whole function */
	struct ptx_function *next;
};

struct ptx_file_name {
	unsigned number;
	const char *name;
	struct ptx_file_name *next;
};

struct ptx_alias {
	struct ptx_symbol *alias;
	const char *target;
	unsigned line, column;
	struct ptx_alias *next;
};

enum { PTX_BUCKETS = 4096, PTX_MAX_DEPTH = 64 };

struct ptx_module {
	struct ptx_arena arena;
	const char *file;
	struct ptx_symbol *bucket[PTX_BUCKETS];
	struct ptx_symbol *scope[PTX_MAX_DEPTH + 1]; /* symbols of each open scope */
	unsigned depth;
	struct ptx_symbol *variables; /* of the module, in order, through `next` */
	struct ptx_symbol **last_variable;
	struct ptx_function *functions, **last_function; /* definitions and declarations */
	struct ptx_file_name *files;
	struct ptx_alias *aliases;
	unsigned address_size;
	unsigned version, machine; /* 64 for .version 6.4, 70 for .target sm_70; 0: not said */
	bool has_loc;
	bool rolled;	  /* .pragma "nounroll" of the whole file */
	bool independent; /* .target texmode_independent */
};

/* Parses all of a PTX file, or `part` of it (NULL: all). False with a `file:line:col` error. Free
 * the module either way. */
bool ptx_parse(struct ptx_module *module, const char *file, const char *text, size_t size,
	       const struct tally_ptx_part *part, struct tally_error *error);

/*
 * Parses the inside of a function (inline assembly): statements up to the end of the text, into
 * `function`. Names that `module` knows already (the operands) are in scope.
 */
bool ptx_parse_body(struct ptx_module *module, struct ptx_function *function, const char *file,
		    const char *text, size_t size, struct tally_error *error);

/* Frees the module with all that hangs on it. Also after an error. */
void ptx_module_free(struct ptx_module *module);

/* Scopes and names (symbols.c). find makes registers of ranges; add is NULL for want of memory. */
struct ptx_symbol *ptx_find(struct ptx_module *module, const char *name, size_t length);
struct ptx_symbol *ptx_add(struct ptx_module *module, const char *name, size_t length,
			   enum ptx_symbol_kind kind, unsigned depth);
/* Gives a fresh or redeclared symbol the properties of `common`; its place in tables stays. */
void ptx_assign(struct ptx_symbol *symbol, const struct ptx_symbol *common);
/* A label of the current scope that was branched to but never defined, or NULL. */
const struct ptx_symbol *ptx_undefined_label(const struct ptx_module *module);
bool ptx_scope_open(struct ptx_module *module);
/* Labels that are still open when their scope ends are the outer scope's. False: no memory. */
bool ptx_scope_close(struct ptx_module *module);

#endif
