# SPDX-License-Identifier: Apache-2.0
"""make.py [--only WORD] [--out FOLDER]: makes the corpus: PTX by nvcc, NVRTC and Triton, bitcode by clang, into build/corpus/ptx
and build/corpus/bitcode, with FILE.launches (what bench/gpu/roundtrip.c runs). What is newer than its sources stays."""

import argparse
import concurrent.futures
import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TRITON = "triton==3.6.0"


def cuda_root():
    for place in (ROOT / "build/cuda", Path(os.environ.get("CUDA_HOME", "/nonexistent")), Path("/usr/local/cuda")):
        if (place / "bin/nvcc").exists():
            return place
    sys.exit("corpus: no CUDA toolkit (./dev setup gets one)")


CUDA = cuda_root()


def stale(target, *sources):
    return not target.exists() or any(s.stat().st_mtime > target.stat().st_mtime for s in sources)


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name}: {(done.stderr or done.stdout).strip()[:2000]}")


def machines(source):
    return ["90a"] if "sm_90a by hand" in source.read_text() else ["80", "90"]


def launches(source, file):
    """The `// launch: KERNEL ...` lines of a source: FILE KERNEL and the rest as it stands."""
    return [f"{file} {kernel} {rest}" for kernel, rest in re.findall(r"^// launch: (\w+) (grid .*)$", source.read_text(), re.M)]


def nvcc(source, machine, target):
    run([CUDA / "bin/nvcc", "-O3", "-std=c++17", "-lineinfo" if source.stem == "dense" else "-w", f"-arch=compute_{machine}", "-ptx",
         source, "-o", target])


def clang(source, machine, target):
    run(["clang-22", "-x", "cuda", "--cuda-device-only", f"--cuda-gpu-arch=sm_{machine}", f"--cuda-path={CUDA}", "-Wno-unknown-cuda-version",
         "-w", "-std=c++17", f"-I{CUDA}/include/cccl", "-O2", "-emit-llvm", "-c", source, "-o", target])


def nvrtc(source, machine, target):
    library = next((CUDA / "lib64").glob("libnvrtc.so.1*"), None)
    if not library:
        raise RuntimeError("no libnvrtc in the toolkit")
    lib = ctypes.CDLL(str(library))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    lib.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None)
    options = [f"--gpu-architecture=compute_{machine}", f"-I{HERE}/cuda", f"-I{CUDA}/include", f"-I{CUDA}/include/cccl", "--std=c++17"]
    failed = lib.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*(o.encode() for o in options)))
    if failed:
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        raise RuntimeError("nvrtc: " + log.value.decode()[:2000])
    lib.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetPTX(program, text)
    target.write_bytes(text.value)


def triton(out):
    python = ROOT / "build/corpus/python"
    target = out / "triton.launches"
    if not stale(target, HERE / "triton/kernels.py", HERE / "triton/compile.py"):
        return
    if not (python / "triton").exists():
        run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--root-user-action=ignore", "--target", python, TRITON])
    environment = dict(os.environ, PYTHONPATH=str(python), TRITON_CACHE_DIR=str(ROOT / "build/corpus/triton-cache"))
    done = subprocess.run([sys.executable, HERE / "triton/compile.py", out], env=environment)
    if done.returncode:
        raise RuntimeError("triton failed")


def main():
    parser = argparse.ArgumentParser()
    parser.error = lambda what: parser.exit(1, "corpus/make.py: error: %s (see --help)\n" % what)
    parser.add_argument("--only", default="", help="only what has this word in its name")
    parser.add_argument("--out", type=Path, default=ROOT / "build/corpus")
    options = parser.parse_args()
    ptx, bitcode = options.out / "ptx", options.out / "bitcode"
    for folder in (ptx, bitcode):
        folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for source in sorted((HERE / "cuda").glob("*.cu")) + sorted((HERE / "programs").glob("*.cu")):
        is_program = source.parent.name == "programs"
        for machine in machines(source):
            name = f"{source.stem}_sm{machine}"
            jobs.append((nvcc, source, machine, ptx / f"nvcc_{name}.ptx"))
            if source.stem in ("dense", "maths", "narrow", "sparse"):
                jobs.append((nvrtc, source, machine, ptx / f"nvrtc_{name}.ptx"))
            if machine == "80" and not is_program and source.stem != "cache":
                jobs.append((clang, source, machine, bitcode / f"clang_{name}.bc"))
    jobs = [j for j in jobs if options.only in j[3].name and stale(j[3], j[1], HERE / "cuda/common.cuh")]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for job, future in [(j, pool.submit(*j)) for j in jobs]:
            try:
                future.result()
            except RuntimeError as error:
                failures += 1
                print(f"corpus: {job[3].name}: {error}", file=sys.stderr)
    lines = []
    for source in sorted((HERE / "cuda").glob("*.cu")):
        for machine in machines(source):
            lines += launches(source, f"nvcc_{source.stem}_sm{machine}.ptx")
    (ptx / "cuda.launches").write_text("\n".join(lines) + "\n")
    if not options.only or "triton" in options.only:
        triton(ptx)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
