/* What libhexad_arrow.so exports: tables in files, by the row, as JSON. The one half of lib/table that sees Apache
 * Arrow, opened by the other (arrow_library.cpp) when such a file is. Both halves are of one build. No exception
 * passes. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEXAD_ARROW_INTERFACE "hexad_arrow_interface_1"

/* Takes bytes, to be copied before it returns; `to` is what was handed in beside it. Returns 0, or an errno: then who
 * calls it stops, and answers with that reason. */
typedef int (*hexad_arrow_sink)(void* to, const char* bytes, size_t size);

typedef struct hexad_arrow_table hexad_arrow_table;

typedef struct {
  const char* file;    /* its path */
  const char* form;    /* "parquet", "arrow" (the stream or the file format of IPC), "csv" or "tsv" */
  const char* packing; /* "", "gz" or "zst": csv and tsv alone */
  const char* cache;   /* where the rows may be kept as an Arrow file; one that is there is believed. "": nowhere */
  int64_t memory;      /* bytes of rows beyond which they go there and are not kept in memory */
  int (*prepare)(void* to); /* called before the first of them does: 0, or -1 where they cannot */
} hexad_arrow_source;

/* `say` gets the reason, without the file's name, where something is refused. Threads may use tables at once,
 * and wait for each other. */
typedef struct {
  /* Null: refused. Nothing but the schema and the numbers of rows is looked at where the form allows that. */
  hexad_arrow_table* (*open)(const hexad_arrow_source* source, hexad_arrow_sink say, void* to);
  int64_t (*size)(const hexad_arrow_table* table);
  int64_t (*memory)(const hexad_arrow_table* table); /* bytes of rows that it keeps */
  /* The row, from 0 on, as one JSON object: columns in their order, null for what is missing, numbers of text formats
   * as they were written. 0, or -1: refused. */
  int (*row)(hexad_arrow_table* table, int64_t index, hexad_arrow_sink out, hexad_arrow_sink say, void* to);
  void (*close)(hexad_arrow_table* table);
  /* The bytes of a file that is packed as `packing` says, in parts. 0, or -1: refused. */
  int (*unpack)(const char* file, const char* packing, hexad_arrow_sink out, hexad_arrow_sink say, void* to);
} hexad_arrow_interface;

#ifdef __cplusplus
}
#endif
