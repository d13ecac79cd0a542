# SPDX-License-Identifier: GPL-2.0-or-later
import subprocess
import sys

import pytest


def test_the_stub_is_what_the_module_has(tmp_path):
    pytest.importorskip("mypy")
    options = ["-P", "-m", "mypy.stubtest", "perch._perch"]
    # It writes a cache into the folder where it runs.
    ran = subprocess.run(
        [sys.executable, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
