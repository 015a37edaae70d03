"""Post-norm blocks against torch's own layers, which have the same form, and what they have no part of."""

import pytest
import torch
from torch import nn

from empatheia_research.layers.post_norm import PostNormDecoder, PostNormEncoder

WIDTH, HEADS, INNER = 12, 3, 20
ACTIVATIONS = [nn.ReLU, nn.GELU]  # Rashkin et al. 2018; Xie and Pu 2021


def copy_attention(ours, theirs):
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def copy_linear(ours, theirs):
    linear = [module for module in ours.ffn if isinstance(module, nn.Linear)]
    theirs.linear1.load_state_dict(linear[0].state_dict())
    theirs.linear2.load_state_dict(linear[1].state_dict())


def shaken(stack):
    """With norms and biases that are not what they start as."""
    for parameter in stack.parameters():
        nn.init.normal_(parameter, std=0.4)
    return stack.eval()


@pytest.fixture
def parts():
    torch.manual_seed(0)
    keep = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    return torch.randn(2, 5, WIDTH), torch.randn(2, 6, WIDTH), keep


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_encoder_equals_torchs_layers_without_a_norm_behind_them(activation, parts):
    _, states, keep = parts
    ours = shaken(PostNormEncoder(2, WIDTH, HEADS, WIDTH, INNER, 0.1, activation))
    expected = states
    with torch.no_grad():
        for own in ours.layers:
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, activation=activation(), batch_first=True).eval()
            copy_attention(own.attention, layer.self_attn)
            copy_linear(own, layer)
            layer.norm1.load_state_dict(own.attention_norm.state_dict())
            layer.norm2.load_state_dict(own.ffn_norm.state_dict())
            expected = layer(expected, src_key_padding_mask=~keep)
        found = ours(states, keep)
    torch.testing.assert_close(found[keep], expected[keep], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_decoder_equals_torchs_layers_without_a_norm_behind_them(activation, parts):
    states, memory, keep = parts
    ours = shaken(PostNormDecoder(2, WIDTH, HEADS, WIDTH, INNER, 0.1, activation))
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected = states
    with torch.no_grad():
        for own in ours.layers:
            layer = nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, activation=activation(), batch_first=True).eval()
            copy_attention(own.self_attention, layer.self_attn)
            copy_attention(own.cross_attention, layer.multihead_attn)
            copy_linear(own, layer)
            for theirs, norm in (
                (layer.norm1, own.self_norm),
                (layer.norm2, own.cross_norm),
                (layer.norm3, own.ffn_norm),
            ):
                theirs.load_state_dict(norm.state_dict())
            expected = layer(expected, memory, tgt_mask=later, memory_key_padding_mask=~keep)
        found = ours(states, memory, keep)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_dropout_is_on_what_a_sub_layer_gives_and_not_inside_the_feed_forward(parts):
    """Vaswani et al. 2017, 5.4, and the released code of Xie and Pu 2021."""
    states, memory, keep = parts
    encoder, decoder = (make(1, WIDTH, HEADS, WIDTH, INNER, 0.5) for make in (PostNormEncoder, PostNormDecoder))
    for stack in (encoder, decoder):
        feed_forward = stack.train().layers[0].ffn
        assert torch.equal(feed_forward(states), feed_forward(states))
    assert not torch.equal(encoder(memory, keep), encoder(memory, keep))
    assert not torch.equal(decoder(states, memory, keep), decoder(states, memory, keep))
