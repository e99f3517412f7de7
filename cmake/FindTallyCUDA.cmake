# SPDX-License-Identifier: Apache-2.0
# The CUDA toolkit gives headers (cuda.h), nvcc and ptxas. It is looked for in the build tree first
# (where `./dev setup` puts NVIDIA's Python packages), then in the usual places.
find_program(TALLY_NVCC nvcc PATHS ${CMAKE_SOURCE_DIR}/build/cuda/bin /usr/local/cuda/bin)
find_program(TALLY_PTXAS ptxas PATHS ${CMAKE_SOURCE_DIR}/build/cuda/bin /usr/local/cuda/bin)
find_path(TALLY_CUDA_INCLUDE cuda.h
          PATHS ${CMAKE_SOURCE_DIR}/build/cuda/include /usr/local/cuda/include REQUIRED)
add_library(tally_cuda_headers INTERFACE)
target_include_directories(tally_cuda_headers SYSTEM INTERFACE ${TALLY_CUDA_INCLUDE})
