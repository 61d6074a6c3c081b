import sys
from pathlib import Path

# Benchmarks are not shipped: they are found from the clone's root, as `python -m` finds them there.
sys.path.insert(0, str(Path(__file__).parents[2]))
