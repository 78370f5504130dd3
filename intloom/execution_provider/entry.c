// The library that onnxruntime loads as an execution provider. It forwards to functions that Python sets.
//
// onnxruntime looks up CreateEpFactories and ReleaseEpFactory by name. The objects of the provider belong to Python.
// onnxruntime may release them after Python's interpreter has ended, so releases reach Python only while `ended` is 0.

#include <stddef.h>

typedef void *(*create_function)(const char *, const void *, const void *, void **, size_t, size_t *);
typedef void (*release_function)(void *);

static create_function create;
static release_function release;
static int ended;

void intloom_set(create_function new_create, release_function new_release) {
  create = new_create;
  release = new_release;
}

void intloom_end(void) { ended = 1; }

void *CreateEpFactories(const char *name, const void *api_base, const void *logger, void **factories, size_t limit,
                        size_t *count) {
  return create(name, api_base, logger, factories, limit, count);
}

void *ReleaseEpFactory(void *factory) {
  (void)factory;
  return NULL;
}

void intloom_release_ep(void *factory, void *ep) {
  (void)factory;
  if (!ended) release(ep);
}

void intloom_release_compute_infos(void *ep, void **infos, size_t count) {
  (void)ep;
  (void)infos;
  (void)count;
}

void intloom_release_state(void *info, void *state) {
  (void)info;
  (void)state;
}
