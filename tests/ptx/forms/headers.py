# SPDX-License-Identifier: Apache-2.0
"""Takes the PTX out of CUDA headers: each inline assembly statement that nvcc's preprocessor leaves
for an architecture, as a statement of ptx_forms with registers for its operands.

headers.py NVCC ARCH [-I FOLDER ...] HEADER ... prints them, each once; what cannot be read (operands
whose type the header leaves open) is counted on stderr.
"""
import re
import subprocess
import sys

REGISTER = {"r": "r", "l": "d", "h": "h", "f": "f", "d": "e", "q": "q"}
BARE = {"exit", "trap", "brkpt", "ret"}  # instructions; any other single word names a C function
STRING = re.compile(r'\s*"((?:[^"\\]|\\.)*)"')


def preprocess(nvcc, arch, options, headers):
    text = "".join(f"#include <{h}>\n" for h in headers)
    number = re.search(r"\d+", arch)[0]
    device = ["-U__CUDA_ARCH__", f"-D__CUDA_ARCH__={number}0", f"-D__CUDA_ARCH_FEAT_SM{number}_ALL",
              f"-D__CUDA_ARCH_SPECIFIC__={number}0", f"-D__CUDA_ARCH_FAMILY_SPECIFIC__={number}0"]
    done = subprocess.run([nvcc, "-std=c++17", "-E", "-x", "cu", *device, *options, "-"],
                          input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"headers.py: {done.stderr.strip()[:2000]}")
    return re.sub(r'^#.*$', "", done.stdout, flags=re.M)


def statements(text):
    """The bodies of asm(...), brackets and strings minded."""
    for m in re.finditer(r"\b(?:asm|__asm__|__asm)\s*(?:(?:volatile|__volatile__)\s*)?\(", text):
        depth, i, start = 1, m.end(), m.end()
        while depth and i < len(text):
            if text[i] == '"':
                i = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, i).end()
                continue
            depth += {"(": 1, ")": -1}.get(text[i], 0)
            i += 1
        yield text[start:i - 1]


def strings(text, at):
    """Adjacent string literals from `at` on, joined; where they end."""
    joined = ""
    while m := STRING.match(text, at):
        joined += m.group(1)
        at = m.end()
    return joined.encode().decode("unicode_escape"), at


def constraints(text):
    """The strings of "=r"(x), "l"(y) at depth 0, by colons."""
    parts, depth, i = [[]], 0, 0
    while i < len(text):
        c = text[i]
        if c == '"':
            m = STRING.match(text, i)
            if not depth:
                parts[-1].append(m.group(1))
            i = m.end()
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(c, 0)
        if c == ":" and not depth and text[i:i + 2] == "::":
            parts += [[], []]
            i += 2
            continue
        if c == ":" and not depth:
            parts.append([])
        i += 1
    return parts[1:]


def operand_names(outputs, inputs, constant):
    names, used = [], {}
    for c in outputs + inputs:
        letter = c.strip("=+&")
        if letter == "n":
            names.append(str(constant))
        elif letter in REGISTER:
            kind = REGISTER[letter]
            names.append(f"%{kind}{used.setdefault(kind, 0)}")
            used[kind] += 1
        elif letter.isdigit():
            names.append(names[int(letter)])
        else:
            return None
    return names


def form(body, constant):
    text, at = strings(body, 0)
    parts = constraints(body[at:])
    outputs, inputs = (parts + [[], []])[:2]
    names = operand_names(outputs, inputs, constant)
    if not text.strip() or names is None:
        return None
    try:
        text = re.sub(r"%(\d+)|%%", lambda m: names[int(m[1])] if m[1] else "%", text)
    except IndexError:
        return None
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text)
    text = " ".join(text.replace("\t", " ").split()).rstrip("; ")
    return None if re.fullmatch(r"\w*", text) and text not in BARE else text


def main():
    nvcc, arch, *rest = sys.argv[1:]
    options = [o for i, a in enumerate(rest) for o in ([a, rest[i + 1]] if a == "-I" else [])]
    options += [a for a in rest if a.startswith("-D")]
    headers = [a for i, a in enumerate(rest)
               if not a.startswith("-") and (i == 0 or rest[i - 1] != "-I")]
    seen, unread = {}, 0
    for body in statements(preprocess(nvcc, arch, options, headers)):
        if not body.lstrip().startswith('"'):
            continue
        forms = [form(body, constant) for constant in (1, 0, 16, 128)]
        unread += forms[0] is None
        seen.update(dict.fromkeys(f for f in forms if f))
    for f in seen:
        print(f)
    print(f"{len(seen)} statements, {unread} not read", file=sys.stderr)


main()
