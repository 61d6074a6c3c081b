import subprocess
import sys


def test_metrics_need_no_torch() -> None:
    code = "import sys, fcorr.metrics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
