# SPDX-License-Identifier: Apache-2.0
"""What must not break: the list that run.py runs and table.py tells of.

Same: a program whose results must be the same without Tally, as high priority and as best effort, all three at
the same time on one GPU. Other steps are functions of scenes.py. `cpu` names what shows the same on the CPU device in
CI: True for this very step, or the name of a test.
"""
from collections import namedtuple

Same = namedtuple("Same", "name what command needs cpu timeout", defaults=((), None, 120))
Scene = namedtuple("Scene", "name what function needs cpu timeout", defaults=((), None, 120))

# {python}, {here} (this folder) and {gpu} (build/gpu: what CMake built for these), {work} (work.cu's program) and {blocks} (a grid
# of many waves) are filled in.
TORCH = ("torch",)
# Every kernel of machine code that can be stopped is: NVIDIA's closed libraries' too, short ones too.
OPAQUE = ("/usr/bin/env", "TALLY_OPAQUE=all", "TALLY_LEVEL=guard")


def python(program, *arguments):
    return ("{python}", "{here}/" + program) + arguments


STEPS = [
    Same("torch-eager", "PyTorch, eager training and inference", python("torch_eager.py"), TORCH),
    Same("torch-compile", "torch.compile (Inductor, Triton)", python("torch_compile.py"), TORCH, timeout=180),
    Same("torch-graph", "CUDA graphs in PyTorch, a training step replayed", python("torch_graph.py"), TORCH),
    Same("torch-amp", "PyTorch, automatic mixed precision", python("torch_amp.py"), TORCH),
    Same("torch-opaque", "PyTorch, training and inference, every kernel stopped as machine code (`--opaque all`)", OPAQUE + python("torch_eager.py"), TORCH),
    Same("torch-amp-opaque", "the same, mixed precision", OPAQUE + python("torch_amp.py"), TORCH),
    Same("torch-graph-opaque", "the same, graphs", OPAQUE + python("torch_graph.py"), TORCH),
    Same("triton-opaque", "the same, Triton's kernels", OPAQUE + python("triton_kernels.py"), TORCH + ("triton",)),
    Same("cupy-opaque", "the same, CuPy", OPAQUE + python("cupy_step.py"), ("cupy",), timeout=180),
    Same("nccl-1-opaque", "the same, beside NCCL, whose kernels stay whole", OPAQUE + python("torch_nccl.py", "1"), TORCH),
    Same("torch-dataloader", "DataLoader with forked workers", python("torch_workers.py"), TORCH),
    Same("torch-spawn", "a server of several processes that share tensors (spawn, CUDA IPC)", python("torch_spawn.py"), TORCH),
    Same("nccl-1", "torch.distributed over NCCL, one rank", python("torch_nccl.py", "1"), TORCH),
    Same("nccl-2", "torch.distributed over NCCL, two GPUs", python("torch_nccl.py", "2"), TORCH + ("2 GPUs",)),
    Same("triton", "Triton kernels", python("triton_kernels.py"), TORCH + ("triton",)),
    Same("jax", "JAX", python("jax_step.py"), ("jax",), timeout=180),
    Same("cupy", "CuPy, with a kernel compiled by NVRTC", python("cupy_step.py"), ("cupy",), timeout=180),
    Same("cudart-static", "a CUDA program with NVIDIA's static runtime", ("{gpu}/work_static", "--blocks", "{blocks}"), cpu="cudart_static (refused there by name)"),
    Same("cudart-shared", "a CUDA program with a shared runtime", ("{gpu}/work", "--blocks", "{blocks}"), ("libcudart.so.13",), cpu=True),
    Same("driver-dlopen", "a program of the driver API that opens libcuda.so.1 itself", ("{gpu}/driver_dlopen",), cpu=True),
    Same("streams-200", "200 streams in one process", ("{work}", "--streams", "200", "--launches", "20", "--blocks", "{blocks}"), cpu=True),
    Same("never-synchronize", "a program that never synchronizes", ("{work}", "--never-synchronize", "--blocks", "{blocks}"), cpu=True),
    Same("too-much-memory", "a program that asks for more memory than there is, and goes on", ("{work}", "--too-much", "--blocks", "{blocks}"), cpu=True),
    Scene("memory-filled", "one program fills the GPU's memory, another works beside it; then the other way round", "memory_filled", ("gpu",)),
    Scene("compute-sanitizer", "compute-sanitizer under Tally", "compute_sanitizer", ("gpu", "compute-sanitizer")),
    Scene("ncu", "Nsight Compute under Tally", "ncu", ("gpu", "ncu")),
    Scene("kill-best-effort", "kill -9 of the best-effort program while it is stopped", "kill_best_effort", cpu=True),
    Scene("kill-high", "kill -9 of the high-priority program while another is stopped for it", "kill_high", cpu=True),
    Scene("tallyd-killed", "tallyd killed and started again", "tallyd_killed", cpu=True),
    Scene("illegal-access", "an illegal access in the best-effort program: the high-priority one goes on", "illegal_access", cpu=True),
    Scene("illegal-access-mps", "the same under MPS: what the hardware does", "illegal_access_mps", ("gpu", "MPS")),
]
