// allreduce.cc - Gloo's allreduces over TCP on this machine, fp32 sum, under the loop the other programs
// of bench/peers use; the quickest of its algorithms is reported. Forks the ranks itself.
//
//     allreduce RANKS SIZES BUDGET_MS     output as bench/point.h says
#include "../point.h"

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <vector>

namespace {

// A way that takes so many times the best one's time at first try is not measured.
constexpr double HOPELESS = 3;

// Above it only the classes are: over loopback gloo::allreduce() stands still between its segments (4 ranks, 8 MiB:
// 0.6 to 7 s, where they take 0.02).
constexpr size_t MOST_OF_FUNCTION = 1 << 20;

struct Shared {
    long flag_lines[64];
    double us[256];
};

class Bench {
  public:
    Bench(int rank, int n_ranks, Shared *shared, const std::string &folder)
        : rank_(rank), n_ranks_(n_ranks), shared_(shared)
    {
        gloo::transport::tcp::attr attr("127.0.0.1");
        auto device = gloo::transport::tcp::CreateDevice(attr);
        gloo::rendezvous::FileStore store(folder);
        auto context = std::make_shared<gloo::rendezvous::Context>(rank, n_ranks);

        context->connectFullMesh(store, device);
        context_ = context;
    }

    void measure(size_t bytes, double budget_us)
    {
        size_t count = bytes / sizeof(float);
        std::vector<float> in(count, 1.0f), out(count, 0.0f);
        double best = 0, flag = 0;
        const char *name = "";

        barrier();
        if (rank_ < 2 && n_ranks_ > 1)
            flag = point_flag_us(rank_, shared_->flag_lines);
        barrier();
        if (rank_ == 0)
            std::memset(shared_->flag_lines, 0, sizeof shared_->flag_lines);
        for (auto &way : ways(in, out)) {
            double once_us = loop_us(way.once, 1);
            double us;

            if (best > 0 && once_us > HOPELESS * best)
                continue;
            us = median_us(way.once, budget_us / 2);
            if (best == 0 || us < best) {
                best = us;
                name = way.name;
            }
        }
        if (rank_ == 0)
            std::printf("%zu %.4f %.4f %s\n", bytes, best, flag, name);
    }

  private:
    struct Way {
        const char *name;
        std::function<void()> once;
    };

    // The classes work in place; sums then grow past all bounds, which takes no longer.
    std::vector<Way> ways(std::vector<float> &in, std::vector<float> &out)
    {
        std::vector<float *> pointers = { out.data() };
        int count = (int)out.size();
        auto ring = std::make_shared<gloo::AllreduceRing<float>>(context_, pointers, count);
        auto chunked =
            std::make_shared<gloo::AllreduceRingChunked<float>>(context_, pointers, count);
        auto halving =
            std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context_, pointers, count);
        auto with = [this, &in, &out](gloo::AllreduceOptions::Algorithm algorithm) {
            gloo::AllreduceOptions options(context_);

            options.setAlgorithm(algorithm);
            options.setInput(in.data(), in.size());
            options.setOutput(out.data(), out.size());
            options.setReduceFunction(
                static_cast<void (*)(void *, const void *, const void *, size_t)>(
                    &gloo::sum<float>));
            gloo::allreduce(options);
        };

        std::vector<Way> all = { { "halving-doubling", [halving] { halving->run(); } },
                                 { "ring-chunked", [chunked] { chunked->run(); } },
                                 { "ring-class", [ring] { ring->run(); } } };

        if (in.size() * sizeof(float) > MOST_OF_FUNCTION)
            return all;
        all.push_back({ "ring", [with] { with(gloo::AllreduceOptions::Algorithm::RING); } });
        all.push_back({ "bcube", [with] { with(gloo::AllreduceOptions::Algorithm::BCUBE); } });
        return all;
    }

    void barrier() { gloo::BarrierAllToAll(context_).run(); }

    double loop_us(const std::function<void()> &once, long n)
    {
        double start, sum = 0;

        barrier();
        start = point_now_us();
        for (long i = 0; i < n; i++)
            once();
        shared_->us[rank_] = (point_now_us() - start) / (double)n;
        barrier();
        for (int rank = 0; rank < n_ranks_; rank++)
            sum += shared_->us[rank];
        barrier();
        return sum / n_ranks_;
    }

    double median_us(const std::function<void()> &once, double budget_us)
    {
        double us[POINT_MOST_REPEATS];
        PointLoop loop;
        long next = 1;

        while (next) {
            long tried = next;

            next = point_next(tried, loop_us(once, tried) * (double)tried, budget_us, &loop);
        }
        for (int r = 0; r < loop.repeats; r++)
            us[r] = loop_us(once, loop.n);
        return point_median(us, loop.repeats);
    }

    int rank_, n_ranks_;
    Shared *shared_;
    std::shared_ptr<gloo::Context> context_;
};

int
be_rank(int rank, int n_ranks, Shared *shared, const std::string &folder, const char *sizes,
        double budget_us)
{
    std::string list(sizes);

    try {
        Bench bench(rank, n_ranks, shared, folder);

        for (char *size = strtok(&list[0], ","); size; size = strtok(nullptr, ","))
            bench.measure(strtoull(size, nullptr, 10), budget_us);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "gloo, rank %d: %s\n", rank, e.what());
        return 1;
    }
    std::fflush(stdout);
    return 0;
}

} // namespace

int
main(int argc, char **argv)
{
    int n_ranks = argc > 1 ? atoi(argv[1]) : 2, bad = 0;
    double budget_us = argc > 3 ? atof(argv[3]) * 1e3 : 30e3;
    const char *place = getenv("TMPDIR");
    std::string pattern = std::string(place ? place : P_tmpdir) + "/gloo-XXXXXX";
    char *folder = &pattern[0];
    void *at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                    -1, 0);

    if (n_ranks < 2 || n_ranks > 256 || argc < 3 || at == MAP_FAILED || !mkdtemp(folder)) {
        std::fprintf(stderr, "usage: %s RANKS SIZES BUDGET_MS (2 to 256 ranks)\n", argv[0]);
        return 2;
    }
    for (int rank = 0; rank < n_ranks; rank++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(be_rank(rank, n_ranks, (Shared *)at, folder, argv[2], budget_us));
        }
    for (int status; wait(&status) > 0;)
        bad |= status;
    std::string clean = std::string("rm -rf ") + folder;
    return system(clean.c_str()) != 0 || bad != 0;
}
