"""Makes what C, Go and the owner's socket have of the API out of the public C++ headers.

  python3 bindings/generate           writes the files
  python3 bindings/generate --check   fails if one of them is not what it would write
  python3 bindings/generate --list    names them"""
import pathlib
import re
import subprocess
import sys

from c_calls import Conversions, calls, version_map
from c_header import Header
from cpp_calls import Control, shown
from description import Description
from go_values import GoValues
from headers import Api

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def outputs():
    api = Api(str(ROOT / "store/include/waybill"))
    template = (ROOT / "bindings/c/waybill.h.in").read_text(encoding="utf-8")
    description = Description(api, template)
    control = Control(api)
    go = GoValues(api, description)
    conversions = Conversions(description)
    header = Header(api, description).text()
    made = {
        "bindings/c/waybill.h": header,
        "bindings/c/waybill.map": version_map(header),
        "bindings/c/described.h": conversions.header(),
        "bindings/c/described.cc": conversions.source(),
        "bindings/c/calls.cc": calls(description),
        "store/control/described.h": control.described(),
        "store/control/calls.h": control.header(),
        "store/control/calls.inc": control.bodies(),
        "bindings/cli/described.h": shown(api),
        "bindings/go/values.go": go.types(),
        "bindings/go/calls.go": go.methods(),
    }
    made[".gitattributes"] = "# What ./dev generate makes.\n" + "".join(
        f"{path} linguist-generated\n" for path in made)
    return made


def bare(text):
    """What is left without what clang-format and gofmt decide, so that a check needs neither."""
    return re.sub(r"[\s*/]+", "", text)


def main():
    if "--list" in sys.argv:
        return print("\n".join(outputs()))
    check = "--check" in sys.argv
    stale = []
    for path, text in outputs().items():
        file = ROOT / path
        if file.exists() and bare(file.read_text(encoding="utf-8")) == bare(text):
            continue
        stale.append(path)
        if not check:
            file.write_text(text, encoding="utf-8")
            print(path)
            if path.endswith((".map", ".gitattributes")):
                continue
            formatter = ["gofmt", "-w"] if path.endswith(".go") else ["clang-format", "-i"]
            subprocess.run([*formatter, str(file)], check=True)
    if check and stale:
        sys.exit(f"error: not what ./dev generate makes: {', '.join(stale)}\n"
                 "hint: run ./dev generate, and commit what it writes")


main()
