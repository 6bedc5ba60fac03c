/* A driver's NVML that tells of the GPUs in the file $FAKE_NVML, a line each:
 *
 *     fail CODE                      nvmlInit does
 *     gpu 00000000:1B:00.0 90 NAME   compute capability 9.0
 *     mig                            of the GPU above
 *     lost CODE                      a GPU that cannot be had
 *     link 00000000:07:00.0 TYPE N   N links of the GPU above, to a GPU (0), NPU (1), switch (2); TYPE - : not said
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

struct Gpu {
    char bus_id[32], name[96], peer[MOST][32];
    int sm, mig, bad, type[MOST];
    unsigned n_links;
};

typedef struct {
    char legacy_bus_id[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} PciInfo;

static struct Gpu gpus[MOST];
static unsigned n_gpus;

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct Gpu **gpu);
int nvmlDeviceGetPciInfo_v3(struct Gpu *gpu, PciInfo *info);
int nvmlDeviceGetName(struct Gpu *gpu, char *name, unsigned length);
int nvmlDeviceGetCudaComputeCapability(struct Gpu *gpu, int *major, int *minor);
int nvmlDeviceGetMigMode(struct Gpu *gpu, unsigned *now, unsigned *later);
int nvmlDeviceGetNvLinkState(struct Gpu *gpu, unsigned link, int *up);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct Gpu *gpu, unsigned link, PciInfo *info);
int nvmlDeviceGetNvLinkRemoteDeviceType(struct Gpu *gpu, unsigned link, int *type);

static int
read_line(const char *line)
{
    struct Gpu *last = n_gpus > 0 ? &gpus[n_gpus - 1] : NULL;
    char peer[32], type[8];
    unsigned n;
    int code;

    if (sscanf(line, "fail %d", &code) == 1)
        return code;
    if (n_gpus < MOST && sscanf(line, "gpu %31s %d %95[^\n]", gpus[n_gpus].bus_id, &gpus[n_gpus].sm,
                                gpus[n_gpus].name) == 3)
        n_gpus++;
    else if (n_gpus < MOST && sscanf(line, "lost %d", &gpus[n_gpus].bad) == 1)
        n_gpus++;
    else if (last && strcmp(line, "mig\n") == 0)
        last->mig = 1;
    else if (last && sscanf(line, "link %31s %7s %u", peer, type, &n) == 3)
        for (; n > 0 && last->n_links < MOST; n--) {
            strcpy(last->peer[last->n_links], peer);
            last->type[last->n_links++] = type[0] == '-' ? -1 : atoi(type);
        }
    return 0;
}

int
nvmlInit_v2(void)
{
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256];
    int code = 0;

    memset(gpus, 0, sizeof gpus);
    n_gpus = 0;
    if (!file)
        return 999;
    while (code == 0 && fgets(line, sizeof line, file))
        code = read_line(line);
    fclose(file);
    return code;
}

int
nvmlShutdown(void)
{
    return 0;
}

const char *
nvmlErrorString(int code)
{
    return code == 9    ? "Driver Not Loaded"
           : code == 15 ? "GPU is lost"
           : code == 18 ? "Driver/library version mismatch"
                        : "Unknown Error";
}

int
nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = n_gpus;
    return 0;
}

int
nvmlDeviceGetHandleByIndex_v2(unsigned index, struct Gpu **gpu)
{
    if (index >= n_gpus)
        return 2;
    *gpu = &gpus[index];
    return gpus[index].bad;
}

int
nvmlDeviceGetPciInfo_v3(struct Gpu *gpu, PciInfo *info)
{
    strcpy(info->bus_id, gpu->bus_id);
    return 0;
}

int
nvmlDeviceGetName(struct Gpu *gpu, char *name, unsigned length)
{
    snprintf(name, length, "%s", gpu->name);
    return 0;
}

int
nvmlDeviceGetCudaComputeCapability(struct Gpu *gpu, int *major, int *minor)
{
    *major = gpu->sm / 10;
    *minor = gpu->sm % 10;
    return 0;
}

int
nvmlDeviceGetMigMode(struct Gpu *gpu, unsigned *now, unsigned *later)
{
    *now = *later = (unsigned)gpu->mig;
    return 0;
}

int
nvmlDeviceGetNvLinkState(struct Gpu *gpu, unsigned link, int *up)
{
    if (link >= gpu->n_links)
        return 2;
    *up = 1;
    return 0;
}

int
nvmlDeviceGetNvLinkRemotePciInfo_v2(struct Gpu *gpu, unsigned link, PciInfo *info)
{
    if (link >= gpu->n_links)
        return 2;
    strcpy(info->bus_id, gpu->peer[link]);
    return 0;
}

int
nvmlDeviceGetNvLinkRemoteDeviceType(struct Gpu *gpu, unsigned link, int *type)
{
    if (link >= gpu->n_links)
        return 2;
    *type = gpu->type[link];
    return *type < 0 ? 3 : 0;
}
