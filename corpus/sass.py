# SPDX-License-Identifier: Apache-2.0
"""sass.py CUBIN...: what the machine code of kernels costs, without a GPU and without a disassembler. A line each of kernel:
instructions, those of the innermost loops, how many a thread issues and how long a warp takes alone (both as if each loop ran 8
times), accesses to memory by width, all and those of the innermost loops. roundtrip.py --static compares that with the original's."""

import math
import re
import struct
import sys
from collections import Counter
from pathlib import Path

# The low 12 bits of an instruction of 16 bytes, sm_70 and later.
NOP, BRA = 0x918, 0x947
ENDS = {0x94D, 0x950, 0x949, 0x94C, 0x95B}  # EXIT, RET, BRX, JMX, KILL
# Accesses whose width is in bits 73 to 75.
MEMORY = {0x980: "ld", 0x981: "ldg", 0x983: "ldl", 0x984: "lds", 0x385: "st", 0x985: "st", 0x386: "stg", 0x986: "stg", 0x387: "stl", 0x388: "sts",
          0x988: "sts", 0xFAE: "ldgsts"}
WIDTHS = (8, 8, 16, 16, 32, 64, 128, 128)
ROUNDS = 8  # so often a loop is taken to run
DEEPEST = 4  # loops inside of more than this count no more
# Cycles until the result of an instruction without a fixed time is there: of global and local memory, and all others.
FAR = {0x980, 0x981, 0x983, 0x3A8, 0x3A9, 0x9A8, 0x9A9}
LONG, SHORT = 500, 30
PARTS = 4  # of an SM: each issues one instruction a cycle
REGISTERS, WARPS, BLOCKS, SHARED = 65536, 64, 32, {80: 163 << 10, 90: 227 << 10}


def texts(cubin):
    """Function: its instructions as pairs of words, of a 64-bit ELF file with a section for each; and the chip."""
    data = Path(cubin).read_bytes()
    table, size, count, names = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HHH", data, 58)
    flags = struct.unpack_from("<I", data, 48)[0]
    chip = flags >> 8 & 0xFF if flags >> 24 else flags & 0xFF
    headers = [struct.unpack_from("<IIQQQQ", data, table + k * size) for k in range(count)]
    strings = headers[names][4]
    found = {}
    for name, _, _, _, offset, length in headers:
        text = data[strings + name:data.index(b"\0", strings + name)].decode()
        if text.startswith(".text."):
            words = struct.unpack_from(f"<{length // 8}Q", data, offset)
            found[text[6:]] = list(zip(words[::2], words[1::2]))
    return found, chip


def goes_to(word, at, chip):
    """Which instruction a relative branch goes to."""
    low, high = word
    if chip >= 90:
        units, bits = (low >> 16 & 0xFF) | (low >> 34) << 8 | (high & 0x3FFFF) << 38, 56
    else:
        units, bits = low >> 34 | (high & 0x3FFFF) << 30, 48
    return at + 1 + (units - (1 << bits) if units >> (bits - 1) else units) // 4


def graph(words, chip):
    """First instruction of a block: (end, next blocks). Where only a warp that is not whole goes (BRA.DIV) is left out."""
    jumps, heads = {}, {0}
    for at, word in enumerate(words):
        code, always = word[0] & 0xFFF, word[0] >> 12 & 15 == 7
        if code == BRA:
            where, condition = goes_to(word, at, chip), word[1] >> 23 & 31
            jumps[at] = [at + 1] if condition >> 4 else [where] if always and condition == 7 else [at + 1, where]
        elif code in ENDS:
            jumps[at] = [] if always else [at + 1]
        if at in jumps:
            heads |= {at + 1, *jumps[at]}
    order = sorted(h for h in heads if 0 <= h < len(words))
    blocks = {}
    for head, end in zip(order, order[1:] + [len(words)]):
        blocks[head] = (end, [n for n in jumps.get(end - 1, [end]) if 0 <= n < len(words)])
    return blocks


def reverse_postorder(blocks):
    order, seen, stack = [], {0}, [(0, iter(blocks[0][1]))]
    while stack:
        head, rest = stack[-1]
        following = next((n for n in rest if n not in seen), None)
        if following is None:
            order.append(stack.pop()[0])
        else:
            seen.add(following)
            stack.append((following, iter(blocks[following][1])))
    return order[::-1]


