"""What the ABI's header declares, as plain data, and what the parts of the gate share."""

import json
import pathlib
import re
import subprocess
import sys

SDK = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = SDK / "include"
BASELINE = SDK / "abi/v1.json"


def die(message):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {message}")


def run(*command, stdin=""):
    """Runs a program; returns (exit status, stdout, stderr). A missing program ends the gate: it never skips."""
    try:
        done = subprocess.run([str(part) for part in command], input=stdin, capture_output=True, text=True)
    except FileNotFoundError:
        die(f"{command[0]} is missing; tools/setup.sh --tests installs it")
    return done.returncode, done.stdout, done.stderr


def read_baseline():
    if not BASELINE.exists():
        die(f"{BASELINE} is missing; restore it from the repository")
    return json.loads(BASELINE.read_text())


def describe():
    """The header as {minor, structs: {name: {field: type}}, typedefs, functions, constants}, in declaration order.

    Types are spelled as in the header, without parameter names. Internal macros (ending in _) are left out; of a
    function-like macro the parameters count, not the body.
    """
    found = {"minor": 0, "structs": {}, "typedefs": {}, "functions": {}, "constants": {}}
    for node in json.loads(_clang("-fsyntax-only", "-Xclang", "-ast-dump=json"))["inner"]:
        name, kind = node.get("name", ""), node["kind"]
        if kind == "EnumDecl" and any(each.get("name", "").startswith("HEXAD_") for each in node.get("inner", [])):
            die(f"{INCLUDE}/hexad/abi.h: an enum has no fixed size; write its constants as #define")
        if not name.startswith("hexad_"):
            continue
        if kind == "RecordDecl" and node.get("completeDefinition"):
            found["structs"][name] = _fields(node)
        elif kind == "TypedefDecl":
            found["typedefs"][name] = node["type"]["qualType"]
        elif kind == "FunctionDecl":
            found["functions"][name] = node["type"]["qualType"]
    for line in sorted(_clang("-E", "-dM").splitlines()):
        name, parameters, value = re.fullmatch(r"#define (\w+)(\(.*?\))? ?(.*)", line).groups()
        if name.startswith("HEXAD_") and not name.endswith("_") and name != "HEXAD_TARGET_MINOR":
            found["constants"][name] = parameters or value
    found["minor"] = int(found["constants"].pop("HEXAD_ABI_MINOR"))
    return found


def _clang(*flags):
    newest = "-DHEXAD_TARGET_MINOR=HEXAD_ABI_MINOR"  # shows every declaration
    status, out, err = run("clang", "-x", "c", "-std=c11", "-I", INCLUDE, newest, *flags, INCLUDE / "hexad/abi.h")
    if status != 0:
        die(f"the header does not compile:\n{err}")
    return out


def _fields(record):
    inner = [each for each in record.get("inner", []) if each["kind"] != "FullComment"]
    odd = [each for each in inner if each["kind"] != "FieldDecl" or each.get("isBitfield")]
    if record["tagUsed"] != "struct" or odd:
        die(f"{record['name']}: unions, nested records, bit-fields and attributes have no place in the ABI")
    return {each["name"]: each["type"]["qualType"] for each in inner}
