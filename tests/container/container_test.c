/* SPDX-License-Identifier: Apache-2.0 */
/* Containers made by hand: every compression, nesting, bound and message of the reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buffer.h"
#include "frontend/frontend.h"

static const char ptx[] = "\n// made by hand\n.version 8.0\n.target sm_80\n.address_size 64\n"
			  ".visible .entry k()\n{\n\tret;\n}\n";

static void put(struct tally_buffer *b, uint64_t value, size_t bytes)
{
	tally_buffer_append(b, &value, bytes);
}

static void put_zeros(struct tally_buffer *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		put(b, 0, 1);
}

static void set64(struct tally_buffer *b, size_t at, uint64_t value)
{
	memcpy(b->data + at, &value, 8);
}

static void put_entry(struct tally_buffer *b, unsigned kind, uint64_t flags, const void *payload,
		      size_t size, size_t uncompressed)
{
	size_t padded = (size + 7) / 8 * 8;

	put(b, kind, 2);
	put(b, 0x101, 2);
	put(b, 64, 4);
	put(b, padded, 8);
	put(b, flags & 0xa000 ? size : 0, 8);
	put(b, 0, 4);
	put(b, 80, 4);
	put(b, 0, 8);
	put(b, flags, 8);
	put(b, 0, 8);
	put(b, uncompressed, 8);
	tally_buffer_append(b, payload, size);
	put_zeros(b, padded - size);
}

/* Raw, LZ4 and ZSTD PTX, and a cubin that is none. */
static struct tally_buffer make_fatbin(void)
{
	struct tally_buffer b = {0};
	char small[512];
	size_t n;

	put(&b, 0xBA55ED50, 4);
	put(&b, 1, 2);
	put(&b, 16, 2);
	put(&b, 0, 8);
	put_entry(&b, 1, 0x11, ptx, strlen(ptx), 0);
	n = (size_t)LZ4_compress_default(ptx, small, (int)strlen(ptx), sizeof(small));
	put_entry(&b, 1, 0x2011, small, n, strlen(ptx));
	n = ZSTD_compress(small, sizeof(small), ptx, strlen(ptx), 3);
	put_entry(&b, 1, 0x8011, small, n, strlen(ptx));
	put_entry(&b, 2, 0x11,
		  "\x7F"
		  "ELF",
		  4, 0);
	set64(&b, 8, b.size - 16);
	return b;
}

static struct tally_buffer make_bundle(const char *id, const void *data, size_t size)
{
	struct tally_buffer b = {0};

	tally_buffer_append(&b, "__CLANG_OFFLOAD_BUNDLE__", 24);
	put(&b, 2, 8);
	put(&b, 256, 8);
	put(&b, 0, 8);
	put(&b, 27, 8);
	tally_buffer_append(&b, "host-x86_64-unknown-linux--", 27);
	put(&b, 256, 8);
	put(&b, size, 8);
	put(&b, strlen(id), 8);
	tally_buffer_append(&b, id, strlen(id));
	put_zeros(&b, 256 - b.size);
	tally_buffer_append(&b, data, size);
	return b;
}

static struct tally_buffer make_compressed(unsigned version, unsigned method,
					   const struct tally_buffer *inner)
{
	struct tally_buffer b = {0};
	uLongf n = 4096;
	char small[4096];

	if (method)
		n = ZSTD_compress(small, sizeof(small), inner->data, inner->size, 3);
	else
		assert_int_equal(compress((Bytef *)small, &n, (Bytef *)inner->data, inner->size),
				 0);
	tally_buffer_append(&b, "CCOB", 4);
	put(&b, version, 2);
	put(&b, method, 2);
	if (version == 2)
		put(&b, 24 + n, 4);
	if (version == 3)
		put(&b, 32 + n, 8);
	put(&b, inner->size, version == 3 ? 8 : 4);
	put(&b, 0x1234, 8);
	tally_buffer_append(&b, small, n);
	return b;
}

static bool read_buffer(const struct tally_buffer *b, struct tally_images *images,
			struct tally_error *error)
{
	*error = (struct tally_error){0};
	return tally_container_read("t", b->data, b->size, images, error);
}

