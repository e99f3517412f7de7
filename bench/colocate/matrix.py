# SPDX-License-Identifier: Apache-2.0
"""What is measured: cells, in the order in which they run, and the presets.

A group is one (server, trainer, load, trace) under every system, one after another, so that what is compared
is measured within a minute; the order of systems turns by one from repeat to repeat.
"""
from collections import namedtuple

SERVERS = [model + "/" + mode for model in ("resnet50", "bert", "gpt2") for mode in ("eager", "graph")]
TRAINERS = ["resnet50-train", "gpt2-train", "bert-train", "matmul"]
LOADS = [0.1, 0.3, 0.5, 0.7]
TRACES = ["poisson", "bursty"]
SYSTEMS = ["alone", "time-slicing", "mps", "mps-priority", "tally-launch", "tally", "tally-opaque"]

PRESETS = {
    "full": {"servers": SERVERS, "trainers": TRAINERS, "loads": LOADS, "traces": TRACES, "systems": SYSTEMS, "repeats": 3, "seconds": 5.0},
    "quick": {
        "servers": ["bert/graph", "bert/eager", "resnet50/eager"],
        "trainers": ["gpt2-train", "matmul"],
        "loads": [0.5],
        "traces": ["poisson"],
        "systems": SYSTEMS[:-1],
        "repeats": 2,
        "seconds": 3.0,
    },
}

Cell = namedtuple("Cell", "server trainer load trace system repeat")
# How fast a trainer is with the device for itself: system is "alone" or one of Tally's.
Solo = namedtuple("Solo", "trainer system repeat")


def groups(options):
    """Lists of Cell and Solo that belong together."""
    turn = 0
    for repeat in range(options["repeats"]):
        for trainer in options["trainers"]:
            yield [Solo(trainer, s, repeat) for s in options["systems"] if s == "alone" or s.startswith("tally")]
        for load in options["loads"]:
            for trace in options["traces"]:
                for trainer in options["trainers"]:
                    for server in options["servers"]:
                        systems = options["systems"]
                        turned = systems[turn % len(systems) :] + systems[: turn % len(systems)]
                        yield [Cell(server, trainer, load, trace, s, repeat) for s in turned]
                        turn += 1
        turn += 1


def key(item):
    return "|".join([type(item).__name__] + [str(field) for field in item])
