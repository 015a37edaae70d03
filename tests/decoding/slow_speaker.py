"""The pragmatic speaker from the equations, slow and plain: what focused decoding is compared with."""

from __future__ import annotations

import torch
from transformers import LogitsProcessor, LogitsProcessorList


class Reference(LogitsProcessor):
    """S1 from the equations: every row alone, every world read anew from the first piece, no cache, no padding."""

    def __init__(self, model, worlds, alpha, beta, prior="L0"):
        self.model, self.worlds, self.alpha, self.beta, self.prior = model, worlds, alpha, beta, prior
        self.n_prompt = 0 if model.config.is_encoder_decoder else worlds.true()["input_ids"].shape[1]

    def s0(self, context, said):
        if self.model.config.is_encoder_decoder:
            logits = self.model(input_ids=context[None], decoder_input_ids=said[None], use_cache=False).logits
            return logits[0].log_softmax(-1)
        ids = torch.cat((context, said))[None]
        return self.model(input_ids=ids, use_cache=False).logits[0, len(context) - 1 :].log_softmax(-1)

    @torch.no_grad()
    def __call__(self, input_ids, scores):
        out = []
        for row, (ids, given) in enumerate(zip(input_ids, scores, strict=True)):
            example = row // (len(input_ids) // self.worlds.n_examples)
            s0 = []
            for w in range(self.worlds.n_worlds):
                place = example * self.worlds.n_worlds + w
                keep = self.worlds.inputs["attention_mask"][place].bool()
                s0.append(self.s0(self.worlds.inputs["input_ids"][place][keep], ids[self.n_prompt :]))
            s0 = torch.stack(s0, 1)  # (steps, W, V); an encoder-decoder's first piece was given, not said
            said = ids[self.n_prompt :][1:] if self.model.config.is_encoder_decoder else ids[self.n_prompt :]
            belief = torch.full((self.worlds.n_worlds,), 1 / self.worlds.n_worlds)
            for t, piece in enumerate(said):
                if self.prior == "L0":
                    belief = belief * s0[t, :, piece].exp() ** self.beta
                    belief = belief / belief.sum()
            heard = s0[-1].exp() ** self.beta * belief[:, None]
            l0 = heard[0] / heard.sum(0)
            speaker = given.log_softmax(-1).exp() * l0**self.alpha
            out.append((speaker / speaker.sum()).log())
        return torch.stack(out)


def reference(model, worlds, alpha, beta, prior="L0", **options):
    processor = LogitsProcessorList([Reference(model, worlds, alpha, beta, prior)])
    return model.generate(**worlds.true(), logits_processor=processor, **options)
