# SPDX-License-Identifier: Apache-2.0
"""compile.py FOLDER [NAME...]: PTX of each Triton kernel and configuration for sm_80 and sm_90, and FOLDER/triton.launches:
how to run them. No GPU is needed; a kernel that a machine cannot have (tensor descriptors before sm_90) is left out there."""

import os
import re
import sys

import kernels
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

N = 1 << 20
# kernel: signature, arguments of a launch (bench/gpu/roundtrip.c), grid, machines, configurations (constants, warps, stages)
CASES = {
    "add": ("*fp32 *fp32 *fp32 i32", "f32[4194304]:unit f32[4194304]:unit f32[4194304]:zero i32=4194304", "4194304/BLOCK", "80 90",
            [(dict(BLOCK=1024), 4, 1), (dict(BLOCK=256), 2, 1)]),
    "softmax": ("*fp16 *fp16 i32", "f16[8388608]:unit f16[8388608]:zero i32=4000", "2048", "80 90",
                [(dict(BLOCK=4096), 4, 1), (dict(BLOCK=4096), 8, 3)]),
    "layer_norm": ("*fp16 *fp16 *fp16 *fp16 *fp32 *fp32 i32 fp32",
                   "f16[8388608]:unit f16[8388608]:zero f16[4096]:unit f16[4096]:unit f32[2048]:zero f32[2048]:zero i32=4096 f32=1e-5",
                   "2048", "80 90", [(dict(BLOCK=1024), 4, 1), (dict(BLOCK=4096), 8, 1)]),
    "layer_norm_backward": ("*fp16 *fp16 *fp16 *fp16 *fp16 *fp16 *fp32 *fp32 *i32 i32",
                            "", "2048", "80 90", [(dict(GROUP=64, BLOCK=1024), 4, 1)]),
    "cross_entropy": ("*fp16 *i32 *fp32 i32", "f16[16384000]:unit i32[512]:small f32[512]:zero i32=32000", "512", "80 90",
                      [(dict(BLOCK=4096), 4, 1), (dict(BLOCK=8192), 16, 2)]),
    "matmul": ("*fp16 *fp16 *fp16 i32 i32 i32 i32 i32 i32",
               "f16[4194304]:unit f16[4194304]:unit f16[4194304]:zero i32=2048 i32=2048 i32=2048 i32=2048 i32=2048 i32=2048",
               "4194304/BM/BN", "80 90",
               [(dict(BM=128, BN=128, BK=32, GROUP=8), 4, 3), (dict(BM=128, BN=256, BK=64, GROUP=8), 8, 3),
                (dict(BM=64, BN=64, BK=64, GROUP=8), 4, 4), (dict(BM=32, BN=64, BK=32, GROUP=8), 2, 5)]),
    "matmul_tf32": ("*fp32 *fp32 *fp32 i32 i32 i32 i32 i32 i32",
                    "f32[4194304]:unit f32[4194304]:unit f32[4194304]:zero i32=2048 i32=2048 i32=2048 i32=2048 i32=2048 i32=2048",
                    "4194304/BM/BN", "80 90", [(dict(BM=64, BN=128, BK=32, GROUP=8), 4, 3)]),
    "matmul_fp8": ("*fp8e5 *fp8e5 *fp16 i32 i32 i32 i32 i32 i32", "", "4194304/BM/BN", "80 90", [(dict(BM=64, BN=64, BK=64, GROUP=8), 4, 3)]),
    "matmul_descriptors": ("*fp16 *fp16 *fp16 i32 i32 i32",
                           "f16[4194304]:unit f16[4194304]:unit f16[4194304]:zero i32=2048 i32=2048 i32=2048", "4194304/BM/BN", "90",
                           [(dict(BM=128, BN=128, BK=64), 4, 3), (dict(BM=128, BN=256, BK=64), 8, 3)]),
    "matmul_persistent": ("*fp16 *fp16 *fp16 i32 i32 i32",
                          "f16[4194304]:unit f16[4194304]:unit f16[4194304]:zero i32=2048 i32=2048 i32=2048", "132", "90",
                          [(dict(PROGRAMS=132, BM=128, BN=128, BK=64), 8, 3)]),
    "attention": ("*fp16 *fp16 *fp16 *fp16 *fp32 fp32 i32",
                  "f16[4194304]:unit f16[4194304]:unit f16[4194304]:unit f16[4194304]:zero f32[65536]:zero f32=0.125 i32=2048",
                  "2048/BM,32", "80 90",
                  [(dict(D=64, BM=128, BN=64, CAUSAL=True), 4, 3), (dict(D=64, BM=64, BN=64, CAUSAL=False), 4, 2),
                   (dict(D=64, BM=128, BN=128, CAUSAL=False), 8, 2)]),
    "attention_backward": ("*fp16 *fp16 *fp16 *fp16 *fp32 *fp16 *fp16 *fp32 *fp32 fp32 i32",
                           "f16[1048576]:unit f16[1048576]:unit f16[1048576]:unit f16[1048576]:unit f32[1048576]:loose f16[1048576]:zero "
                           "f16[1048576]:zero f32[16384]:unit f32[16384]:unit f32=0.125 i32=1024",
                           "1024/BN,16", "80 90", [(dict(D=64, BM=64, BN=64), 4, 2), (dict(D=64, BM=64, BN=128), 8, 2)]),
    "quantise": ("*fp16 *fp8e4nv *fp32 i32", "f16[4194304]:unit u8[4194304]:zero f32[2048]:zero i32=2048", "2048", "90",
                 [(dict(BLOCK=2048), 4, 1)]),
    "dropout": ("*fp32 *fp32 i32 i32 fp32", "f32[4194304]:unit f32[4194304]:zero i32=4194304 i32=42 f32=0.3", "4194304/BLOCK", "80 90",
                [(dict(BLOCK=1024), 4, 1)]),
    "cumulate": ("*fp32 *fp32 i32", "f32[2097152]:unit f32[2097152]:zero i32=2048", "1024", "80 90", [(dict(BLOCK=2048), 4, 1)]),
    "sort_rows": ("*i32 *i32", "u32[524288]:random u32[524288]:zero", "1024", "80 90", [(dict(BLOCK=512), 4, 1)]),
    "count_bins": ("*i32 *i32 i32", "i32[1048576]:index8 i32[256]:zero i32=1048576", "1048576/BLOCK", "80 90", [(dict(BLOCK=1024), 4, 1)]),
    "embed": ("*i32 *fp16 *fp16", "i32[8192]:index12 f16[4194304]:unit f16[8388608]:zero", "8192", "80 90", [(dict(WIDTH=1024), 4, 1)]),
}
CODE = {"matmul_tf32": "matmul", "matmul_fp8": "matmul"}


