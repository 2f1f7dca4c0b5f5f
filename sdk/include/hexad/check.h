/* The check library of a plugin: rules between configuration keys that its manifest's expressions cannot say
   (CONFIG.md).
 *
 * A small shared object beside the plugin, linking libc and libstdc++ alone, with one exported symbol. `hexad config
 * check` and a run load it in a child process of their own with 500 ms and 256 MiB, before any worker exists: what it
 * does wrong is one message, never a crash of the engine. It sees no GPU, no LibTorch and nothing of the ABI of
 * abi.h. */
#ifndef HEXAD_CHECK_H_
#define HEXAD_CHECK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEXAD_CHECK_ERROR 0  /* the configuration is refused */
#define HEXAD_CHECK_NOTICE 1 /* it is told, and runs */

typedef struct hexad_check_host {
  uint32_t struct_size; /* of this struct, in bytes; later versions append */
  uint32_t reserved;
  void* ctx;
  /* One finding about the key at a dotted path relative to the block that chooses the plugin, or of the whole
   * configuration with "run." before it. The texts are UTF-8, copied at once, at most 4 KiB each; after 100 findings
   * further ones are dropped. */
  void (*finding)(void* ctx, int32_t severity, const char* key, const char* message);
  /* A value that the manifest's rules then use as `check.NAME`: `value` is JSON text of a number, a text, true, false
   * or null. So a library may take a value apart, and leave what is said about it to the rules. */
  void (*name)(void* ctx, const char* name, const char* value);
} hexad_check_host;

/* `input`: JSON text, valid during the call:
 *   {"section": {...},   the block with every default filled in
 *    "world": {"ranks", "train_ranks", "generate_ranks", "nodes", "ranks_per_node"},   integers; what is not known is
 *    absent
 *    "model": {...}}      config.json with the names of CONFIG.md, "Expressions"; null where it is not at hand
 * Returns 0 when it has looked at everything, anything else when it could not: that is a finding of its own. Called
 * once, on the main thread of the child. */
typedef int32_t (*hexad_check_fn)(const hexad_check_host* host, const char* input);

/* The exported symbol. */
__attribute__((visibility("default"))) int32_t hexad_plugin_check_v1(const hexad_check_host* host, const char* input);

#ifdef __cplusplus
}
#endif
#endif /* HEXAD_CHECK_H_ */
