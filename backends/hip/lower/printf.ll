; SPDX-License-Identifier: Apache-2.0
; tally.printf over HIP's host calls (__ockl_printf_*, in ockl.bc): the format, then each argument by
; itself as 64 bits or as a string, then the end, at which HIP's runtime prints. The format is read
; here, as it is at run time: its conversions say where the packed arguments lie (CUDA's vprintf:
; natural alignment, float promoted to double). The result is CUDA's: how many arguments there were.

declare i64 @__ockl_printf_begin(i64)
declare i64 @__ockl_printf_append_string_n(i64, ptr, i64, i32)
declare i64 @__ockl_printf_append_args(i64, i32, i64, i64, i64, i64, i64, i64, i64, i32)

; Bytes of a text with its NUL.
define i64 @tally.amd.text.size(ptr %text) {
entry:
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %k1, %look ]
  %at = getelementptr i8, ptr %text, i64 %k
  %c = load i8, ptr %at, align 1
  %k1 = add i64 %k, 1
  %end = icmp eq i8 %c, 0
  br i1 %end, label %done, label %look
done:
  ret i64 %k1
}

define i64 @tally.amd.print.string(i64 %stream, ptr %text) {
entry:
  %none = icmp eq ptr %text, null
  br i1 %none, label %append, label %measure
measure:
  %some = call i64 @tally.amd.text.size(ptr %text)
  br label %append
append:
  %size = phi i64 [ 0, %entry ], [ %some, %measure ]
  %r = call i64 @__ockl_printf_append_string_n(i64 %stream, ptr %text, i64 %size, i32 0)
  ret i64 %r
}

define i32 @tally.printf(ptr %format, ptr %arguments) {
entry:
  %none = icmp eq ptr %format, null
  br i1 %none, label %bad, label %begin
bad:
  ret i32 -1
begin:
  %stream = call i64 @__ockl_printf_begin(i64 0)
  %told = call i64 @tally.amd.print.string(i64 %stream, ptr %format)
  br label %look

look:
  %p = phi ptr [ %format, %begin ], [ %next, %step ]
  %d = phi i64 [ %told, %begin ], [ %d1, %step ]
  %offset = phi i64 [ 0, %begin ], [ %offset1, %step ]
  %count = phi i32 [ 0, %begin ], [ %count1, %step ]
  %inside = phi i1 [ false, %begin ], [ %inside1, %step ]
  %wide = phi i1 [ false, %begin ], [ %wide1, %step ]
  %c = load i8, ptr %p, align 1
  %next = getelementptr i8, ptr %p, i64 1
  %end = icmp eq i8 %c, 0
  br i1 %end, label %finish, label %char
char:
  br i1 %inside, label %conversion, label %plain
plain:
  %percent = icmp eq i8 %c, 37
  br label %step

conversion:
  switch i8 %c, label %over [
    i8 32, label %on    ; space
    i8 35, label %on    ; #
    i8 43, label %on    ; +
    i8 45, label %on    ; -
    i8 46, label %on    ; .
    i8 48, label %on    ; 0 to 9
    i8 49, label %on
    i8 50, label %on
    i8 51, label %on
    i8 52, label %on
    i8 53, label %on
    i8 54, label %on
    i8 55, label %on
    i8 56, label %on
    i8 57, label %on
    i8 104, label %on   ; h
    i8 76, label %long  ; L
    i8 106, label %long ; j
    i8 108, label %long ; l
    i8 113, label %long ; q
    i8 116, label %long ; t
    i8 122, label %long ; z
    i8 42, label %star  ; * takes an int of its own
    i8 88, label %whole ; X
    i8 99, label %whole ; c
    i8 100, label %whole
    i8 105, label %whole
    i8 111, label %whole
    i8 117, label %whole
    i8 120, label %whole
    i8 115, label %string
    i8 112, label %eight ; p
    i8 65, label %eight ; A E F G, a e f g
    i8 69, label %eight
    i8 70, label %eight
    i8 71, label %eight
    i8 97, label %eight
    i8 101, label %eight
    i8 102, label %eight
    i8 103, label %eight
  ]
on:
  br label %step
long:
  br label %step
over:
  br label %step

star:
  br label %four
whole:
  br i1 %wide, label %eight, label %four
four:
  %goes.on = phi i1 [ true, %star ], [ false, %whole ]
  %up4 = add i64 %offset, 3
  %at4 = and i64 %up4, -4
  %from4 = getelementptr i8, ptr %arguments, i64 %at4
  %word = load i32, ptr %from4, align 4
  %word64 = zext i32 %word to i64
  %after4 = add i64 %at4, 4
  br label %append
eight:
  %up8 = add i64 %offset, 7
  %at8 = and i64 %up8, -8
  %from8 = getelementptr i8, ptr %arguments, i64 %at8
  %long.word = load i64, ptr %from8, align 8
  %after8 = add i64 %at8, 8
  br label %append
append:
  %value = phi i64 [ %word64, %four ], [ %long.word, %eight ]
  %after = phi i64 [ %after4, %four ], [ %after8, %eight ]
  %inside.still = phi i1 [ %goes.on, %four ], [ false, %eight ]
  %d.value = call i64 @__ockl_printf_append_args(i64 %d, i32 1, i64 %value, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0, i32 0)
  %count.value = add i32 %count, 1
  br label %step
string:
  %ups = add i64 %offset, 7
  %ats = and i64 %ups, -8
  %froms = getelementptr i8, ptr %arguments, i64 %ats
  %text = load ptr, ptr %froms, align 8
  %afters = add i64 %ats, 8
  %d.string = call i64 @tally.amd.print.string(i64 %d, ptr %text)
  %count.string = add i32 %count, 1
  br label %step

step:
  %d1 = phi i64 [ %d, %plain ], [ %d, %on ], [ %d, %long ], [ %d, %over ], [ %d.value, %append ], [ %d.string, %string ]
  %offset1 = phi i64 [ %offset, %plain ], [ %offset, %on ], [ %offset, %long ], [ %offset, %over ], [ %after, %append ], [ %afters, %string ]
  %count1 = phi i32 [ %count, %plain ], [ %count, %on ], [ %count, %long ], [ %count, %over ], [ %count.value, %append ], [ %count.string, %string ]
  %inside1 = phi i1 [ %percent, %plain ], [ true, %on ], [ true, %long ], [ false, %over ], [ %inside.still, %append ], [ false, %string ]
  %wide1 = phi i1 [ false, %plain ], [ %wide, %on ], [ true, %long ], [ false, %over ], [ false, %append ], [ false, %string ]
  br label %look

finish:
  %printed = call i64 @__ockl_printf_append_args(i64 %d, i32 0, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0, i32 1)
  %result = trunc i64 %printed to i32
  %failed = icmp slt i32 %result, 0
  %r = select i1 %failed, i32 -2, i32 %count
  ret i32 %r
}
