#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py [--nvdisasm PROGRAM] (CHIP ORIGINAL PATCHED)...: reads both cubins with a reader of its own, and says where the patched one is not the original plus guards."""
import re
import struct
import subprocess
import sys

NOBITS, NULL, SYMTAB, KERNEL, ALLOC = 8, 0, 2, 0x10, 2
KPARAM, KPARAM_V2, BANK, BANK_SIZE, EXITS, REGISTERS, BARRIERS, USES_Z = 0x17, 0x45, 0x0A, 0x19, 0x1C, 0x2F, 0x4C, 0x04


class Section:
    pass


class Elf:
    def __init__(self, path):
        self.bytes = data = open(path, "rb").read()
        (self.ident, self.type, self.machine, _, _, self.phoff, self.shoff, self.flags, _, self.phentsize, phnum, _, shnum,
         names) = struct.unpack_from("<16sHHIQQQIHHHHHH", data)
        self.sections = []
        for k in range(shnum):
            s = Section()
            (s.name, s.type, s.flags, _, s.offset, s.size, s.link, s.info, s.align, s.entry) = struct.unpack_from("<IIQQQQIIQQ", data, self.shoff + 64 * k)
            assert s.type in (NULL, NOBITS) or s.offset + s.size <= len(data), f"section {k} is not in the file"
            s.data = b"" if s.type in (NULL, NOBITS) else data[s.offset:s.offset + s.size]
            self.sections.append(s)
        table = self.sections[names].data
        for s in self.sections:
            s.name = table[s.name:table.index(b"\0", s.name)].decode()
        self.by_name = {s.name: s for s in self.sections}
        symbols = next(s for s in self.sections if s.type == SYMTAB)
        strings = self.sections[symbols.link].data
        self.symbols = []
        for k in range(0, symbols.size, 24):
            name, info, other, section, value, size = struct.unpack_from("<IBBHQQ", symbols.data, k)
            self.symbols.append((strings[name:strings.index(b"\0", name)].decode(), info, other, section, value, size))
        self.programs = [struct.unpack_from("<IIQQQQQQ", data, self.phoff + 56 * k) for k in range(phnum)]

    def attributes(self, name):
        data, at, found = self.by_name[name].data, 0, []
        while at < len(data):
            form, what, size = struct.unpack_from("<BBH", data, at)
            assert 1 <= form <= 4, f"{name}: attribute of form {form} at {at}"
            if form == 4:
                found.append((form, what, data[at + 4:at + 4 + size]))
                at += size
            else:
                found.append((form, what, data[at + 2:at + 4]))
            at += 4
        assert at == len(data), f"{name}: the last attribute is cut off"
        return found

    def registers(self):
        return {struct.unpack("<II", v)[0]: struct.unpack("<II", v)[1] for _, what, v in self.attributes(".nv.info") if what == REGISTERS}


def target(chip, word, at):
    """Where a relative branch goes."""
    low, high = word
    if chip >= 90:
        units, bits = (low >> 16 & 0xFF) | (low >> 34) << 8 | (high & 0x3FFFF) << 38, 56
    else:
        units, bits = low >> 34 | (high & 0x3FFFF) << 30, 48
    return at + 16 + 4 * (units - (1 << bits) if units >> (bits - 1) else units)


def words(data):
    return [struct.unpack_from("<QQ", data, k) for k in range(0, len(data), 16)]


def check_file(a, b):
    assert a.ident == b.ident and a.type == b.type and a.machine == b.machine and a.flags == b.flags
    assert [s.name for s in a.sections] == [s.name for s in b.sections]
    assert [s[:4] for s in a.symbols] == [s[:4] for s in b.symbols]
    ends = 64
    for old, new in sorted(zip(a.sections, b.sections), key=lambda pair: pair[1].offset):
        assert (old.type, old.link, old.align, old.entry, old.info & 0xFFFFFF) == (new.type, new.link, new.align, new.entry, new.info & 0xFFFFFF), new.name
        assert old.flags & ~(0x7F << 20) == new.flags & ~(0x7F << 20), new.name
        if new.data:
            assert new.offset % max(new.align, 1) == 0 or old.offset % max(old.align, 1), f"{new.name} is at {new.offset:#x}"
            alias = new.offset < ends and any(s is not new and (s.offset, s.size) == (new.offset, new.size) for s in b.sections)
            assert new.offset >= ends or alias, f"{new.name} overlaps"
            ends = max(ends, new.offset + new.size)
    for k, (old, new) in enumerate(zip(a.programs, b.programs)):
        assert old[:2] == new[:2] and old[7] == new[7], f"program header {k}"
        assert old[6] - old[5] == new[6] - new[5], f"program header {k}: what has no bytes"
        if old[2] == a.phoff:
            assert new[2] == b.phoff and new[5] == old[5]
            continue

        def inside(elf, p):
            return [s.name for s in elf.sections if s.flags & ALLOC and s.size and s.type != NOBITS and p[2] <= s.offset and s.offset + s.size <= p[2] + p[5]]
        assert inside(a, old) == inside(b, new), f"program header {k} covers {inside(b, new)}"


