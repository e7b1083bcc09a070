"""Run every benchmark of this folder."""

import importlib
import pkgutil

import tests.bench

for module in sorted(pkgutil.iter_modules(tests.bench.__path__), key=lambda found: found.name):
    if not module.name.startswith("_"):
        print(f"--- {module.name}", flush=True)
        importlib.import_module(f"tests.bench.{module.name}").main()
