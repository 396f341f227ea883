"""What every test shares: hypothesis without deadlines and derandomised in CI, torch on one thread, a home of its own.

Knows no package of midfill."""

import atexit
import os
import shutil
import tempfile

# Before any import of torch: the tests may run beside a training run, and threads make floating-point sums vary.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

# What the developer has set, and what is counted of the developer's work, is no business of the tests.
_home = tempfile.mkdtemp(prefix="midfill-tests-")
atexit.register(shutil.rmtree, _home, ignore_errors=True)
os.environ.update(XDG_CONFIG_HOME=f"{_home}/config", XDG_STATE_HOME=f"{_home}/state")

from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
