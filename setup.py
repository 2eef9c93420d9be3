"""Build of the one extension module, ccompile._core.

Switches, environment only:
    CCOMPILE_BUILD=release|debug|asan|cov   kind of build (release)
    CCOMPILE_WERROR=1                       warnings are errors (continuous integration, `make dev`)
    CCOMPILE_JOBS=n                         compilers at a time (2)

A csrc/kern/*.c with `/* isa: multi` at the start of one of its first ten lines is compiled once per
ISA level with -DCC_ISA=base, v3 or v4; every file sees CC_HAVE_ISA_V3 and CC_HAVE_ISA_V4 where
those levels exist. An object is compiled again when its command line or a file that it was made
from has changed.
"""

import os
import pathlib
import platform
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = pathlib.Path(__file__).resolve().parent
LAYERS = "base ir pass gen rt kern build py front tape trace exec core".split()
PYTHONS = [(3, 11), (3, 12), (3, 13)]

MULTI = "/* isa: multi"

COMMON = """-std=gnu11 -ffp-contract=off -fno-fast-math -fvisibility=hidden -Wall -Wextra -Wshadow
    -Wstrict-prototypes -Wmissing-prototypes -Wvla""".split()
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
DEBUG = ["-g", "-UNDEBUG", "-DCCOMPILE_DEBUG=1"]  # -UNDEBUG: Python's own flags define NDEBUG
BUILDS = {  # kind: (compile, link)
    "release": (["-O2"], []),
    "debug": (["-Og", *DEBUG], []),
    "asan": (["-O1", "-fno-omit-frame-pointer", *DEBUG, *SANITIZE], SANITIZE),
    "cov": (["-O0", "-g", "--coverage"], ["--coverage"]),
}


def refuse(why: str) -> None:
    """End the build with one sentence."""
    raise SystemExit(f"ccompile: {why}")


def check_host() -> None:
    """Refuse an interpreter or a system that the C code was not written for."""
    have = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if sys.implementation.name != "cpython":
        refuse(f"needs CPython, and this is {platform.python_implementation()}.")
    if sys.version_info[:2] not in PYTHONS:
        refuse(f"supports CPython 3.11, 3.12 and 3.13, and this is {have}.")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        refuse(f"needs the default build of CPython {have}, and this is the free-threaded one.")
    if not sys.platform.startswith(("linux", "darwin")):
        refuse(f"supports Linux and macOS, and this is {sys.platform} (on Windows, use WSL).")


def build_kind() -> str:
    """The value of CCOMPILE_BUILD, checked."""
    kind = os.environ.get("CCOMPILE_BUILD") or "release"
    if kind not in BUILDS:
        refuse(f"CCOMPILE_BUILD={kind} is not one of {', '.join(BUILDS)}.")
    return kind


def is_multi(source: str) -> bool:
    """True for a file that is compiled once per ISA level."""
    head = (ROOT / source).read_text(encoding="utf-8").splitlines()[:10]
    return source.startswith("csrc/kern/") and any(line.startswith(MULTI) for line in head)


def sources() -> list[str]:
    """Every C file of this build, in the order of the layers, relative to the root."""
    folders = [f"csrc/{layer}" for layer in LAYERS]
    folders.insert(folders.index("csrc/py") + 1, f"csrc/py/{version_folder()}")
    return [
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in sorted((ROOT / folder).glob("*.c"))
    ]


def version_folder() -> str:
    """The folder of csrc/py/ for the running Python."""
    return f"v{sys.version_info[0]}{sys.version_info[1]}"


def isa_levels() -> dict[str, list[str]]:
    """ISA levels of the machine's family and their flags; the first needs none."""
    if platform.machine() in ("x86_64", "AMD64"):
        return {"base": [], "v3": ["-march=x86-64-v3"], "v4": ["-march=x86-64-v4"]}
    return {"base": []}


def fresh(obj: pathlib.Path, command: str) -> bool:
    """True when `obj` was made by `command` and is newer than everything it was made from."""
    try:
        built = obj.stat().st_mtime_ns
        if obj.with_suffix(".cmd").read_text() != command:
            return False
        rule = obj.with_suffix(".d").read_text().replace("\\\n", " ").split(": ", 1)[1]
        return all(os.stat(ROOT / dep).st_mtime_ns < built for dep in shlex.split(rule))
    except (OSError, IndexError):
        return False