def check_parameter(name, old, new):
    """The launch parameter: behind the others, described as they are. Its place in the bank."""
    def parameters(of):
        return [v for _, what, v in of if what in (KPARAM, KPARAM_V2)]
    added = [v for v in parameters(new) if v not in parameters(old)]
    assert len(added) == 1 and len(parameters(new)) == len(parameters(old)) + 1, f"{name}: {len(added)} new parameters"
    before = next((struct.unpack("<H", v)[0] for _, what, v in old if what == BANK_SIZE), 0)
    zero, ordinal, offset, size = struct.unpack("<IHHI", added[0])
    size = size >> 18 if any(what == KPARAM for _, what, v in new if v == added[0]) else size
    assert (zero, ordinal, offset, size) == (0, len(parameters(old)), (before + 7) // 8 * 8, 16), f"{name}: parameter {ordinal} at {offset}, {size} bytes"
    banks = [v for _, what, v in new if what == BANK]
    assert len(banks) == 1 and struct.unpack("<IHH", banks[0])[2] == offset + 16, f"{name}: PARAM_CBANK"
    assert [struct.unpack("<H", v)[0] for _, what, v in new if what == BANK_SIZE] == [offset + 16], f"{name}: CBANK_PARAM_SIZE"
    return struct.unpack("<IHH", banks[0])[1], offset


def check_code(chip, name, old, new, listed):
    """What was there, and a guard behind it. Its words; where it begins."""
    before, after = words(old), words(new)
    n = len(before)
    assert after[1:n] == before[1:], f"{name}: its code has changed"
    assert after[0][0] & 0xFFF == 0x947 and target(chip, after[0], 0) == len(old), f"{name}: does not begin with a branch to the guard"
    guard = after[n:]
    back = [k for k, w in enumerate(guard) if w[0] & 0xFFF == 0x947 and target(chip, w, len(old) + 16 * k) == 16]
    assert len(back) == 1, f"{name}: {len(back)} branches back"
    assert guard[back[0] - 1] == before[0], f"{name}: the first instruction is not executed"
    assert guard[back[0] - 2][0] & 0xFFF == 0x918 and guard[back[0] - 2][1] >> 52 & 0x3F == 0x3F, f"{name}: waits for nothing"
    for k, w in enumerate(guard):
        if w[0] & 0xFFF in (0x947, 0x547) and k != back[0]:
            assert len(old) <= target(chip, w, len(old) + 16 * k) < len(new), f"{name}: the guard branches out"
    assert all(w[0] & 0xFFF != 0x801 for w in guard), f"{name}: a marker is left"
    exits = [len(old) + 16 * k for k, w in enumerate(guard) if w[0] & 0xFFF == 0x94D]
    assert [e for e in listed if e >= len(old)] == exits and len(exits) >= 2, f"{name}: exits"


def disassemble(program, path, name):
    """Lines of one kernel, as (offset, text)."""
    text = subprocess.run([program, "-c", path], capture_output=True, text=True, check=True).stdout
    part = text.split(f"\n.text.{name}:\n", 1)[1].split("\n.section", 1)[0].split("\t.section", 1)[0]
    labels, lines = {}, []
    for line in part.splitlines():
        found = re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line)
        label = re.match(r"(\.L_x_\d+):", line)
        if label:
            labels[label[1]] = None
        if found:
            offset = int(found[1], 16)
            labels = {k: offset if v is None else v for k, v in labels.items()}
            lines.append((offset, " ".join(found[2].split())))
    return labels, lines


