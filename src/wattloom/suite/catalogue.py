"""Which functions the suite has: name, category, runtime, and what each is made of.

Owns the list. Whether something is there on this machine is `needs`'s business.
"""

from difflib import get_close_matches
from typing import Final, Literal

import msgspec

from wattloom.errors import InputError

Category = Literal["crypto", "media", "scientific", "web"]
Language = Literal["python", "node", "java", "native", "wasm"]

CATEGORIES: Final[tuple[Category, ...]] = ("crypto", "media", "scientific", "web")
ALL: Final = "all"


class SuiteFunction(msgspec.Struct, frozen=True):
    """One function of the suite."""

    name: str
    family: str
    """What it does, in whichever language: those of a family have the same input and the same result."""
    category: Category
    runtime: Language
    summary: str
    libraries: tuple[str, ...] = ()
    """What does the work, as people call it."""
    modules: tuple[str, ...] = ()
    """Modules of Python it imports, and which the package does not bring anyway."""
    programs: tuple[str, ...] = ()
    """Programs it runs with."""
    builders: tuple[str, ...] = ()
    """Programs and modules that its installation needs."""
    packages: tuple[str, ...] = ()
    """What is fetched at its installation, by the name and version its registry knows."""

    @property
    def is_installed(self) -> bool:
        """Whether there is something to install beside modules of Python."""
        return bool(self.builders)


_ABOUT: Final[dict[str, tuple[Category, str]]] = {
    "el-passo": ("crypto", "anonymous credentials for single sign-on"),
    "jwt": ("crypto", "a token is signed and verified"),
    "thumbnail": ("media", "a picture in base64 is made small"),
    "video-to-gif": ("media", "a film becomes a moving GIF"),
    "image-recognition": ("media", "AlexNet says what is in a picture"),
    "matrix-numpy": ("scientific", "the product of two 30x30 matrices with NumPy"),
    "matrix-native": ("scientific", "the product of two 30x30 matrices, by hand"),
    "pagerank": ("scientific", "the ranks of 500 vertices with 250 edges"),
    "html": ("web", "a page out of a template"),
    "zip": ("web", "three files become one archive"),
}
_NPM: Final = ("npm",)
_MAVEN: Final = ("mvn",)
_BLST: Final = "github.com/supranational/blst@v0.3.17"
_JJWT: Final = "0.13.0"


def _one(
    family: str,
    runtime: Language,
    *libraries: str,
    modules: tuple[str, ...] = (),
    programs: tuple[str, ...] = (),
    builders: tuple[str, ...] = (),
    packages: tuple[str, ...] = (),
) -> SuiteFunction:
    category, summary = _ABOUT[family]
    name = f"{family}-{'cpp' if runtime == 'native' else runtime}"
    return SuiteFunction(name, family, category, runtime, summary, libraries, modules, programs, builders, packages)


FUNCTIONS: Final = {
    each.name: each
    for each in (
        _one("el-passo", "native", "blst", builders=("go", "g++"), packages=(_BLST,)),
        _one(
            "el-passo",
            "wasm",
            "blst",
            modules=("wasmtime",),
            builders=("go", "clang", "wasm-ld", "wasi-libc"),
            packages=(_BLST,),
        ),
        _one("jwt", "python", "PyJWT", modules=("jwt", "cryptography")),
        _one("jwt", "node", "jsonwebtoken", programs=("node",), builders=_NPM, packages=("jsonwebtoken@9.0.3",)),
        _one(
            "jwt",
            "java",
            "jjwt",
            programs=("java", "javac"),
            builders=_MAVEN,
            packages=tuple(f"io.jsonwebtoken:jjwt-{part}:{_JJWT}" for part in ("api", "impl", "gson")),
        ),
        _one("thumbnail", "python", "Pillow", modules=("PIL",)),
        _one("thumbnail", "node", "sharp", programs=("node",), builders=_NPM, packages=("sharp@0.35.5",)),
        _one("thumbnail", "java", "java.awt", programs=("java", "javac")),
        _one("video-to-gif", "python", "ffmpeg", programs=("ffmpeg",)),
        _one("video-to-gif", "node", "ffmpeg", programs=("node", "ffmpeg")),
        _one(
            "image-recognition",
            "python",
            "onnxruntime",
            "Pillow",
            modules=("onnxruntime", "PIL"),
            builders=("onnx",),
        ),
        _one("matrix-numpy", "python", "NumPy"),
        _one("matrix-native", "python"),
        _one("matrix-native", "node", programs=("node",)),
        _one("matrix-native", "java", programs=("java", "javac")),
        _one("pagerank", "python", "igraph", modules=("igraph",)),
        _one("html", "python", "Jinja2", modules=("jinja2",)),
        _one("html", "node", "Mustache", programs=("node",), builders=_NPM, packages=("mustache@4.2.0",)),
        _one(
            "html",
            "java",
            "FreeMarker",
            programs=("java", "javac"),
            builders=_MAVEN,
            packages=("org.freemarker:freemarker:2.3.34",),
        ),
        _one("zip", "python", "zipfile"),
        _one("zip", "node", "JSZip", programs=("node",), builders=_NPM, packages=("jszip@3.10.1",)),
        _one("zip", "java", "java.util.zip", programs=("java", "javac")),
    )
}
"""By name, in the order of the ISA study."""

NAMES: Final = tuple(FUNCTIONS)


def described(name: str) -> SuiteFunction:
    """What the suite says of one function."""
    if name not in FUNCTIONS:
        raise InputError(name, f"is no function of the suite{_instead(name, NAMES)}")
    return FUNCTIONS[name]


def chosen(what: str) -> list[SuiteFunction]:
    """One by its name, those of a category or a family, or all."""
    found = [each for each in FUNCTIONS.values() if what in (ALL, each.name, each.category, each.family)]
    if not found:
        words = (ALL, *CATEGORIES, *_ABOUT, *NAMES)
        raise InputError(what, f"is no function, family or category of the suite{_instead(what, words)}")
    return found


def _instead(wrong: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(wrong, known, n=1)
    return f"; did you mean {close[0]}?" if close else "; `wattloom workload list` shows them"
