"""Networks far from their start, and how both engines are compared."""

import torch

from fcorr.nn.engine import use_engine


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def perturb(module, scale=0.3, seed=9):
    """Move every parameter away from the special value that it begins at."""
    generator = seeded(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator))
    return module


def draw_codes(cardinalities, n_rows, generator):
    codes = [torch.randint(c, (n_rows, 1), generator=generator) for c in cardinalities]
    return torch.cat([torch.empty(n_rows, 0, dtype=torch.long), *codes], dim=1)


def draw_rows(cardinalities, n_numeric, n_rows, *, missing=0.0, seed=0):
    """Draw any categories and normal numbers, of which a share may be missing."""
    generator = seeded(seed)
    codes = draw_codes(cardinalities, n_rows, generator)
    numbers = torch.randn(n_rows, n_numeric, generator=generator)
    numbers[torch.rand(numbers.shape, generator=generator) < missing] = torch.nan
    return codes, numbers


def assert_all_close(found, exact, atol):
    """Compare values and gradients with those in float64, each by its own largest entry."""
    for value, expected in zip(found, exact, strict=True):
        scale = max(1.0, expected.abs().max().item())
        torch.testing.assert_close(value.double(), expected, rtol=0, atol=atol * scale)


def compare_layers(layer, h, atol=4e-6):
    """Compare the compiled layer, its gradients included, with plain torch in float64."""

    def run(layer, h, weight):
        h = h.clone().requires_grad_()
        output = layer(h)
        return output, *torch.autograd.grad((weight * output).sum(), [h, *layer.parameters()])

    weight = torch.randn(h.shape, generator=seeded(2))
    with use_engine("compiled"):
        compiled = run(layer, h, weight)
    assert_all_close(compiled, run(layer.double(), h.double(), weight.double()), atol)


def compare_models(make, codes, numbers):
    """Compare the compiled model, its gradients included, with plain torch in float64."""
    found = []
    for dtype, engine in ((torch.float32, "compiled"), (torch.float64, "plain")):
        model = make().to(dtype)
        with use_engine(engine):
            outputs = model(codes, numbers.to(dtype))
            gradients = torch.autograd.grad(outputs.square().sum(), list(model.parameters()))
        found.append([outputs.detach(), *gradients])
    assert_all_close(*found, atol=1e-5)
