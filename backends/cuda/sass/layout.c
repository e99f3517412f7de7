/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an image whose sections have grown. The file is a row of pieces (sections, the two header
 * tables) with bytes between them that belong to nobody; pieces are written in the same order, and
 * each stays where it was modulo its alignment, so that the bytes between keep their place too.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/sass/image.h"

#define TABLE_ALIGNMENT 8

struct piece {
	uint64_t old, old_size; /* in the input */
	uint64_t new, new_size;
	uint64_t alignment;
	unsigned section; /* its index; `sections` and above: the header tables, the file's head */
};

struct layout {
	const struct sass_image *image;
	struct piece *piece; /* by place */
	unsigned pieces;
};

enum { SECTION_TABLE, PROGRAM_TABLE, FILE_HEAD, EXTRA_PIECES };

static int by_place(const void *a, const void *b)
{
	const struct piece *p = a, *q = b;

	return p->old < q->old ? -1 : p->old > q->old;
}

static void add(struct layout *layout, uint64_t old, uint64_t old_size, uint64_t new_size,
		uint64_t alignment, unsigned section)
{
	if (old_size || new_size)
		layout->piece[layout->pieces++] = (struct piece){.old = old,
								 .old_size = old_size,
								 .new_size = new_size,
								 .alignment = alignment,
								 .section = section};
}

static void collect(struct layout *layout)
{
	const struct sass_image *image = layout->image;
	const Elf64_Ehdr *head = &image->head;
	uint64_t table = (uint64_t)head->e_shnum * sizeof(Elf64_Shdr);
	uint64_t programs = (uint64_t)head->e_phnum * sizeof(Elf64_Phdr);

	add(layout, 0, sizeof *head, sizeof *head, 1, image->sections + FILE_HEAD);
	add(layout, head->e_shoff, table, table, TABLE_ALIGNMENT, image->sections + SECTION_TABLE);
	add(layout, head->e_phoff, programs, programs, TABLE_ALIGNMENT,
	    image->sections + PROGRAM_TABLE);
	for (unsigned k = 0; k < image->sections; k++) {
		const struct sass_section *section = &image->section[k];
		uint64_t alignment = section->head.sh_addralign;

		if (section->data)
			add(layout, section->head.sh_offset, section->head.sh_size, section->size,
			    alignment ? alignment : 1, k);
	}
	qsort(layout->piece, layout->pieces, sizeof *layout->piece, by_place);
}

static bool is_changed(const struct layout *layout, const struct piece *piece)
{
	return piece->section < layout->image->sections &&
	       (layout->image->section[piece->section].own ||
		piece->section == layout->image->symbol_section);
}

/* Two names for the same bytes: images for sm_100 and newer have them. They stay one piece. */
static void drop_aliases(struct layout *layout)
{
	unsigned kept = 0;

	for (unsigned k = 0; k < layout->pieces; k++) {
		const struct piece *piece = &layout->piece[k],
				   *last = kept ? &layout->piece[kept - 1] : NULL;

		if (last && piece->old == last->old && piece->old_size == last->old_size &&
		    !is_changed(layout, piece) && !is_changed(layout, last))
			continue;
		layout->piece[kept++] = *piece;
	}
	layout->pieces = kept;
}

/* The new place of each piece. */
static bool place(struct layout *layout, struct tally_error *error)
{
	uint64_t old_end = 0, new_end = 0;

	for (unsigned k = 0; k < layout->pieces; k++) {
		struct piece *piece = &layout->piece[k];

		if (piece->old < old_end)
			return tally_fail(error, "damaged: two parts of it overlap at offset %llu",
					  (unsigned long long)piece->old);
		piece->new = new_end + (piece->old - old_end);
		piece->new += (piece->old - piece->new) & (piece->alignment - 1);
		old_end = piece->old + piece->old_size;
		new_end = piece->new + piece->new_size;
	}
	return true;
}

/* The last piece that starts at or before `old`. The file's head starts at 0. */
static const struct piece *piece_at(const struct layout *layout, uint64_t old)
{
	unsigned low = 0, high = layout->pieces;

	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (layout->piece[middle].old <= old)
			low = middle;
		else
			high = middle;
	}
	return &layout->piece[low];
}

/* Where something that started at `old` starts. */
static uint64_t new_start(const struct layout *layout, uint64_t old)
{
	const struct piece *piece = piece_at(layout, old);
	uint64_t inside = old - piece->old;

	return inside < piece->old_size ? piece->new + inside
					: piece->new + piece->new_size + (inside - piece->old_size);
}

