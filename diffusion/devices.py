"""Which device a model runs on, and why: CUDA, then MPS, then the CPU. Knows torch and no model."""

from __future__ import annotations

import platform
import warnings
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, kw_only=True)
class Device:
    """`reason` is a few words for the status: the name of the device, or why it is no better one. `free`: bytes of
    memory that a model could have now; on the CPU and with MPS it is that of the whole machine."""

    device: torch.device
    reason: str
    free: int

    def __str__(self) -> str:
        return f"{self.device.type} ({self.reason})"


def choose() -> Device:
    """The best device of this machine. Never fails: without a GPU that works it is the CPU, and the reason says why."""
    problem = cuda_problem()
    if not problem:
        free, _ = torch.cuda.mem_get_info()
        return Device(device=torch.device("cuda"), reason=torch.cuda.get_device_name(), free=free)
    free = psutil.virtual_memory().available
    if torch.backends.mps.is_available():
        return Device(device=torch.device("mps"), reason=f"Apple {platform.machine()}", free=free)
    return Device(device=torch.device("cpu"), reason=problem, free=free)


def cpu() -> Device:
    """For models that are faster there than anywhere else, and for tests."""
    return Device(device=torch.device("cpu"), reason="as the model needs", free=psutil.virtual_memory().available)


def cuda_problem() -> str:
    """Why CUDA cannot be used, in a few words that say what to do; "" if it can."""
    if not torch.version.cuda and not torch.version.hip:
        there = " though there is an NVIDIA driver: install a torch with CUDA" if DRIVER.exists() else ""
        return f"torch is built without CUDA{there}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it says is said below
        if torch.cuda.is_available():
            return ""
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        return _in_few_words(str(error))
    return "no CUDA device is visible"


def _in_few_words(error: str) -> str:
    said = error.lower()
    if "driver on your system is too old" in said:
        return f"the NVIDIA driver is too old for CUDA {torch.version.cuda}: update it, or install an older torch"
    if "found no nvidia driver" in said:
        return "there is no NVIDIA driver"
    if "no cuda gpus are available" in said:
        return "there is no NVIDIA GPU"
    return f"CUDA does not start: {error.splitlines()[0] if error else 'no reason given'}"