class BuildExt(build_ext):
    """Objects in parallel and only when stale; kernels once per ISA level."""

    def finalize_options(self):
        super().finalize_options()
        # Always in the tree: pip's own temporary folder would make every editable build a full one.
        self.build_temp = f"build/obj/{sysconfig.get_platform()}-{version_folder()}-{build_kind()}"

    def build_extension(self, ext):
        import numpy

        levels = self.usable_levels()
        rebuild = self.force
        jobs = []
        for source in ext.sources:
            if not is_multi(source):
                jobs.append((source, "", []))
                continue
            for name, flags in levels.items():
                jobs.append((source, f"-{name}", [f"-DCC_ISA={name}", *flags]))
        foreign = [numpy.get_include(), *self.include_dirs, *self.compiler.include_dirs]
        options = [
            *(f"-DCC_HAVE_ISA_{name.upper()}=1" for name in levels if name != "base"),
            "-Icsrc",
            f"-Icsrc/py/{version_folder()}",
            *(f"-isystem{folder}" for folder in dict.fromkeys(foreign)),
            *ext.extra_compile_args,
        ]
        with ThreadPoolExecutor(int(os.environ.get("CCOMPILE_JOBS", "2"))) as pool:
            objects = list(pool.map(lambda job: self.compile_one(rebuild, options, *job), jobs))
        linked, ext.sources, ext.extra_objects = ext.sources, [], objects
        # Link always, both tests of age off: another kind's library may be in place.
        self.force = self.compiler.force = True
        super().build_extension(ext)
        ext.sources, ext.extra_objects = linked, []

    def compile_one(self, rebuild, options, source, suffix, extra):
        """Compile one source to an object unless that is fresh; the object's path."""
        obj = pathlib.Path(self.build_temp, source).with_suffix("")
        obj = obj.with_name(obj.name + suffix + ".o")
        tool = [*self.compiler.compiler_so, "-MMD", "-MF", str(obj.with_suffix(".d"))]
        command = [*tool, *options, *extra, "-c", source, "-o", str(obj)]
        text = shlex.join(command)
        if rebuild or not fresh(obj, text):
            obj.parent.mkdir(parents=True, exist_ok=True)
            obj.with_suffix(".cmd").unlink(missing_ok=True)
            print(f"cc {source}{suffix and ' ' + suffix[1:]}", flush=True)
            if subprocess.run(command, check=False).returncode != 0:
                raise CompileError(f"this command failed: {text}")
            obj.with_suffix(".cmd").write_text(text)
        return str(obj)

    def usable_levels(self):
        """The ISA levels whose flags this compiler knows (an old one may lack x86-64-v3 or v4)."""
        probe = pathlib.Path(self.build_temp, "isa.c")
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.write_text("int isa_probe;\n")
        levels = {}
        for name, flags in isa_levels().items():
            command = [*self.compiler.compiler_so, *flags, "-c", str(probe), "-o", f"{probe}.o"]
            done = subprocess.run(command, check=False, capture_output=True)
            if done.returncode == 0 or not flags:
                levels[name] = flags
            else:
                print(f"ccompile: the compiler has no {' '.join(flags)}; kernels do without it")
        return levels


def extension() -> Extension:
    """The extension module with the flags of the chosen build."""
    compile_args, link_args = BUILDS[build_kind()]
    werror = ["-Werror"] if os.environ.get("CCOMPILE_WERROR") == "1" else []
    return Extension(
        "ccompile._core",
        sources=sources(),
        extra_compile_args=[*COMMON, *compile_args, *werror],
        extra_link_args=[*link_args, "-fno-fast-math"],
        libraries=["m", "dl", "pthread"],
    )


check_host()
if sys.platform == "darwin":  # one architecture at a time: ISA flags do not fit a universal build
    os.environ.setdefault("ARCHFLAGS", f"-arch {platform.machine()}")
os.chdir(ROOT)
setup(
    packages=find_packages("python"),
    package_dir={"": "python"},
    package_data={"ccompile": ["py.typed", "*.pyi"]},
    ext_modules=[extension()],
    cmdclass={"build_ext": BuildExt},
)
