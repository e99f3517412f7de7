/* SPDX-License-Identifier: Apache-2.0 */
/* Files put into a program by tally_embed() in CMake (textual IR libraries, mostly). */
#ifndef TALLY_BASE_EMBED_H
#define TALLY_BASE_EMBED_H

/* Declares the file embedded as `symbol`: its first byte, and the byte after its last, which is a
 * NUL, so that a text file reads as a C string. */
#define TALLY_EMBEDDED(symbol) extern const char symbol[], symbol##_end[]

#endif
