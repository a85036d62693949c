"""The example with a model of its own, as a module for tests."""

import importlib.util
import sys
from pathlib import Path

PATH = Path(__file__).parent.parent / "examples" / "drifting.py"
SPEC = importlib.util.spec_from_file_location("examples_drifting", PATH)
module = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = module
SPEC.loader.exec_module(module)
