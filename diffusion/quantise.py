"""Which weights of the class are quantised and how: linears through optimum-quanto, experts as packed int4.

optimum-quanto is told the weights one by one: the list that transformers makes for it leaves out every tied weight,
here the whole text stack. No compiler is needed at run time: quanto would build an extension on the first use of 4-bit
weights, to unpack them, which plain torch does as well. Works weight by weight, so that a loader need never hold more
than one. Knows names and tensors; no files.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from diffusion import experts, int4
from diffusion.api import EngineError
from diffusion.int4 import Packed
from diffusion.quantisation import LINEAR_GROUP, Quantisation, group_for

with contextlib.redirect_stdout(io.StringIO()):  # on some machines it says what it has not found
    from optimum.quanto import AbsmaxOptimizer, MaxOptimizer, qtypes
    from optimum.quanto.library.extensions.extension import _extensions
    from optimum.quanto.tensor.weights import WeightQBitsTensor, WeightQBytesTensor, quantize_weight

LINEAR = re.compile(
    r"(layers\.\d+\.(self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj)|self_conditioning\.(gate|up|down)_proj)\.weight"
)
EXPERT = re.compile(r"layers\.\d+\.experts\.(gate_up|down)_proj")
ALIGNED = 64
"""Bytes; rows of 8-bit weights are a multiple of it, or stay unpacked."""
QTYPES = {"int8": "qint8", "int4": "qint4", "float8": "qfloat8_e4m3fn"}


def _unpack(packed: Tensor, bits: int) -> Tensor:
    """quanto's form of several numbers in a byte: the first rows in the lowest bits. Of shape (n * 8 / bits, ...)."""
    return torch.cat([(packed >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)])


for _extension in _extensions.values():
    _extension._lib = SimpleNamespace(unpack=_unpack)  # what it would compile; nothing else of it is used


def kind(name: str, how: Quantisation) -> str:
    """What becomes of the weight `name` (as the decoder calls it, without its prefix): "linear", "expert" or "kept"."""
    if LINEAR.fullmatch(name) and how.linears != "none":
        return "linear"
    return "expert" if EXPERT.fullmatch(name) and how.experts != "none" else "kept"


def quantise(name: str, weight: Tensor, how: Quantisation, dtype: torch.dtype) -> dict[str, Tensor]:
    """The tensors that stand for one weight, under names that begin with `name`; `dtype` is that of the activations.

    Works on the device where `weight` is. Raises EngineError for a shape that cannot be packed.
    """
    what = kind(name, how)
    if what == "kept":
        return {name: weight.to(dtype)}
    if what == "expert":
        group = group_for(weight.shape[-1], how.group)
        if not group:
            hint = 'set experts = "none" under [quantisation] in its profile'
            raise EngineError(f"{name} with {weight.shape[-1]} inputs cannot be packed in groups", hint, "model")
        packed = int4.pack(weight, group)
        return {f"{name}.packed": packed.packed, f"{name}.scale": packed.scale}
    parts: dict[str, Tensor] = {}
    _linear(weight.to(dtype), how).save_to_state_dict(parts, f"{name}.", keep_vars=False)
    return parts


@torch.inference_mode()
def place(module: nn.Module, name: str, parts: Mapping[str, Tensor], how: Quantisation) -> None:
    """Put what `quantise` made of the weight `name` into `module`, the decoder. Raises KeyError for missing parts.

    In inference mode, since quanto's 4-bit tensors work only in the mode in which they were made.
    """
    what = kind(name, how)
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path)
    if what == "expert":
        experts.place(owner, leaf, Packed(packed=parts[f"{name}.packed"], scale=parts[f"{name}.scale"]))
    elif what == "linear":
        setattr(owner, leaf, nn.Parameter(_tensor(getattr(owner, leaf).shape, name, parts, how), requires_grad=False))
    elif leaf in owner._buffers:
        owner._buffers[leaf] = parts[name]
    else:
        setattr(owner, leaf, nn.Parameter(parts[name], requires_grad=False))


def _linear(weight: Tensor, how: Quantisation) -> Any:
    """quanto's tensor for (O, I), in the form that no device treats in a way of its own."""
    qtype = qtypes[QTYPES[how.linears]]
    if qtype.bits == 8:
        scale = _not_zero(AbsmaxOptimizer()(weight, qtype=qtype, axis=0))
        return quantize_weight(weight, qtype=qtype, axis=0, scale=scale, optimized=False)
    group = group_for(weight.shape[-1], LINEAR_GROUP) or None  # none: one for each output
    scale, shift = MaxOptimizer()(weight, qtype=qtype, axis=0, group_size=group)
    return quantize_weight(weight, qtype=qtype, axis=0, scale=scale, shift=shift, group_size=group, optimized=False)


def _not_zero(scale: Tensor) -> Tensor:
    """Rows of zeros are divided by their scale, too."""
    return torch.where(scale == 0, 1, scale)


def _tensor(shape: torch.Size, name: str, parts: Mapping[str, Tensor], how: Quantisation) -> Any:
    """quanto's tensor from what it has saved. Raises KeyError."""
    qtype, missing = qtypes[QTYPES[how.linears]], list[str]()
    more = {"qtype": qtype, "axis": 0, "size": shape, "stride": (shape[1], 1), "missing_keys": missing}
    if qtype.bits == 8:
        # torch's product with 8-bit weights on the CPU reads aligned vectors without a look, and crashes.
        parts = {key: part if part.data_ptr() % ALIGNED == 0 else part.clone() for key, part in parts.items()}
        tensor = WeightQBytesTensor.load_from_state_dict(dict(parts), f"{name}.", activation_qtype=None, **more)
        if not missing and shape[1] % ALIGNED and tensor.device.type == "cpu":
            return tensor.dequantize()
    else:
        group = group_for(shape[1], LINEAR_GROUP) or None
        tensor = WeightQBitsTensor.load_from_state_dict(dict(parts), f"{name}.", group_size=group, **more)
    if missing:
        raise KeyError(missing[0])
    return tensor