static void fails(const struct tally_buffer *b, const char *text)
{
	struct tally_images images;
	struct tally_error error;

	assert_false(read_buffer(b, &images, &error));
	assert_int_equal(images.count, 0);
	if (!strstr(error.message, text))
		fail_msg("'%s' lacks '%s'", error.message, text);
	assert_string_equal(error.file, "t");
}

static void fatbin_gives_every_entry_exactly(void **state)
{
	static const char *const compressions[] = {"", "lz4", "zstd"};
	struct tally_buffer b = make_fatbin(), second = make_fatbin();
	struct tally_images images;
	struct tally_error error;

	/* Two behind each other, as a linker lays them, with padding between. */
	put_zeros(&b, 16);
	tally_buffer_append(&b, second.data, second.size);
	assert_true(read_buffer(&b, &images, &error));
	assert_int_equal(images.count, 8);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(images.image[i].kind, TALLY_IMAGE_PTX);
		assert_int_equal(images.image[i].size, strlen(ptx));
		assert_string_equal((char *)images.image[i].data, ptx);
		assert_string_equal(images.image[i].compression, compressions[i]);
		assert_string_equal(images.image[i].arch, "sm_80");
	}
	assert_int_equal(images.image[3].kind, TALLY_IMAGE_CUBIN);
	assert_string_equal(images.image[2].origin, "t: entry 2");
	assert_string_equal(images.image[6].origin, "t: [1] entry 2");
	tally_images_free(&images);
	tally_buffer_free(&second);
	tally_buffer_free(&b);
}

static void fatbin_lengths_are_checked(void **state)
{
	struct tally_buffer b = make_fatbin();

	set64(&b, 8, UINT64_MAX - 8);
	fails(&b, "at offset 8: the fatbin says");
	set64(&b, 8, b.size - 16);
	b.data[16 + 4] = 63; /* header smaller than an entry's */
	fails(&b, "fatbin entry 0 says");
	b.data[16 + 4] = 64;
	memset(b.data + 16 + 8, 0xff, 4);
	fails(&b, "at offset 16: fatbin entry 0 says 64 + 4294967295 bytes");
	tally_buffer_free(&b);
}

static void decompression_is_exact(void **state)
{
	struct tally_buffer b = make_fatbin();
	size_t second = 16 + 64 + (strlen(ptx) + 7) / 8 * 8;

	set64(&b, second + 56, strlen(ptx) + 1);
	fails(&b, "entry 1 at offset 0: damaged");
	set64(&b, second + 56, strlen(ptx) - 1);
	fails(&b, "entry 1 at offset 0: damaged");
	set64(&b, second + 56, (uint64_t)1 << 40);
	fails(&b, "more than 1 GiB");
	set64(&b, second + 56, 1 << 20);
	fails(&b, "cannot become");
	tally_buffer_free(&b);
}

static void bundles_nest_and_name_their_chip(void **state)
{
	struct tally_buffer fat = make_fatbin(), b, c;
	struct tally_images images;
	struct tally_error error;

	b = make_bundle("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", "BC\xC0\xDE    ", 8);
	assert_true(read_buffer(&b, &images, &error));
	assert_int_equal(images.count, 1);
	assert_int_equal(images.image[0].kind, TALLY_IMAGE_BITCODE);
	assert_string_equal(images.image[0].arch, "gfx90a:xnack+");
	tally_images_free(&images);
	for (unsigned version = 1; version <= 3; version++)
		for (unsigned method = 0; method < 2; method++) {
			c = make_compressed(version, method, &b);
			assert_true(read_buffer(&c, &images, &error));
			assert_int_equal(images.count, 1);
			assert_int_equal(images.image[0].size, 8);
			tally_images_free(&images);
			tally_buffer_free(&c);
		}
	tally_buffer_free(&b);
	b = make_bundle("cuda-nvptx64-nvidia-cuda--", fat.data, fat.size);
	assert_true(read_buffer(&b, &images, &error));
	assert_int_equal(images.count, 4);
	tally_images_free(&images);
	tally_buffer_free(&b);
	tally_buffer_free(&fat);
}

