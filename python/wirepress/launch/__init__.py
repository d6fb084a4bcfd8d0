# SPDX-License-Identifier: Apache-2.0
"""`wirepress run` and `wirepress setup-mpi`: what starts the jobs of an MPI library."""
