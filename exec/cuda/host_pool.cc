#include "exec/cuda/host_pool.h"
#include "exec/cuda/shim.h"

#include <errno.h>
#include <pthread.h>

#define STACK_BYTES (512u << 10)

typedef struct {
    TtHostPool *pool;
    guint number;
    pthread_t thread;
} Worker;

struct TtHostPool {
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    GQueue queue;    /* TtHostWork, the one being done first */
    guint64 n_begun; /* launches */
    guint n_left;    /* threads still in the present one; 0: there is none */
    gboolean quits;
    GPtrArray *workers; /* Worker */
    GPtrArray *blocks;  /* TtShimBlock */
    guint block_threads;
};

static guint
count_threads(const TtHostWork *work)
{
    return work->n_blocks * work->n_threads;
}

/* --- with the lock held ------------------------------------------------------------------------ */

static void
set_up_blocks(TtHostPool *self, const TtHostWork *work)
{
    if (self->block_threads != work->n_threads)
        g_ptr_array_set_size(self->blocks, 0);
    self->block_threads = work->n_threads;
    while (self->blocks->len < work->n_blocks)
        g_ptr_array_add(self->blocks, tt_shim_block_new(work->n_threads));
}

static void
begin_next(TtHostPool *self)
{
    const TtHostWork *work = (const TtHostWork *)g_queue_peek_head(&self->queue);

    if (!work) {
        pthread_cond_broadcast(&self->ended);
        return;
    }
    set_up_blocks(self, work);
    self->n_begun++;
    self->n_left = count_threads(work);
    pthread_cond_broadcast(&self->begun);
}

/* The launch @worker is to take part in; NULL: leave. */
static const TtHostWork *
wait_for_work(Worker *worker, guint64 *n_seen)
{
    TtHostPool *self = worker->pool;

    for (;;) {
        const TtHostWork *work =
            self->n_left > 0 ? (const TtHostWork *)g_queue_peek_head(&self->queue) : NULL;

        if (work && *n_seen != self->n_begun && worker->number < count_threads(work)) {
            *n_seen = self->n_begun;
            return work;
        }
        if (self->quits)
            return NULL;
        pthread_cond_wait(&self->begun, &self->lock);
    }
}

/* --- threads ------------------------------------------------------------------------------------- */

static void
run_thread(const TtHostWork *work, guint number, TtShimBlock *block)
{
    tt_shim.n_blocks.x = work->n_blocks;
    tt_shim.n_threads.x = work->n_threads;
    tt_shim.block.x = number / work->n_threads;
    tt_shim.thread.x = number % work->n_threads;
    tt_shim.shared = block;
    work->run(work);
}

static void *
worker_main(void *data)
{
    Worker *worker = (Worker *)data;
    TtHostPool *self = worker->pool;
    const TtHostWork *work;
    guint64 n_seen = 0;

    pthread_mutex_lock(&self->lock);
    while ((work = wait_for_work(worker, &n_seen))) {
        gpointer block = g_ptr_array_index(self->blocks, worker->number / work->n_threads);

        pthread_mutex_unlock(&self->lock);
        run_thread(work, worker->number, (TtShimBlock *)block);
        pthread_mutex_lock(&self->lock);
        if (--self->n_left > 0)
            continue;
        g_free(g_queue_pop_head(&self->queue));
        begin_next(self);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static gboolean
add_worker(TtHostPool *self, const pthread_attr_t *attributes)
{
    Worker *worker = g_new0(Worker, 1);
    int code;

    worker->pool = self;
    worker->number = self->workers->len;
    code = pthread_create(&worker->thread, attributes, worker_main, worker);
    if (code != 0) {
        g_free(worker);
        errno = code;
        return FALSE;
    }
    g_ptr_array_add(self->workers, worker);
    return TRUE;
}

/* The workers' array belongs to who launches. */
static gboolean
add_workers(TtHostPool *self, guint n)
{
    pthread_attr_t attributes;
    gboolean good = TRUE;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (good && self->workers->len < n)
        good = add_worker(self, &attributes);
    pthread_attr_destroy(&attributes);
    return good;
}

/* --- the pool ------------------------------------------------------------------------------------ */

TtHostPool *
tt_host_pool_new(void)
{
    TtHostPool *self = g_new0(TtHostPool, 1);

    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->begun, NULL);
    pthread_cond_init(&self->ended, NULL);
    g_queue_init(&self->queue);
    self->workers = g_ptr_array_new_with_free_func(g_free);
    self->blocks = g_ptr_array_new_with_free_func((GDestroyNotify)tt_shim_block_free);
    return self;
}

void
tt_host_pool_free(TtHostPool *self)
{
    if (!self)
        return;
    tt_host_pool_wait(self);
    pthread_mutex_lock(&self->lock);
    self->quits = TRUE;
    pthread_cond_broadcast(&self->begun);
    pthread_mutex_unlock(&self->lock);
    for (guint i = 0; i < self->workers->len; i++)
        pthread_join(((Worker *)g_ptr_array_index(self->workers, i))->thread, NULL);
    g_ptr_array_free(self->workers, TRUE);
    g_ptr_array_free(self->blocks, TRUE);
    pthread_cond_destroy(&self->begun);
    pthread_cond_destroy(&self->ended);
    pthread_mutex_destroy(&self->lock);
    g_free(self);
}

gboolean
tt_host_pool_launch(TtHostPool *self, const TtHostWork *work)
{
    TtHostWork *kept;

    if (!add_workers(self, count_threads(work)))
        return FALSE;
    kept = g_new(TtHostWork, 1);
    *kept = *work;
    pthread_mutex_lock(&self->lock);
    g_queue_push_tail(&self->queue, kept);
    if (self->n_left == 0)
        begin_next(self);
    pthread_mutex_unlock(&self->lock);
    return TRUE;
}

gboolean
tt_host_pool_is_idle(TtHostPool *self)
{
    gboolean idle;

    pthread_mutex_lock(&self->lock);
    idle = self->n_left == 0;
    pthread_mutex_unlock(&self->lock);
    return idle;
}

void
tt_host_pool_wait(TtHostPool *self)
{
    pthread_mutex_lock(&self->lock);
    while (self->n_left > 0)
        pthread_cond_wait(&self->ended, &self->lock);
    pthread_mutex_unlock(&self->lock);
}
