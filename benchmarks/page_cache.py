"""Files out of the kernel's page cache, so that a program that reads them next reads its disk."""
import ctypes
import mmap
import os
import pathlib


def drop(folder):
    """Writes the folder's files to their disk and lets go of their pages."""
    for file in pathlib.Path(folder).iterdir():
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def resident_share(folder):
    """The share of the bytes of the folder's files that is in memory: 1 on a tmpfs, about 0 after drop()."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    there = pages = 0
    for file in pathlib.Path(folder).iterdir():
        size = file.stat().st_size
        if size == 0:
            continue
        with open(file, "rb") as opened:
            begin = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, opened.fileno(), 0)
        if begin == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), f"mmap of {file}")
        count = -(-size // mmap.PAGESIZE)
        states = ctypes.create_string_buffer(count)
        code = libc.mincore(begin, size, states)
        libc.munmap(begin, size)
        if code:
            raise OSError(ctypes.get_errno(), f"mincore of {file}")
        there += sum(byte & 1 for byte in states.raw)
        pages += count
    return there / pages if pages else 0.0