def check_text(program, original, patched, name, length, bank, offset):
    _, before = disassemble(program, original, name)
    labels, lines = disassemble(program, patched, name)

    def goes(text):
        label = re.search(r"\((\.L_x_\d+)\)", text)
        return labels.get(label[1]) if label and text.startswith("BRA") else None
    assert lines[0][0] == 0 and goes(lines[0][1]) == length, f"{name}: begins with {lines[0][1]}"
    back = [k for k, (at, text) in enumerate(lines) if at >= length and goes(text) == 16]
    assert len(back) == 1 and lines[back[0] - 1][1] == before[0][1], f"{name}: no way back"
    for at, text in lines:
        for bank_of, place in re.findall(r"c\[0x(\w)\]\[0x(\w+)\]", text):
            if at >= length and (bank_of != "0" or int(place, 16) >= bank):
                assert bank_of == "0" and bank + offset <= int(place, 16) < bank + offset + 16, f"{name}: the guard reads {text}"
    assert sum("SR_TID" in text for at, text in lines if at >= length) == 3 and any("BAR.RED" in text for at, text in lines if at >= length), name


def check_kernel(chip, a, b, index, program, paths):
    name, _, _, section, value, size = a.symbols[index]
    if a.by_name[f".text.{name}"].data == b.by_name[f".text.{name}"].data:
        assert a.by_name[f".nv.info.{name}"].data == b.by_name[f".nv.info.{name}"].data
        assert a.by_name[f".nv.constant0.{name}"].data == b.by_name[f".nv.constant0.{name}"].data
        return 0
    old, new = a.attributes(f".nv.info.{name}"), b.attributes(f".nv.info.{name}")
    code = b.by_name[f".text.{name}"]
    assert b.symbols[index][3:] == (section, 0, code.size) and code.size % 128 == 0, f"{name}: symbol"
    bank, offset = check_parameter(name, old, new)
    constants, had = b.by_name[f".nv.constant0.{name}"].data, a.by_name[f".nv.constant0.{name}"].data
    assert len(constants) == bank + offset + 16 and constants.startswith(had) and not any(constants[len(had):]), f"{name}: constants"
    listed = next(struct.unpack(f"<{len(v) // 4}I", v) for _, what, v in new if what == EXITS)
    check_code(chip, name, a.by_name[f".text.{name}"].data, code.data, listed)
    changed = (KPARAM, KPARAM_V2, BANK, BANK_SIZE, EXITS, BARRIERS, USES_Z)
    assert [x for x in old if x[1] not in changed] == [x for x in new if x[1] not in changed], f"{name}: other attributes"
    barriers = next((v[0] for _, what, v in new if what == BARRIERS), code.flags >> 20 & 0x7F)
    assert barriers >= 1 and (chip >= 90 or USES_Z in [what for _, what, _ in new]), f"{name}: barriers, z"
    assert b.registers()[index] >= max(a.registers()[index], 11), f"{name}: registers"
    assert not code.info >> 24 or code.info >> 24 == b.registers()[index], f"{name}: registers twice"
    if program:
        check_text(program, *paths, name, len(a.by_name[f".text.{name}"].data), bank, offset)
    return 1


def check(chip, original, patched, program):
    a, b = Elf(original), Elf(patched)
    check_file(a, b)
    kernels = [k for k, s in enumerate(a.symbols) if s[1] & 15 == 2 and s[2] & KERNEL]
    own = {f"{prefix}{a.symbols[k][0]}" for k in kernels for prefix in (".text.", ".nv.info.", ".nv.constant0.")}
    for old, new in zip(a.sections, b.sections):
        assert old.name in own or old.type == SYMTAB or old.name == ".nv.info" or (old.data, old.size) == (new.data, new.size), f"{new.name} has changed"
    return sum(check_kernel(chip, a, b, k, program, (original, patched)) for k in kernels)


arguments, nvdisasm, total = sys.argv[1:], None, 0
if arguments[:1] == ["--nvdisasm"]:
    nvdisasm, arguments = arguments[1], arguments[2:]
for k in range(0, len(arguments), 3):
    try:
        total += check(int(arguments[k]), arguments[k + 1], arguments[k + 2], nvdisasm)
    except AssertionError as wrong:
        sys.exit(f"check: {arguments[k + 2]}: {wrong}")
print(total)
