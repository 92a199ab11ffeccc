"""What the store costs, measured. One thread for BLAS in each of its processes: two on a shared machine are slower."""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
