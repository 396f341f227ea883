"""What every test shares: hypothesis without deadlines and derandomised in CI, torch on one thread, a home of its own.

Knows no package of midfill."""

import os

# Before any import of torch: the tests may run beside a training run, and threads make floating-point sums vary.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings

settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
