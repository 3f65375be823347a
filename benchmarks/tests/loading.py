"""Loads the scripts of benchmarks, whose names end in no .py."""

import importlib.machinery
import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def load(name):
    """The script of that name as a new module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "benchmarks" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
