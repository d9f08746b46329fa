"""The ``zig`` toolchain: clang with its own compiler-rt from a Python package, for bare-metal Arm and for this host.

Every file is compiled from a relative name in a folder of its own, so that no path of the machine reaches the image.
Must not know boards.

References:
    Arm C Language Extensions (ACLE), 5.5: ``__ARM_FEATURE_DSP``, ``__ARM_FP``, ``__ARM_FEATURE_MVE``.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

from joulemap.errors import BuildError, CapacityError, SetupError
from joulemap.firmware.toolchains.cache import BuildCache, default_cache_dir, digest_of
from joulemap.firmware.toolchains.elf import read_elf
from joulemap.firmware.toolchains.sources import CompileUnit, plan_units
from joulemap.records.firmware import ArtifactRole, FirmwareArtifact, FirmwareSource
from joulemap.records.target import CpuSpec

__all__ = ["ZigToolchain"]

# zig's core models carry neither FPU nor MVE, and its M33 not even DSP: each feature is asked for by name.
_CORES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "cortex-m4": ("cortex_m4", {"dsp": "dsp", "fp_sp": "vfp4d16sp"}),
    "cortex-m33": ("cortex_m33", {"dsp": "dsp", "fp_sp": "fp_armv8d16sp"}),
    "cortex-m55": ("cortex_m55", {"dsp": "dsp", "fp_sp": "fp_armv8d16", "mve": "mve", "mve_fp": "mve_fp"}),
}
_TARGET_FLAGS = (
    "-O2", "-g0", "-std=gnu11", "-ffreestanding", "-fno-sanitize=undefined", "-fomit-frame-pointer",
    "-ffunction-sections", "-fdata-sections", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables",
)  # fmt: skip
_LINK_FLAGS = ("-Wl,--gc-sections", "-Wl,-e,Reset_Handler")  # never together with -c: zig would link partially
_HOST_FLAGS = ("-O3", "-g0", "-std=gnu11", "-mcpu=baseline", "-fPIC", "-fno-sanitize=undefined")
# compiler-rt brings debug sections that name the folder zig is installed in.
_DISCARD_DEBUG = "\nSECTIONS { /DISCARD/ : { *(.debug*) *(.comment) } }\n"
_MACRO_CHECK = """
#if defined(__ARM_FEATURE_DSP) != {dsp}
#error "DSP extension differs from the CPU description"
#endif
#if defined(__ARM_FP) != {fp}
#error "floating-point unit differs from the CPU description"
#endif
#if defined(__ARM_FEATURE_MVE) != {mve}
#error "MVE differs from the CPU description"
#endif
"""
_OVERFLOW = re.compile(r"will not fit in region '([^']+)': overflowed by (\d+) bytes")
_REGION = re.compile(r"(\w+)\s*(?:\([^)]*\))?\s*:\s*ORIGIN\s*=\s*[^,]+,\s*LENGTH\s*=\s*(0x[0-9a-fA-F]+|\d+)\s*([KM]?)")
_SHOWN_LINES = 12


class ZigToolchain:
    """Builds images and host libraries with the compiler of the ``ziglang`` package.

    Args:
        cache_dir: folder of the build cache; None for :func:`default_cache_dir`.
        wall_limit_s: after which a call of the compiler is ended; the longest takes a minute on a slow machine.
    """

    name = "zig"

    def __init__(self, cache_dir: Path | None = None, *, wall_limit_s: float = 600.0) -> None:
        self._cache_dir = cache_dir
        self._wall_limit_s = wall_limit_s

    @cached_property
    def _cache(self) -> BuildCache:
        return BuildCache(self._cache_dir or default_cache_dir())

    @cached_property
    def _executable(self) -> Path:
        spec = importlib.util.find_spec("ziglang")
        folder = Path(spec.origin).parent if spec and spec.origin else None
        executable = folder / ("zig.exe" if sys.platform == "win32" else "zig") if folder else None
        if executable is None or not executable.exists():
            raise SetupError(
                "the zig toolchain is not installed (package ziglang)",
                hint="pip install 'joulemap[virtual]'",
                slug="missing-extra",
            )
        return executable

    @cached_property
    def _identity(self) -> str:
        version = self._run(["version"], self._cache.root)
        _raise_on_failure(version, self._cache.root, None, "the compiler")
        clang = re.search(r"clang version ([\w.]+)", self._run(["cc", "--version"], self._cache.root).stdout)
        return f"zig {version.stdout.strip()} (clang {clang.group(1) if clang else 'unknown'})"

    def describe(self) -> str:
        """Returns name and version, for example ``zig 0.17.1 (clang 22.1.8)``."""
        return self._identity

    def build(self, source: FirmwareSource, cpu: CpuSpec) -> FirmwareArtifact:
        """Returns the linked image; objects and image are taken from the cache when nothing they depend on changed."""
        phase = _phase(source.role)
        flags = (*_cpu_flags(cpu, phase), *_TARGET_FLAGS)
        scripts = [name for name in source.files if name.endswith(".ld")]
        if len(scripts) != 1:
            raise BuildError(f"{source.role} needs one linker script, got {scripts}", slug="build-failed", phase=phase)
        self._check_macros(cpu, flags, phase)
        units = plan_units(source.files, source.defines)
        keys = [
            digest_of(self._identity, *flags, unit.name, *_flat(unit.files), *_flat(unit.defines)) for unit in units
        ]
        script = source.files[scripts[0]] + _DISCARD_DEBUG
        objects = [f"{index:03d}_{Path(unit.name).stem}.o" for index, unit in enumerate(units)]
        link = ["cc", *flags, *_LINK_FLAGS, "-T", "link.ld", *objects, "-o", f"{source.role}.elf"]
        commands = [_compile_command(unit, flags) for unit in units]

        def make(work: Path) -> None:
            with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
                jobs = [
                    pool.submit(self._object, unit, key, command, source.role)
                    for unit, key, command in zip(units, keys, commands, strict=True)
                ]
                try:
                    for name, job in zip(objects, jobs, strict=True):
                        (work / name).write_bytes(job.result().read_bytes())
                except BaseException:  # an error or Ctrl-C: what has not begun need not be waited for
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
            (work / "link.ld").write_text(script, encoding="utf-8")
            self._link(link, work, source.role, script)

        elf, reused = self._cache.build("image", digest_of(script, *link, *keys), f"{source.role}.elf", make)
        image = read_elf(elf)
        return FirmwareArtifact(
            role=source.role,
            elf=elf,
            sha256=_sha256(elf),
            source_sha256=source.sha256,
            sections=image.sections,
            symbols=image.symbols,
            flash_b=image.flash_b,
            ram_b=image.ram_b,
            toolchain=self._identity,
            command=tuple(" ".join(["zig", *command]) for command in (*commands, link)),
            reused=reused,
        )

    def build_host_library(self, name: str, files: Mapping[str, str]) -> Path:
        """Returns the path of a shared library that any machine of this architecture can load."""
        sources = sorted(file for file in files if file.endswith(".c"))
        suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
        command = ["cc", *_HOST_FLAGS, "-shared", "-I.", *sources, "-lm", "-o", f"{name}{suffix}"]
        key = digest_of(self._identity, platform.machine(), sys.platform, *command, *_flat(files))

        def make(work: Path) -> None:
            _write_tree(work, files)
            self._checked(command, work, None, f"host library {name}")

        library, _ = self._cache.build("host", key, f"{name}{suffix}", make)
        return library

    def _object(self, unit: CompileUnit, key: str, command: list[str], role: ArtifactRole) -> Path:
        def make(work: Path) -> None:
            _write_tree(work, unit.files)
            self._checked(command, work, role, unit.name)

        built, _ = self._cache.build("object", key, command[-1], make)
        return built

    def _check_macros(self, cpu: CpuSpec, flags: tuple[str, ...], phase: str) -> None:
        """Asserts that the compiler really targets what the CPU description says."""
        text = _MACRO_CHECK.format(
            dsp=int("dsp" in cpu.features), fp=int("fp_sp" in cpu.features), mve=int("mve" in cpu.features)
        )
        command = ["cc", *flags, "-c", "check.c", "-o", "check.o"]

        def make(work: Path) -> None:
            (work / "check.c").write_text(text, encoding="ascii")
            result = self._run(command, work)
            if result.returncode:
                raise BuildError(
                    f"the compiler does not target {cpu.core} as described: {_errors(result.stderr, work)}",
                    hint="compare the features of the CPU with the toolchain's table",
                    slug="cpu-mismatch",
                    phase=phase,
                )

        self._cache.build("cpu", digest_of(self._identity, text, *command), "check.o", make)

    def _link(self, command: list[str], work: Path, role: ArtifactRole, script: str) -> None:
        result = self._run(command, work)
        overflows = _OVERFLOW.findall(result.stderr)
        if overflows:
            name = overflows[0][0]
            excess_b = max(int(over_b) for region, over_b in overflows if region == name)
            have_b = _region_sizes(script).get(name, 0)
            raise CapacityError(
                f"{role} does not fit {name.lower()}: needs {have_b + excess_b} bytes, has {have_b}",
                hint="choose a smaller model or a target with more memory",
                slug="memory-overflow",
                phase=_phase(role),
                artifact_role=role,
                details={"region": name.lower(), "need_b": have_b + excess_b, "have_b": have_b},
            )
        _raise_on_failure(result, work, role, "the linker")

    def _checked(self, command: list[str], work: Path, role: ArtifactRole | None, what: str) -> None:
        _raise_on_failure(self._run(command, work), work, role, what)

    def _run(self, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        zig_cache = str(self._cache.root / "zig")
        environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": zig_cache, "ZIG_LOCAL_CACHE_DIR": zig_cache}
        try:
            return subprocess.run(
                [str(self._executable), *arguments],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=self._wall_limit_s,
            )
        except subprocess.TimeoutExpired as error:  # zig waits for ever when its own cache is taken away
            raise BuildError(
                f"the compiler did not end within {self._wall_limit_s:g} s and was killed: zig {arguments[0]}",
                hint="run again on a less loaded machine; let nothing else clean the build cache meanwhile",
                slug="build-timeout",
                phase="setup",
            ) from error
        except OSError as error:
            if not folder.is_dir():
                raise  # the cache's own affair
            raise SetupError(
                f"the compiler cannot be started: {error.strerror or error}",
                hint="check ulimit -a, and that the ziglang package is whole: pip install --force-reinstall ziglang",
                slug="machine-exhausted",
            ) from error


def _cpu_flags(cpu: CpuSpec, phase: str) -> tuple[str, ...]:
    model, known = _CORES.get(cpu.core, ("", {}))
    unknown = sorted(cpu.features - known.keys())
    if not model or unknown:
        raise BuildError(
            f"zig has no flags for {cpu.core}" + (f" with {', '.join(unknown)}" if model else ""),
            hint=f"known cores: {', '.join(_CORES)}",
            slug="cpu-unknown",
            phase=phase,
        )
    options = "".join(f"+{known[feature]}" for feature in sorted(cpu.features))
    abi = "eabihf" if "fp_sp" in cpu.features else "eabi"
    return ("-target", f"thumb-freestanding-{abi}", f"-mcpu={model}{options}")


def _compile_command(unit: CompileUnit, flags: tuple[str, ...]) -> list[str]:
    defines = [f"-D{name}={value}" for name, value in unit.defines.items()]
    return ["cc", *flags, "-I.", *defines, "-c", unit.name, "-o", f"{Path(unit.name).stem}.o"]


def _flat(table: Mapping[str, str]) -> list[str]:
    return [part for name in sorted(table) for part in (name, table[name])]


def _write_tree(work: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text, encoding="utf-8", newline="\n")


def _phase(role: ArtifactRole) -> str:
    return "profile" if role is ArtifactRole.PROFILE else "power"


def _sha256(path: Path) -> str:
    import hashlib  # noqa: PLC0415

    return hashlib.sha256(path.read_bytes()).hexdigest()


def _region_sizes(script: str) -> dict[str, int]:
    unit_b = {"": 1, "K": 1024, "M": 1024 * 1024}
    return {name: int(length, 0) * unit_b[unit] for name, length, unit in _REGION.findall(script)}


def _errors(text: str, work: Path) -> str:
    """Returns the compiler's first error lines, or its first lines, without the folder of the build."""
    lines = [line for line in text.replace(f"{work}{os.sep}", "").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line]
    return "\n".join((errors or lines)[:_SHOWN_LINES])


def _raise_on_failure(
    result: subprocess.CompletedProcess[str], work: Path, role: ArtifactRole | None, what: str
) -> None:
    if result.returncode == 0:
        return
    last_words = _errors(result.stderr, work)
    killed = result.returncode < 0
    if killed:
        last_words = f"it was killed by signal {-result.returncode}\n{last_words}".rstrip()
    raise BuildError(
        f"{what} failed" + (f" ({role})" if role else "") + f":\n{last_words}",
        hint="look for the kernel's out-of-memory messages, then run again"
        if killed
        else "the lines above are the compiler's; -vv shows the command",
        slug="build-failed",
        phase=_phase(role) if role else "setup",
        artifact_role=role,
        details={"stderr": result.stderr[:4000].replace(str(work), ""), "exit_status": result.returncode},
    )
