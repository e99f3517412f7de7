/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym, exported without a version: it serves references to both of glibc's (2.2.5 and 2.34).
 * What is not ours to answer goes on by a jump, so that the next dlsym sees the program's own
 * return address: RTLD_NEXT and RTLD_DEFAULT mean "seen from the caller".
 */
	.text
	.globl	dlsym
	.type	dlsym, @function
dlsym:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	tally_dlsym_answer
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	/* struct tally_answer: rax the address, rdx the dlsym to go on with or 0 */
	testq	%rdx, %rdx
	jnz	1f
	ret
1:	jmp	*%rdx
	.cfi_endproc
	.size	dlsym, .-dlsym
	.section .note.GNU-stack, "", @progbits