def build(name, signature, constants, warps, stages, machine):
    function = getattr(kernels, CODE.get(name, name))
    names = [p for p in function.arg_names if p not in constants]
    types = dict(zip(names, signature.split(), strict=True)) | {p: "constexpr" for p in constants}
    # Pointers and sizes are multiples of 16, as the launcher finds them to be in a real program.
    aligned = {(i,): [["tt.divisibility", 16]] for i, p in enumerate(function.arg_names)
               if p not in constants and (types[p][0] == "*" or types[p] == "i32") and p not in ("seed",)}
    source = ASTSource(function, types, {(function.arg_names.index(p),): v for p, v in constants.items()}, aligned)
    return compile(source, target=GPUTarget("cuda", machine, 32), options={"num_warps": warps, "num_stages": stages})


def main():
    folder, wanted = sys.argv[1], sys.argv[2:]
    launches = []
    os.makedirs(folder, exist_ok=True)
    for name, (signature, arguments, grid, machines, configurations) in CASES.items():
        if wanted and name not in wanted:
            continue
        for machine in map(int, machines.split()):
            for constants, warps, stages in configurations:
                try:
                    built = build(name, signature, constants, warps, stages, machine)
                except Exception as error:  # the reason is what a reader wants
                    print(f"triton: {name} sm_{machine}: {str(error).splitlines()[0] if str(error) else repr(error)}", file=sys.stderr)
                    continue
                tag = "".join(f"_{k.lower()}{int(v)}" for k, v in constants.items())
                file = f"triton_{name}{tag}_w{warps}s{stages}_sm{machine}"
                text = built.asm["ptx"]
                with open(f"{folder}/{file}.ptx", "w") as out:
                    out.write(text)
                meta = built.metadata
                blocks = ",".join(str(eval(part.replace("/", "//"), {}, constants)) for part in grid.split(","))
                scratch = f"u8[{max(meta.global_scratch_size * 4096, 256)}]:scratch u8[256]:scratch"
                if arguments:
                    extra = f" clusters {meta.cluster_dims[0]}" if getattr(meta, "num_ctas", 1) > 1 else ""
                    launches.append(f"{file}.ptx {meta.name} grid {blocks} block {meta.num_warps * 32} shared {meta.shared}{extra} "
                                    f"args {arguments} {scratch}")
    with open(f"{folder}/triton.launches", "w") as out:
        out.write("\n".join(launches) + "\n")


main()
