"""The variables of the caller's environment that the processes of a job do not inherit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hccl_tools.launch.model.inheritance import Inheritance
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.launch.planning.environment import names
from hccl_tools.runs import job_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.launch.model.plan import Start

#: The MPI variables that a process inherits.
KeptMpi = Literal["none", "settings", "all"]
#: Variables that are removed in every start: left in the caller's shell by another launcher, a platform or an
#: older run, they would mislead a rank.
_STALE_FAMILIES = ("supervision", "rank", "rank table", "cluster", "paddle")
_STALE_NAMES = ("MINDSPORE_HCCL_CONFIG_PATH", "MS_SERVER_NUM")
#: What Paddle's launchers set for a rank, and the variables that they read as options, besides the "paddle"
#: family. Other PADDLE_* are the user's settings (PADDLE_PG_TIMEOUT), which Paddle's launcher passes on, too.
_PADDLE_NAMES = (
    *("PADDLE_AUTO_PARALLEL_CONFIG", "PADDLE_AUTO_PARALLEL_STAGE", "PADDLE_CLUSTER_TOPO_PATH"),
    *("PADDLE_DEVICES", "PADDLE_IPS", "PADDLE_JOB_ID", "PADDLE_LOCAL_DEVICE_IDS", "PADDLE_LOG_LEVEL"),
    *("PADDLE_LOG_OVERWRITE", "PADDLE_MASTER_ENDPOINT", "PADDLE_MAX_RESTART", "PADDLE_NPROC_PER_NODE"),
    *("PADDLE_ORIGINAL_CMD_ARGS", "PADDLE_PORT", "PADDLE_RANK", "PADDLE_RANK_MAPPING_PATH", "PADDLE_ROLE"),
    *("PADDLE_RUN_MODE", "PADDLE_SORT_IP", "PADDLE_STAGE_TRAINERS_NUM", "PADDLE_START_PORT"),
    *("PADDLE_TRAINER_NUM", "PADDLE_TRAINERS", "PADDLE_TRAINERS_ENDPOINTS", "PADDLE_TRAINING_ROLE"),
    *("PADDLE_WORKER_ENDPOINT", "PADDLE_WORLD_DEVICE_IDS"),
)
#: The same, by the beginning of the name: parameter servers and elastic jobs have many of them.
_PADDLE_PREFIXES = ("PADDLE_PSERVER", "PADDLE_SERVER", "PADDLE_ELASTIC_", "PADDLE_GLOO_", "FLAGS_selected_")
#: The launcher's address; a launch inside a rank must not use it.
_INTERNAL_PREFIXES = (LAUNCHER_VARIABLE,)
#: What mpirun sets for its ranks (MPICH sets the last three); OMPI_MCA_* and OMPI_ALLOW_RUN_AS_ROOT* are
#: the user's settings.
MPI_PREFIXES = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "HYDI_", "MPI_LOCAL")
_USER_MPI_PREFIXES = ("OMPI_MCA_", "OMPI_ALLOW_RUN_AS_ROOT", "PRTE_MCA_", "PRTE_ALLOW", "PMIX_MCA_")


def inheritance(start: Start, *, keep_mpi: KeptMpi = "none", also: Iterable[str] = ()) -> Inheritance:
    """Return which variables of the caller's environment the processes of a start do not inherit.

    ``keep_mpi`` selects the variables of mpirun that are inherited: none, the user's ``settings``, or all.
    """
    torch = start == "torch"
    own = (*_STALE_FAMILIES, "torch") if torch else _STALE_FAMILIES
    return Inheritance(
        # The job key is for launchers: programs print and record their environment.
        names=(*sorted(names(own)), *_STALE_NAMES, *_PADDLE_NAMES, *job_key.VARIABLES, *also),
        prefixes=(
            *_PADDLE_PREFIXES,
            *_INTERNAL_PREFIXES,
            *(("TORCHELASTIC_",) if torch else ()),
            *(MPI_PREFIXES if keep_mpi != "all" else ()),
        ),
        exceptions=_USER_MPI_PREFIXES if keep_mpi == "settings" else (),
    )