def dominators(order, before):
    """Block: the one right above it in the tree of dominators (Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm)."""
    rank = {head: k for k, head in enumerate(order)}
    above, changed = {0: 0}, True
    while changed:
        changed = False
        for head in order[1:]:
            known = [p for p in before[head] if p in above]
            new = known[0]
            for other in known[1:]:
                while new != other:
                    new, other = (above[new], other) if rank[new] > rank[other] else (new, above[other])
            if above.get(head) != new:
                above[head], changed = new, True
    return above


def loops(blocks):
    """Head of a loop: its blocks. And all blocks that are reached."""
    order = reverse_postorder(blocks)
    before = {head: [] for head in order}
    for head in order:
        for n in blocks[head][1]:
            before[n].append(head)
    above = dominators(order, before)

    def dominates(a, b):
        while b != a and b:
            b = above[b]
        return a == b
    found = {}
    for head in order:
        for source in before[head]:
            if dominates(head, source):
                body, work = found.setdefault(head, {head}), [source]
                while work:
                    block = work.pop()
                    if block not in body:
                        body.add(block)
                        work += before[block]
    return found, sorted(order)


def alone(words, order, blocks, weight):
    """The cycles that a warp takes alone. ptxas writes into each instruction how long it holds up the next (bits 105 to 108), which
    of six counters it sets until its result is there (110 to 112) or its operands were read (113 to 115), and for which it waits
    (116 to 121). Loads that stand one behind another's use, or late, show here and in no count of instructions."""
    now, until, total = 0, [0] * 8, 0
    for head in order:
        began = now
        for low, high in words[head:blocks[head][0]]:
            now = max([now] + [until[k] for k in range(6) if high >> 52 + k & 1])
            for counter, wait in ((high >> 46 & 7, LONG if low & 0xFFF in FAR else SHORT), (high >> 49 & 7, SHORT // 2)):
                until[counter] = max(until[counter], now + wait)
            now += max(high >> 41 & 15, 1)
        total += (now - began) * weight[head]
    return total


def accesses(words):
    return dict(sorted(Counter(f"{MEMORY[low & 0xFFF]}.{WIDTHS[high >> 9 & 7]}" for low, high in words if low & 0xFFF in MEMORY).items()))


def cost(words, chip):
    blocks = graph(words, chip)
    found, order = loops(blocks)
    size = {head: sum(low & 0xFFF != NOP for low, _ in words[head:blocks[head][0]]) for head in order}
    weight = {head: ROUNDS ** min(sum(head in body for body in found.values()), DEEPEST) for head in order}
    inner = sorted({b for head, body in found.items() if not any(o != head and o in body for o in found) for b in body})
    return {"sass": sum(low & 0xFFF != NOP for low, _ in words), "inner": sum(size[b] for b in inner), "issued": sum(size[h] * weight[h] for h in order),
            "alone": alone(words, order, blocks, weight), "memory": accesses(words), "hot": accesses([w for b in inner for w in words[b:blocks[b][0]]])}


def costs(cubin):
    """Function: what it costs."""
    found, chip = texts(cubin)
    return {name: cost(words, chip) for name, words in found.items()}


def block_sizes(ptx):
    """Kernel: threads of a block as its .maxntid or .reqntid says; without one 256."""
    found = {}
    for name, head in re.findall(r"\.entry\s+([\w$]+)\s*\(.*?\)\s*([^{]*)\{", ptx, re.S):
        sizes = re.search(r"\.(?:max|req)ntid\s+([\d, ]+)", head)
        found[name] = math.prod(int(n) for n in sizes[1].split(",")) if sizes else 256
    return found


def resident(used, threads, chip):
    """Blocks that an SM holds at once: registers (in eights), warps, shared memory (1 KiB of a block are the system's)."""
    warps = -(-threads // 32)
    return max(1, min(REGISTERS // (max(-(-used["registers"] // 8), 1) * 8 * 32 * warps), WARPS // warps, BLOCKS, SHARED.get(chip, SHARED[90]) // (used["shared"] + 1024)))


def estimate(code, used, threads, chip):
    """Cycles a warp, of an SM full of blocks: it issues all of them in turn, or waits for them where they are too few."""
    return max(code["issued"], code["alone"] / (resident(used, threads, chip) * -(-threads // 32) / PARTS))


def main():
    for cubin in sys.argv[1:]:
        for kernel, code in sorted(costs(cubin).items()):
            print(kernel, *(f"{k}={v}" for k, v in code.items()))


if __name__ == "__main__":
    main()
