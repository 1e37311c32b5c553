"""A wheel that carries the native library is for one platform, which `scripts/python_wheels.py` names."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformTag(BuildHookInterface):
    def initialize(self, version, build_data):
        platform = os.environ.get("MMN_WHEEL_PLATFORM")
        if platform:
            # The library has a C ABI: one wheel serves every version of Python 3.
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
