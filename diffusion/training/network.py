"""The embedded model's network, laid out for training: window and canvases in one sequence, one pass for both.

Mathematically the library's class with one expert whose output is zero, hence dense. The encoder rows (the window) see
the window causally; the rows of a canvas see the window up to their cut, and themselves; positions come from a table.
Block diffusion models train like that (Arriola et al. 2025, BD3-LM). A test holds it equal to the library's forward.
Knows nothing about text, losses or files.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

EPS = 1e-6
SOFTCAP = 30.0


@dataclass(frozen=True, kw_only=True)
class Size:
    """Shape of the network. The last layer has no value projection: the class forces it to full attention."""

    vocabulary: int = 8192
    hidden: int = 256
    inner: int = 768
    layers: int = 6
    heads: int = 4
    head_dim: int = 64
    rope_theta: float = 10_000.0


@dataclass(frozen=True)
class Packed:
    """B sequences of S rows, each a window followed by canvases and padding.

    ids, positions: (B, S). segment: (B, S), 0 window, k > 0 canvas k, -1 padding. cut: (B, S), how many window rows a
    row sees at most: its own index + 1 in the window, the cut in a canvas. No canvas begins before row `window`.
    """

    ids: Tensor
    positions: Tensor
    segment: Tensor
    cut: Tensor
    window: int

    def mask(self) -> Tensor:
        """(B, 1, S - window, S) bool: what each row behind the window attends to. Padding attends to itself, so that
        no row is empty. The window's own rows are plainly causal: its padding stands at its end."""
        columns = torch.arange(self.ids.shape[1], device=self.ids.device)
        segment, cut = self.segment[:, self.window :], self.cut[:, self.window :]
        in_window = (self.segment == 0)[:, None, :] & (columns[None, None, :] < cut[:, :, None])
        in_canvas = (segment[:, :, None] == self.segment[:, None, :]) & (segment > 0)[:, :, None]
        itself = (columns[self.window :, None] == columns[None, :])[None]
        return (in_window | in_canvas | itself)[:, None]


class Network(nn.Module):
    """Weights under the library's names (those of `model.decoder`), float32; matrix products in `compute` dtype."""

    def __init__(self, size: Size, seed: int = 0, compute: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        self.size = size
        self.compute = compute
        self.weights = nn.ParameterDict()
        self._names: dict[str, str] = {}
        generator = torch.Generator().manual_seed(seed)
        for name, shape in parameter_shapes(size).items():
            key = name.replace(".", "/")  # ParameterDict keys must hold no dot
            value = torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=generator) * 0.02
            if name.endswith(("o_proj.weight", "mlp.down_proj.weight", "self_conditioning.down_proj.weight")):
                value = torch.zeros(shape)  # every block starts as the identity
            self.weights[key] = nn.Parameter(value)
            self._names[name] = key

    def weight(self, name: str) -> Tensor:
        """The parameter with the library's `name`."""
        weight: Tensor = self.weights[self._names[name]]
        return weight

    def named_weights(self) -> dict[str, Tensor]:
        """Library name -> parameter."""
        return {name: self.weights[key] for name, key in self._names.items()}

    def forward(self, packed: Packed) -> Tensor:
        """Hidden states after the last norm, (B, S, H) float32."""
        canvas = (packed.segment > 0)[..., None]
        x = F.embedding(packed.ids, self.weight("embed_tokens.weight")) * self.size.hidden**0.5
        # A zero self-conditioning signal adds nothing but still passes the block's norm, which has no scale.
        x = torch.where(canvas, rms_norm(x, None), x)
        cos, sin = rotary_tables(packed.positions, self.size, self.compute)
        mask = packed.mask() if packed.window < packed.ids.shape[1] else None
        for index in range(self.size.layers):
            x = layer(x, cos, sin, mask, self._layer_weights(index), self.size.heads, self.compute)
        return rms_norm(x, self.weight("norm.weight"))

    def logits(self, hidden: Tensor) -> Tensor:
        """(N, H) -> (N, V) float32, softcapped."""
        table = self.weight("embed_tokens.weight").to(self.compute)
        return softcap(F.linear(hidden.to(self.compute), table).float())

    def _layer_weights(self, index: int) -> list[Tensor]:
        return [self.weights[self._names[f"layers.{index}.{name}"]] for name in layer_names(index, self.size)]


