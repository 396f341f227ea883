"""From a profile to a resident DiffusionGemmaForBlockDiffusion, and the three calls that everything else uses:
encode new ids into a cache, decode canvases against it, logits of hidden rows.

The library's own generate() pins nothing, so it is not used. Knows tensors; knows no text and no denoising.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion
from transformers.cache_utils import Cache

from diffusion import attention, checkpoint, dense, devices, memory_plan
from diffusion.api import EngineError, Progress
from diffusion.devices import Device
from diffusion.experts import NO_EXPERTS
from diffusion.kv_cache import KeyValueCache, MakeRoom
from diffusion.memory_plan import READ_AT_ONCE
from diffusion.plan_report import most_positions
from diffusion.profiles import ModelProfile
from diffusion.quantisation import Quantisation

REINSTALL = "reinstall midfill; `midfill doctor` shows what is there"


class ResidentModel:
    """A model in memory. All calls are synchronous and belong on one thread."""

    def __init__(
        self, model: DiffusionGemmaForBlockDiffusion, device: torch.device, dtype: torch.dtype, place: str = ""
    ) -> None:
        """`place`: the device in words, with why it is this one."""
        self.device, self.dtype, self.place = device, dtype, place or str(device)
        model.config.text_config._attn_implementation = attention.NAME
        self._encoder = model.model.encoder.language_model
        self._decoder = model.model.decoder
        self._dense = dense.Dense(model.model) if dense.fits(model.model) else None
        self._head = model.lm_head
        text = model.config.text_config
        self._softcap = text.final_logit_softcapping
        self.vocabulary_size: int = text.vocab_size
        self.windows = [text.sliding_window if kind == "sliding_attention" else None for kind in text.layer_types]
        self._signal_mask: Tensor | None = None
        self._decoder.self_conditioning.register_forward_pre_hook(self._mask_signal)

    def new_cache(self, make_room: MakeRoom = lambda _: None) -> KeyValueCache:
        """An empty cache for one document window. `make_room` as for KeyValueCache."""
        return KeyValueCache(self.windows, make_room)

    @torch.inference_mode()
    def encode(self, ids: Sequence[int], cache: KeyValueCache) -> int:
        """Make `cache` hold exactly `ids` (at least one), encoding only what is new. Returns how many were encoded."""
        common = cache.reuse(ids)
        for start in range(common, len(ids), READ_AT_ONCE):
            piece = list(ids[start : start + READ_AT_ONCE])
            hidden = self._encoded(self._tensor([piece]), cache.writable())
            cache.last_hidden = hidden[0, -1:].clone()  # a view would keep all of them
            cache.ids += piece
        return len(ids) - common

    @torch.inference_mode()
    def continuations(self, ids: Tensor, cache: KeyValueCache) -> Tensor:
        """Encoder hidden states (B, n, H) of `ids` (B, n) behind what `cache` holds. The cache stays as it is."""
        with cache.branch(len(ids)) as branch:
            return self.go_on(ids, branch)

    @torch.inference_mode()
    def go_on(self, ids: Tensor, branch: Cache) -> Tensor:
        """Encoder hidden states (B, n, H) of `ids` (B, n) behind what a `branch` of a cache holds, which holds them too
        from now on."""
        return self._encoded(ids, branch)

    def _encoded(self, ids: Tensor, cache: Cache) -> Tensor:
        if self._dense:
            return self._dense.encode(ids, cache)
        hidden: Tensor = self._encoder(input_ids=ids, cache=cache).last_hidden_state
        return hidden

    @torch.inference_mode()
    def decode(
        self,
        ids: Tensor,
        positions: Tensor,
        cache: KeyValueCache,
        signal_logits: Tensor | None = None,
        signal_mask: Tensor | None = None,
    ) -> Tensor:
        """Decoder hidden states (B, S, H) of canvases `ids` (B, S) standing at `positions` (B, S).

        signal_logits (B, S, V): the last step's logits for self-conditioning, None for a zero signal; signal_mask
        (B, S) bool zeroes the signal per position (zero logits would be a uniform signal, not none).
        """
        self._signal_mask = signal_mask
        with cache.branch(len(ids)) as branch:
            if self._dense and signal_logits is None:
                return self._dense.decode(ids, positions)
            hidden: Tensor = self._decoder(
                decoder_input_ids=ids,
                decoder_position_ids=positions,
                cache=branch,
                self_conditioning_logits=signal_logits,
            ).last_hidden_state
        return hidden

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Softcapped float32 logits (..., V) of hidden states (..., H)."""
        raw = self._head(hidden).float()
        return raw if self._softcap is None else torch.tanh(raw / self._softcap) * float(self._softcap)

    def tensor(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Ids or positions as a (B, S) tensor on the device."""
        return self._tensor(rows)

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(rows, dtype=torch.long, device=self.device)

    def _mask_signal(self, _: Any, inputs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor] | None:
        embeddings, signal = inputs
        return None if self._signal_mask is None else (embeddings, signal * self._signal_mask[..., None])


def load(profile: ModelProfile, on_progress: Callable[[Progress], None] = lambda _: None) -> ResidentModel:
    """Read the weights of `profile`. Raises EngineError with what to do when they are missing, damaged or too large."""
    chosen = devices.choose()
    if profile.quantisation:
        return _load_quantised(profile, profile.quantisation, chosen, on_progress)
    if chosen.device.type == "mps":
        chosen = devices.cpu()  # nobody has measured a small model there
    device = chosen.device
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    config = _config(profile.weights / "config.json")
    path = profile.weights / "model.safetensors"
    total = path.stat().st_size if path.is_file() else 0
    on_progress(Progress(done=0, total=total))
    try:
        weights = load_file(path)
    except FileNotFoundError as error:
        raise EngineError(f"the weights {path} are missing", REINSTALL, "model") from error
    except (SafetensorError, OSError) as error:
        raise EngineError(f"the weights {path} are damaged: {error}", REINSTALL, "model") from error
    model, wrong = assemble(config, weights)
    if wrong:
        raise EngineError(f"the weights {path} do not fit their config.json: {wrong[0]}", REINSTALL, "model")
    on_progress(Progress(done=total, total=total))
    return ResidentModel(model.to(device=device, dtype=dtype), device, dtype, str(chosen))


def require_weights(profile: ModelProfile) -> None:
    """Raises EngineError when the weights of a profile have not been fetched yet."""
    if profile.repository and not (profile.weights / checkpoint.CONFIG).is_file():
        hint = f"fetch them with `midfill model pull {profile.name}`, or go back with `midfill model use embedded`"
        raise EngineError(f"the weights of {profile.name} are not on this machine", hint, "model")


def _load_quantised(
    profile: ModelProfile, how: Quantisation, chosen: Device, on_progress: Callable[[Progress], None]
) -> ResidentModel:
    """Refuses with numbers what would not fit into the device's memory, before anything is read."""
    text = checkpoint.read_config(profile.weights / checkpoint.CONFIG)["text_config"]
    most, tokens = most_positions(profile), profile.layout.encoder
    memory_plan.refuse_beyond(text, how, free=chosen.free, positions=most, tokens=tokens)
    from diffusion import kernels, loader  # bring quanto along, a quarter of a second that a small model can do without

    model = loader.load(profile.weights, how, chosen.device, torch.bfloat16, on_progress)
    place = str(chosen)
    if how.experts != "none":
        products = kernels.choose(model.model.decoder, chosen.device, torch.bfloat16)
        model.set_experts_implementation(products.name)
        place += f", {products.words}"
    return ResidentModel(model, chosen.device, torch.bfloat16, place)


def assemble(
    config: DiffusionGemmaConfig, weights: Mapping[str, Tensor]
) -> tuple[DiffusionGemmaForBlockDiffusion, list[str]]:
    """The class around `weights` (names of its decoder), without its vision tower, which text never calls.

    Also returns the names that are needed and missing, given and unknown, or of another shape.
    """
    model = DiffusionGemmaForBlockDiffusion(config).eval().requires_grad_(False)
    model.model.encoder.vision_tower = None
    model.model.encoder.embed_vision = None
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    misshapen = [name for name, value in weights.items() if shapes.get(name, value.shape) != value.shape]
    if misshapen:
        return model, misshapen
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if all(not layer.experts.down_proj.any() for layer in model.model.decoder.layers):
        model.set_experts_implementation(NO_EXPERTS)
    return model, [name for name in missing if ".decoder." in name and not _is_idle(name)] + unexpected


def _is_idle(name: str) -> bool:
    """Parts that a dense model of the class has and never uses."""
    return any(
        part in name for part in (".router.", ".experts.", "layer_scalar", "feedforward_layernorm_2", "inv_freq")
    )


def _config(path: Path) -> DiffusionGemmaConfig:
    try:
        return DiffusionGemmaConfig.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise EngineError(f"the model's {path} cannot be read: {error}", REINSTALL, "model") from error