static void bundle_bounds_are_checked(void **state)
{
	struct tally_buffer b = make_bundle("hip-amdgcn-amd-amdhsa--gfx90a", "BC\xC0\xDE", 4);

	set64(&b, 24, UINT64_MAX / 24 + 2);
	fails(&b, "entries, more than fit");
	set64(&b, 24, 2);
	set64(&b, 32 + 24 + 27, UINT64_MAX - 3);
	fails(&b, "bundle entry hip-amdgcn-amd-amdhsa--gfx90a says 4 bytes");
	tally_buffer_free(&b);
}

static void compressed_bundle_of_the_future_is_refused(void **state)
{
	struct tally_buffer b = {0};

	tally_buffer_append(&b, "CCOB\x09\0\x01\0", 8);
	put_zeros(&b, 40);
	fails(&b, "version 9, method 1");
	tally_buffer_free(&b);
}

static void nesting_has_an_end(void **state)
{
	struct tally_buffer b = make_bundle("hip-a--b", "BC\xC0\xDE", 4);

	for (int i = 0; i < 8; i++) {
		struct tally_buffer outer = make_bundle("hip-a--b", b.data, b.size);

		tally_buffer_free(&b);
		b = outer;
	}
	fails(&b, "nested more than");
	tally_buffer_free(&b);
}

static void bare_files_are_told_by_their_first_word(void **state)
{
	static const struct {
		const char *text;
		enum tally_image_kind kind;
	} files[] = {
		{ptx, TALLY_IMAGE_PTX},
		{"/* c */ .version 7.0\n.target sm_90a, debug", TALLY_IMAGE_PTX},
		{"; ModuleID = 'x'\nsource_filename = \"x\"\n", TALLY_IMAGE_IR},
		{"define void @f() {\n", TALLY_IMAGE_IR},
		{"@g = global i32 0", TALLY_IMAGE_IR},
	};
	struct tally_images images;
	struct tally_error error = {0};
	struct tally_buffer b = {0};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		assert_true(tally_container_read("t", files[i].text, strlen(files[i].text), &images,
						 &error));
		assert_int_equal(images.count, 1);
		assert_int_equal(images.image[0].kind, files[i].kind);
		if (i == 1)
			assert_string_equal(images.image[0].arch, "sm_90a");
		tally_images_free(&images);
	}
	tally_buffer_print(&b, "hello");
	fails(&b, "neither PTX");
	tally_buffer_free(&b);
	tally_buffer_append(&b, "/*", 2);
	fails(&b, "neither PTX");
	tally_buffer_free(&b);
	fails(&b, "the file is empty");
	put_zeros(&b, 64);
	fails(&b, "there is no device code in it");
	tally_buffer_free(&b);
}

static void wrapped_bitcode_is_unwrapped(void **state)
{
	struct tally_buffer b = {0};
	struct tally_images images;
	struct tally_error error;

	put(&b, 0x0B17C0DE, 4);
	put(&b, 0, 4);
	put(&b, 20, 4);
	put(&b, 8, 4);
	put(&b, 0, 4);
	tally_buffer_append(&b,
			    "BC\xC0\xDE"
			    "1234",
			    8);
	assert_true(read_buffer(&b, &images, &error));
	assert_int_equal(images.image[0].size, 8);
	assert_memory_equal(images.image[0].data, "BC\xC0\xDE", 4);
	tally_images_free(&images);
	b.data[12] = 9;
	fails(&b, "the bitcode wrapper says 9 bytes at 20, but there are 28");
	tally_buffer_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fatbin_gives_every_entry_exactly),
		cmocka_unit_test(fatbin_lengths_are_checked),
		cmocka_unit_test(decompression_is_exact),
		cmocka_unit_test(bundles_nest_and_name_their_chip),
		cmocka_unit_test(bundle_bounds_are_checked),
		cmocka_unit_test(compressed_bundle_of_the_future_is_refused),
		cmocka_unit_test(nesting_has_an_end),
		cmocka_unit_test(bare_files_are_told_by_their_first_word),
		cmocka_unit_test(wrapped_bitcode_is_unwrapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
