"""Stands in for SGLang's package of CUDA kernels, sgl_kernel, which no CPU has and which torch_native attention in
float32 or bfloat16 never calls. Python imports this file at its start, in each process of a server."""
import importlib.machinery
import sys
import types
from unittest import mock

PACKAGE = "sgl_kernel"


class OnAccess(type):
    """A class whose attributes are there when somebody asks: SGLang inherits from some, and decorates with others."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock(name=f"{PACKAGE}.{cls.__name__}.{name}")


class Kernels(types.ModuleType):
    __path__ = []  # a package: it may be asked for modules within

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = OnAccess(name, (), {}) if name[0].isupper() else mock.MagicMock(name=f"{PACKAGE}.{name}")
        setattr(self, name, made)
        return made


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == PACKAGE or name.startswith(PACKAGE + "."):
            return importlib.machinery.ModuleSpec(name, Finder, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        return Kernels(spec.name)

    @staticmethod
    def exec_module(module):
        pass


sys.meta_path.insert(0, Finder)
