#include "exec/mpi_launch.h"
#include "exec/exec.h"

#include <dlfcn.h>
#include <string.h>

#define OPENMPI_PACKAGES "openmpi-bin and libopenmpi-dev"
#define MPICH_PACKAGES   "mpich and libmpich-dev"

/* In this order: Open MPI sets PMIX_RANK too, and under Slurm every launcher inherits Slurm's. */
static const struct {
    const char *size, *rank, *launcher;
    const char *modules[5];
    const char *install;
} launchers[] = {
    { "OMPI_COMM_WORLD_SIZE",
      "OMPI_COMM_WORLD_RANK",
      "Open MPI's mpirun",
      { "openmpi" },
      OPENMPI_PACKAGES },
    { "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MVAPICH's mpirun", { "mvapich" }, "MVAPICH" },
    { "PMI_SIZE",
      "PMI_RANK",
      "MPICH's mpirun (Hydra)",
      { "mpich", "mvapich", "intel" },
      MPICH_PACKAGES },
    { "SLURM_NTASKS",
      "PMIX_RANK",
      "Slurm's srun (PMIx)",
      { "openmpi", "mpich", "mvapich" },
      OPENMPI_PACKAGES },
};

TtMpiLaunch
tt_mpi_launch(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(launchers); i++) {
        const char *size = g_getenv(launchers[i].size), *rank = g_getenv(launchers[i].rank);

        if (size && rank)
            return (TtMpiLaunch){ .launcher = launchers[i].launcher,
                                  .rank = (guint)g_ascii_strtoull(rank, NULL, 10),
                                  .n_ranks = (guint)g_ascii_strtoull(size, NULL, 10),
                                  .modules = launchers[i].modules,
                                  .install = launchers[i].install };
    }
    return (TtMpiLaunch){ .n_ranks = 1 };
}

/* TUTTI_BACKENDS alone if it is set, else beside the program. Caller frees. */
static char **
module_folders(void)
{
    const char *told = g_getenv("TUTTI_BACKENDS");
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = g_path_get_dirname(program ? program : ".");
    char **folders = g_new0(char *, 3);

    if (told && *told) {
        folders[0] = g_strdup(told);
        return folders;
    }
    folders[0] = g_build_filename(folder, "backends", NULL);
    folders[1] = g_build_filename(folder, "..", "lib", "tutti", NULL);
    return folders;
}

/* Caller frees; NULL if there is none. */
static char *
find_module(const TtMpiLaunch *launch, char **folders)
{
    for (guint m = 0; launch->modules[m]; m++)
        for (guint f = 0; folders[f]; f++) {
            g_autofree char *name = g_strdup_printf("tutti_mpi_%s.so", launch->modules[m]);
            g_autofree char *path = g_build_filename(folders[f], name, NULL);

            if (g_file_test(path, G_FILE_TEST_EXISTS))
                return g_steal_pointer(&path);
        }
    return NULL;
}

const TtMpiModule *
tt_mpi_load(const TtMpiLaunch *launch, GError **error)
{
    g_auto(GStrv) folders = module_folders();
    g_autofree char *path = find_module(launch, folders);
    const TtMpiModule *module;
    void *library;

    if (!path) {
        g_autofree char *where = g_strjoinv(" or ", folders);

        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "started by %s, but there is no tutti_mpi_%s.so in %s: install %s, then "
                    "configure and build again",
                    launch->launcher, launch->modules[0], where, launch->install);
        return NULL;
    }
    library = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* Open MPI's plug-ins look for its symbols */
    module = library ? dlsym(library, TT_MPI_MODULE) : NULL;
    if (!module) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "cannot load %s: %s", path,
                    dlerror());
        return NULL;
    }
    if (module->abi != TT_MPI_ABI) {
        g_set_error(
            error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
            "%s was built for another version of tutti (%d, this one is %d): build it again", path,
            module->abi, TT_MPI_ABI);
        return NULL;
    }
    return module;
}
