"""A GPU that is not there: tensors that say they are elsewhere and are computed on the CPU.

As on a real one, an operation whose tensors are on two devices is an error, a tensor on the CPU cannot be indexed by
one that is not, and random numbers need a generator of their device. So code for another device is run without one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

GPU = torch.device("meta")
"""In a torch without CUDA the only other device that indexing knows."""
INDEXING = {torch.ops.aten.index.Tensor, torch.ops.aten.index_put.default, torch.ops.aten.index_put_.default,
            torch.ops.aten._index_put_impl_.default}  # fmt: skip
COPYING = {torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default}


class OnGpu(Tensor):
    """A tensor there."""

    inner: Tensor

    @staticmethod
    def __new__(cls, real: Tensor) -> OnGpu:
        made: OnGpu = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, real.shape, strides=real.stride(), storage_offset=real.storage_offset(), dtype=real.dtype, device=GPU
        )
        made.inner = real
        return made

    def __repr__(self, **_: Any) -> str:
        return f"OnGpu({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        here = [x for x in tensors if not isinstance(x, OnGpu) and x.dim()]
        if function in INDEXING:
            here = here if not isinstance(args[0], OnGpu) else []
        if here and function not in COPYING:
            raise RuntimeError(f"{function}: tensors on the CPU and on {GPU}")
        device = kwargs.get("device")
        there = device is None or torch.device(device).type == GPU.type
        if device is not None:
            kwargs["device"] = torch.device("cpu")
        kwargs.pop("pin_memory", None)
        wrappers = {id(x.inner): x for x in tensors if isinstance(x, OnGpu)}
        out = function(*tree_map(_real, args), **tree_map(_real, kwargs))

        def back(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            if function is torch.ops.aten.copy_.default:
                return args[0]
            if not there:
                return x
            return wrappers[id(x)] if id(x) in wrappers else OnGpu(x)

        return tree_map(back, out)


class _Generator(torch.Generator):
    """One of the device."""


class _Elsewhere(TorchFunctionMode):
    """What is made on, or moved to, the device."""

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        named = getattr(function, "__name__", "")
        if named == "tolist":
            return _real(args[0]).tolist()
        if named == "to" and any(_is_gpu(x) for x in (*args[1:], kwargs.get("device"))):
            rest = [x for x in args[1:] if not _is_gpu(x)]
            kwargs.pop("device", None)
            moved = function(args[0], *rest, **kwargs) if rest or kwargs else args[0]
            return moved if isinstance(moved, OnGpu) else OnGpu(moved)
        factory = _is_gpu(kwargs.get("device")) and not isinstance(args[0] if args else None, OnGpu)
        generator = kwargs.get("generator")
        if generator is not None and isinstance(generator, _Generator) != (factory or isinstance(args[0], OnGpu)):
            raise RuntimeError(f"{named}: a generator of another device")
        if factory:
            return OnGpu(function(*args, **kwargs | {"device": torch.device("cpu")}))
        return function(*args, **kwargs)


class _Factories(TorchDispatchMode):
    """What operations make on the device for themselves."""

    def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        made = _is_gpu(kwargs.get("device")) and not any(isinstance(x, Tensor) for x in tree_flatten(args)[0])
        if made:
            kwargs["device"] = torch.device("cpu")
        out = function(*args, **kwargs)
        return OnGpu(out) if made else out


def _is_gpu(device: Any) -> bool:
    return isinstance(device, torch.device | str) and torch.device(device).type == GPU.type


def _real(x: Any) -> Any:
    return x.inner if isinstance(x, OnGpu) else x


@contextlib.contextmanager
def pretended_gpu() -> Iterator[torch.device]:
    """Inside, the device can be used."""
    real = torch.Generator

    def generator(device: Any = "cpu") -> torch.Generator:
        return _Generator() if _is_gpu(device) else real(device)

    with pytest.MonkeyPatch.context() as patch, torch.no_grad(), _Factories(), _Elsewhere():
        patch.setattr(torch, "Generator", generator)
        # Tensors of one's own cannot take part in it.
        patch.setattr(torch.inference_mode, "__enter__", lambda _: None)
        patch.setattr(torch.inference_mode, "__exit__", lambda *_: None)
        yield GPU


def move(module: nn.Module) -> None:
    """All parameters and buffers there, shared ones once."""
    moved: dict[int, Tensor] = {}
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and not isinstance(tensor, OnGpu):
                    tensors[name] = moved.setdefault(id(tensor), OnGpu(tensor.detach()))