def parameter_shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """Library name -> shape for all trained parameters."""
    hidden, inner, head = size.hidden, size.inner, size.head_dim
    wide = size.heads * head
    matrices = {
        "self_attn.q_proj.weight": (wide, hidden),
        "self_attn.k_proj.weight": (wide, hidden),
        "self_attn.v_proj.weight": (wide, hidden),
        "self_attn.o_proj.weight": (hidden, wide),
        "self_attn.q_norm.weight": (head,),
        "self_attn.k_norm.weight": (head,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (size.vocabulary, hidden), "norm.weight": (hidden,)}
    for index in range(size.layers):
        for name in layer_names(index, size):
            shapes[f"layers.{index}.{name}"] = matrices.get(name, (hidden,))
    shapes["self_conditioning.pre_norm.weight"] = (hidden,)
    shapes["self_conditioning.gate_proj.weight"] = (inner, hidden)
    shapes["self_conditioning.up_proj.weight"] = (inner, hidden)
    shapes["self_conditioning.down_proj.weight"] = (hidden, inner)
    return shapes


def layer_names(index: int, size: Size) -> list[str]:
    """Names of a layer's parameters in the order in which `layer` takes them."""
    projections = (
        ["q_proj", "k_proj", "o_proj"] if index == size.layers - 1 else ["q_proj", "k_proj", "o_proj", "v_proj"]
    )
    return [
        "input_layernorm.weight",
        "post_attention_layernorm.weight",
        "pre_feedforward_layernorm.weight",
        "post_feedforward_layernorm_1.weight",
        "post_feedforward_layernorm.weight",
        "self_attn.q_norm.weight",
        "self_attn.k_norm.weight",
        "mlp.gate_proj.weight",
        "mlp.up_proj.weight",
        "mlp.down_proj.weight",
        *(f"self_attn.{name}.weight" for name in projections),
    ]


def layer(
    x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None, weights: list[Tensor], heads: int, compute: torch.dtype
) -> Tensor:
    """One block, (B, S, H) -> (B, S, H). The last rows attend as `mask` (B, 1, rows, S) says, those before causally;
    all of them without one. Takes its weights as tensors, so that one compiled graph serves all layers."""
    before_attn, after_attn, before_mlp, after_mlp, after_both, q_norm, k_norm, gate, up, down, q, k, o, *rest = weights
    batch, rows, _ = x.shape
    h = rms_norm(x, before_attn).to(compute)
    split = (batch, rows, heads, q.shape[0] // heads)
    query = rotate(rms_norm(linear(h, q).view(split), q_norm), cos, sin).transpose(1, 2)
    raw_key = linear(h, k).view(split)
    key = rotate(rms_norm(raw_key, k_norm), cos, sin).transpose(1, 2)
    value = linear(h, rest[0]).view(split) if rest else raw_key
    value = rms_norm(value, None).transpose(1, 2)
    window = rows if mask is None else rows - mask.shape[2]
    # In two parts, since a causal attention without a mask leaves out half of the work.
    mixed = F.scaled_dot_product_attention(
        query[:, :, :window], key[:, :, :window], value[:, :, :window], is_causal=True, scale=1.0
    )
    if mask is not None:
        behind = F.scaled_dot_product_attention(query[:, :, window:], key, value, attn_mask=mask, scale=1.0)
        mixed = torch.cat((mixed, behind), dim=2)
    mixed = mixed.transpose(1, 2).reshape(batch, rows, q.shape[0])
    x = x + rms_norm(linear(mixed, o), after_attn).float()
    h = rms_norm(x, before_mlp).to(compute)
    h = linear(F.gelu(linear(h, gate), approximate="tanh") * linear(h, up), down)
    # The experts' branch is zero, and so is its norm: only the dense branch reaches the second norm.
    return x + rms_norm(rms_norm(h, after_mlp), after_both).float()


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x @ weight.T in the dtype of x."""
    return F.linear(x, weight.to(x.dtype))


def rms_norm(x: Tensor, weight: Tensor | None) -> Tensor:
    """RMSNorm over the last axis, computed in float32, returned in the dtype of x."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
    return (wide if weight is None else wide * weight).to(x.dtype)


def softcap(logits: Tensor) -> Tensor:
    """Squash to (-SOFTCAP, SOFTCAP)."""
    return torch.tanh(logits / SOFTCAP) * SOFTCAP


def rotary_tables(positions: Tensor, size: Size, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos and sin for `rotate`, each (B, S, 1, head_dim)."""
    steps = torch.arange(0, size.head_dim, 2, device=positions.device, dtype=torch.float32)
    angles = positions[..., None].float() * (1.0 / size.rope_theta ** (steps / size.head_dim))
    angles = torch.cat((angles, angles), dim=-1)[:, :, None, :]
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of (B, S, heads, head_dim) (Su et al. 2021)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
