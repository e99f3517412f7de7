# SPDX-License-Identifier: Apache-2.0
"""JAX: whole numbers, whose results are exact whatever kernels XLA picks (hashing, sort, scatter, products), and a jitted
training loop, checked against NumPy's first value and for getting better."""
import hashlib
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy


@jax.jit
def mix(numbers, salt):
    for _ in range(8):
        numbers = (numbers ^ (numbers >> 15)) * jnp.uint32(2246822519) + salt
    return numbers


@jax.jit
def gather(numbers):
    places = numbers % 4096
    counts = jnp.zeros(4096, jnp.uint32).at[places].add(numbers)
    square = (numbers % 16).reshape(1024, 1024).astype(jnp.float32)
    return jnp.sort(numbers), counts, (square @ square.T).astype(jnp.int32)


numbers = jnp.arange(1 << 20, dtype=jnp.uint32)
for n in range(50):
    numbers = mix(numbers, jnp.uint32(n))
bits = hashlib.sha256()
for array in (numbers,) + gather(numbers):
    bits.update(numpy.asarray(array).tobytes())

keys = jax.random.split(jax.random.PRNGKey(0), 4)
weights = [jax.random.normal(k, (512, 512)) / 23 for k in keys[:3]]
data = jax.random.normal(keys[3], (1024, 512))


def loss(weights, data):
    for weight in weights:
        data = jnp.maximum(data @ weight, 0)
    return (data**2).mean()


@jax.jit
def step(weights):
    value, gradients = jax.value_and_grad(loss)(weights, data)
    return value, [w - 0.1 * g for w, g in zip(weights, gradients)]


expected = numpy.asarray(data, numpy.float64)
for weight in weights:
    expected = numpy.maximum(expected @ numpy.asarray(weight, numpy.float64), 0)
values = []
for _ in range(50):
    value, weights = step(weights)
    values.append(float(value))
numpy.testing.assert_allclose(values[0], (expected**2).mean(), rtol=1e-2)
if not values[-1] < values[0]:
    raise SystemExit("the loss went from %f to %f" % (values[0], values[-1]))
print("device", jax.devices()[0].platform)
print("result", bits.hexdigest()[:16])
