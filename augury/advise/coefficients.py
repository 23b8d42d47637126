"""A fitted model as a file: what it was made of, its coefficients by name, and how far to trust them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from augury.advise.familiar import Familiar
from augury.advise.features import NAMES, TERMS, Values
from augury.advise.prediction import Model, Provenance
from augury.errors import UserError
from augury.files import replacing
from augury.runs.statistics import Estimate

SHIPPED = Path(__file__).with_name("coefficients.json")


def write(path: Path, model: Model) -> None:
    """Write a model as JSON."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(as_json(model), indent=1, ensure_ascii=False) + "\n")


def as_json(model: Model) -> dict[str, Any]:
    """A model as plain values."""
    return {
        "provenance": asdict(model.provenance),
        "grid": [["inf" if np.isinf(ratio) else ratio, update_ratio] for ratio, update_ratio in model.grid],
        "ridge": model.ridge,
        "spread": model.spread,
        "regret": None if model.regret is None else _short(model.regret),
        "coefficients": _named(model.coefficients),
        "folds": [_named(fold) for fold in model.folds],
        "residuals": _short(model.residuals),
        "mean": dict(zip(NAMES, _short(model.familiar.mean), strict=True)),
        "covariance": [_short(row) for row in model.familiar.covariance],
        "far": model.familiar.far,
    }


def read(path: Path = SHIPPED) -> Model:
    """Read a model; by default the one that is shipped."""
    try:
        return from_json(json.loads(path.read_text()))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} holds no coefficients of this version: {error}") from error


def from_json(saved: Mapping[str, Any]) -> Model:
    """The model that was saved."""
    about = saved["provenance"]
    return Model(
        provenance=Provenance(
            **{**about, "families": tuple(about["families"]), "algorithms": tuple(about["algorithms"])}
        ),
        grid=tuple((float(ratio), float(update_ratio)) for ratio, update_ratio in saved["grid"]),
        familiar=Familiar(
            np.array([saved["mean"][name] for name in NAMES]), np.array(saved["covariance"]), saved["far"]
        ),
        coefficients=_unnamed(saved["coefficients"]),
        folds=np.stack([_unnamed(fold) for fold in saved["folds"]]),
        ridge=saved["ridge"],
        spread=saved["spread"],
        residuals=np.array(saved["residuals"]),
        regret=None if saved["regret"] is None else Estimate(*saved["regret"]),
    )


def _named(coefficients: Values) -> dict[str, float]:
    names = ["constant", *(term.name for term in TERMS)]
    return dict(zip(names, _short(coefficients), strict=True))


def _unnamed(saved: Mapping[str, float]) -> Values:
    return np.array([saved[name] for name in ["constant", *(term.name for term in TERMS)]])


def _short(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
