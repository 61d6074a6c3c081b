"""What the sensitive features of a row are exchanged for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fcorr.nn.fcorr import FCorrTransformer


@dataclass(frozen=True)
class Exchange:
    """Values that some features are exchanged for, one after the other; several go together.

    Attributes
    ----------
    features : tuple of int
        Positions of the features, categorical ones first, as the model has them.
    x_cat, x_num : Tensor
        Codes ``(C, n_categorical)`` and numbers ``(C, n_numeric)`` of C rows that hold the values.
        Their other entries are there to make rows of them and have no part in anything.
    """

    features: tuple[int, ...]
    x_cat: Tensor
    x_num: Tensor

    @classmethod
    def to_values(
        cls,
        features: Sequence[int],
        values_CS: Tensor,
        n_categorical: int,
        n_numeric: int,
        device: torch.device | str = "cpu",
    ) -> "Exchange":
        """Exchange features for values: codes of categories and numbers, a column per feature."""
        rows = torch.zeros(len(values_CS), n_categorical + n_numeric)
        rows[:, list(features)] = values_CS.float()
        codes, numbers = rows[:, :n_categorical].long(), rows[:, n_categorical:]
        return cls(tuple(features), codes.to(device), numbers.to(device))

    def __len__(self) -> int:
        return len(self.x_cat)

    def embed(self, model: FCorrTransformer) -> Tensor:
        """Embed the values of the features: ``(C, S)``."""
        x_num = self.x_num.to(model.head_norm.weight.dtype)
        return model.embed(self.x_cat, x_num)[:, list(self.features)]

    def apply(self, x_cat: Tensor, x_num: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Make each exchange in turn in all rows: C pairs of codes and numbers."""
        n_categorical = x_cat.shape[1]
        for value_cat, value_num in zip(self.x_cat, self.x_num, strict=True):
            flipped_cat, flipped_num = x_cat.clone(), x_num.clone()
            for feature in self.features:
                if feature < n_categorical:
                    flipped_cat[:, feature] = value_cat[feature]
                else:
                    flipped_num[:, feature - n_categorical] = value_num[feature - n_categorical]
            yield flipped_cat, flipped_num


def exchange_features(
    cat_cardinalities: Sequence[int],
    n_numeric: int,
    sensitive: Sequence[int],
    *,
    grids: Mapping[int, Tensor] | None = None,
    combinations: bool = False,
    device: torch.device | str = "cpu",
) -> tuple[Exchange, ...]:
    """List what sensitive features are exchanged for: every category, or a grid of numbers.

    NOTE[DIFF]: the paper exchanges all sensitive features together, in Π C_k combinations.
    Embeddings are per feature, so invariance to each feature by itself is invariance to every
    combination: by default each has an exchange of its own, Σ C_k values in all.

    Parameters
    ----------
    cat_cardinalities : sequence of int
        Number of categories of each categorical feature.
    n_numeric : int
        Number of numeric features; they follow the categorical ones.
    sensitive : sequence of int
        Positions of the sensitive features among all.
    grids : mapping of int to Tensor, optional
        For each sensitive numeric feature the numbers to exchange it for; NaN is a missing one.
    combinations : bool, default=False
        Exchange all features at once, for each of the Π C_k combinations, as the paper does.
    device : torch.device or str, default="cpu"
        Where the rows of values are to be.

    Returns
    -------
    tuple of Exchange
        One per feature, or a single one.

    Examples
    --------
    >>> race, sex = exchange_features([5, 2], 3, [0, 1])
    >>> len(race), len(sex)
    (5, 2)
    >>> (both,) = exchange_features([5, 2], 3, [0, 1], combinations=True)
    >>> both.features, len(both)
    ((0, 1), 10)
    """
    n_categorical = len(cat_cardinalities)
    values = {
        feature: torch.arange(cat_cardinalities[feature], dtype=torch.float32)
        if feature < n_categorical
        else (grids or {})[feature].float().cpu()
        for feature in sensitive
    }
    groups: list[tuple[int, ...]] = [(feature,) for feature in sensitive]
    if combinations and sensitive:
        groups = [tuple(sensitive)]
    exchanges = []
    for features in groups:
        columns = torch.meshgrid(*(values[feature] for feature in features), indexing="ij")
        values_CS = torch.stack([column.flatten() for column in columns], dim=1)
        sizes = n_categorical, n_numeric
        exchanges.append(Exchange.to_values(features, values_CS, *sizes, device))
    return tuple(exchanges)


def exchanged_features(exchanges: Sequence[Exchange]) -> list[int]:
    """All features that are exchanged, in order."""
    return [feature for exchange in exchanges for feature in exchange.features]