/* Where something that ended at `old` ends: with all that was put behind its last piece. */
static uint64_t new_end(const struct layout *layout, uint64_t old)
{
	const struct piece *piece = piece_at(layout, old ? old - 1 : 0);
	uint64_t inside = old - piece->old;

	return inside < piece->old_size ? piece->new + inside
					: piece->new + piece->new_size + (inside - piece->old_size);
}

static Elf64_Shdr section_head(const struct layout *layout, unsigned index)
{
	const struct sass_section *section = &layout->image->section[index];
	Elf64_Shdr head = section->head;

	if (head.sh_type == SHT_NULL)
		return head;
	head.sh_offset = new_start(layout, head.sh_offset);
	if (section->data)
		head.sh_size = section->size;
	return head;
}

static Elf64_Phdr program_head(const struct layout *layout, unsigned index)
{
	const struct sass_image *image = layout->image;
	uint64_t start, end;
	Elf64_Phdr head;

	memcpy(&head, image->input + image->head.e_phoff + index * sizeof head, sizeof head);
	start = new_start(layout, head.p_offset);
	if (head.p_filesz) {
		end = new_end(layout, head.p_offset + head.p_filesz);
		/* What has no bytes in the file comes behind what has. */
		head.p_memsz += (end - start) - head.p_filesz;
		head.p_filesz = end - start;
	}
	head.p_offset = start;
	return head;
}

static void write_piece(const struct layout *layout, const struct piece *piece, uint8_t *out)
{
	const struct sass_image *image = layout->image;
	uint8_t *to = out + piece->new;

	if (piece->section < image->sections) {
		if (piece->section == image->symbol_section)
			memcpy(to, image->symbol, piece->new_size);
		else
			memcpy(to, image->section[piece->section].data, piece->new_size);
	} else if (piece->section == image->sections + SECTION_TABLE) {
		for (unsigned k = 0; k < image->sections; k++) {
			Elf64_Shdr head = section_head(layout, k);

			memcpy(to + k * sizeof head, &head, sizeof head);
		}
	} else if (piece->section == image->sections + PROGRAM_TABLE) {
		for (unsigned k = 0; k < image->head.e_phnum; k++) {
			Elf64_Phdr head = program_head(layout, k);

			memcpy(to + k * sizeof head, &head, sizeof head);
		}
	} else {
		Elf64_Ehdr head = image->head;

		head.e_shoff = new_start(layout, head.e_shoff);
		if (head.e_phnum)
			head.e_phoff = new_start(layout, head.e_phoff);
		memcpy(to, &head, sizeof head);
	}
}

/* All pieces, and the input's bytes between and behind them. */
static void write_all(const struct layout *layout, uint8_t *out)
{
	const struct sass_image *image = layout->image;

	for (unsigned k = 0; k < layout->pieces; k++) {
		const struct piece *piece = &layout->piece[k];
		uint64_t end = piece->old + piece->old_size;
		uint64_t next = k + 1 < layout->pieces ? piece[1].old : image->input_size;

		write_piece(layout, piece, out);
		memcpy(out + piece->new + piece->new_size, image->input + end, next - end);
	}
}

/* A program header names bytes of the file, or none. */
static bool check_programs(const struct sass_image *image, struct tally_error *error)
{
	for (unsigned k = 0; k < image->head.e_phnum; k++) {
		Elf64_Phdr head;

		memcpy(&head, image->input + image->head.e_phoff + k * sizeof head, sizeof head);
		if (head.p_offset > image->input_size ||
		    head.p_filesz > image->input_size - head.p_offset)
			return tally_fail(error, "damaged: program header %u", k);
	}
	return true;
}

bool sass_image_write(const struct sass_image *image, struct tally_buffer *out,
		      struct tally_error *error)
{
	struct layout layout = {.image = image};
	uint8_t *bytes = NULL;
	uint64_t size;
	bool ok;

	layout.piece = calloc(image->sections + EXTRA_PIECES, sizeof *layout.piece);
	if (!layout.piece)
		return tally_fail(error, "out of memory");
	collect(&layout);
	drop_aliases(&layout);
	ok = check_programs(image, error) && place(&layout, error);
	if (ok) {
		const struct piece *last = &layout.piece[layout.pieces - 1];

		size = last->new + last->new_size +
		       (image->input_size - (last->old + last->old_size));
		bytes = calloc(1, size);
		ok = bytes || tally_fail(error, "out of memory");
	}
	if (ok) {
		write_all(&layout, bytes);
		tally_buffer_append(out, bytes, size);
		ok = !out->failed || tally_fail(error, "out of memory");
	}
	free(bytes);
	free(layout.piece);
	return ok;
}
