#!/bin/sh
# run.sh RANKS PROGRAM [ARGUMENTS...]: mpirun of any MPI, on this machine, with more ranks than cores where it must be.
ranks=$1
shift
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
# Containers often forbid what shared memory is copied by, and Open MPI says so on every start.
export OMPI_MCA_btl_vader_single_copy_mechanism=none PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
exec "${MPIRUN:-mpirun}" -n "$ranks" "$@"
